"""What people choose for themselves, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Holdfast
from tests.api.people import Hall, hall_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf, hall_of(hf) as found:
        yield found


@pytest.mark.covers("WB-67", "WB-67-preferences")
async def test_preferences_are_each_persons_own(hall: Hall) -> None:
    path = "/v1/me/preferences"
    first = await hall.send("dana", "GET", path)
    every = {"reminders": True, "outcomes": True}
    assert first.json() == {
        "language": None, "time_zone": None, "theme": "system", "shortcuts": True, "notifications": every,
    }  # fmt: skip
    chosen = {"language": "de", "time_zone": "Europe/Berlin", "theme": "dark", "shortcuts": False,
              "notifications": {"reminders": False, "outcomes": True}}  # fmt: skip
    headers = {"If-Match": first.headers["etag"]}
    assert await hall.ask("dana", "PUT", path, json=chosen, headers=headers) == chosen
    assert await hall.ask("dana", "GET", path) == chosen
    assert (await hall.ask("sam", "GET", path))["theme"] == "system"
    # Of the same name in another tenant.
    assert (await hall.ask("eve", "GET", path))["theme"] == "system"
    await hall.ask("dana", "PUT", path, json={"theme": "light"}, headers=headers, status=412)
    for wrong in (
        {"time_zone": "Mars/Base"},
        {"time_zone": "../etc/passwd"},
        {"theme": "pink"},
        {"font": 1},
        {"notifications": {"opened": False}},
    ):
        await hall.ask("dana", "PUT", path, json=wrong, status=422)
    assert await hall.ask("dana", "GET", path) == chosen
    session = await hall.ask("dana", "GET", "/v1/session")
    assert session["release"]
    assert session["now"].endswith(("Z", "+00:00"))
