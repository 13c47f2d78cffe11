"""Saved views and presence."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.testing.clock import FakeClock
from tests.api.people import Hall, hall_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def hall(tmp_path: Path, clock: FakeClock, anyio_backend: str) -> AsyncIterator[Hall]:
    address = f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address, clock=clock) as hf, hall_of(hf) as found:
        yield found


@pytest.mark.covers("SERVER-IN-04")
async def test_view_is_saved_shared_counted_and_shows_each_their_own(hall: Hall) -> None:
    mine, theirs = await hall.asks(priority="high"), await hall.asks("group:finance", priority="high")
    await hall.asks(priority="low")
    view = {"title": "Urgent", "filters": {"priority": ["high"], "status": ["pending"]}, "shared": True}
    made = await hall.ask("dana", "POST", "/v1/views", status=201, json=view)
    await hall.ask("dana", "POST", "/v1/views", status=201, json={"title": "Own", "filters": {"q": "due<2d"}})

    async def shown(who: str) -> set[str]:
        return {each["id"] for each in (await hall.ask(who, "GET", made["url"]))["items"]}

    assert (await shown("dana"), await shown("sam"), await shown("ada")) == ({mine}, {theirs}, {mine, theirs})
    listed = (await hall.ask("sam", "GET", "/v1/views", params={"counts": True}))["items"]
    assert [(each["title"], each["count"]) for each in listed] == [("Urgent", 1)]
    assert [each["title"] for each in (await hall.ask("dana", "GET", "/v1/views"))["items"]] == [
        "Own", "Urgent",
    ]  # fmt: skip
    assert (await hall.ask("eve", "GET", "/v1/views"))["items"] == []
    assert (await hall.send("eve", "GET", f"/v1/views/{made['id']}")).status_code == 404


@pytest.mark.covers("SERVER-IN-04")
async def test_view_is_changed_by_its_owner_and_by_admins_on_what_they_saw(hall: Hall) -> None:
    view = {"title": "Urgent", "filters": {"priority": ["high"]}, "shared": True}
    made = await hall.ask("dana", "POST", "/v1/views", status=201, json=view)
    at = f"/v1/views/{made['id']}"
    assert (await hall.send("sam", "PUT", at, json=view)).status_code == 403
    seen = {"If-Match": f'"{made["version"]}"'}
    changed = await hall.ask("ada", "PUT", at, json={**view, "title": "Soon"}, headers=seen)
    assert (changed["title"], changed["owner"]) == ("Soon", "user:dana@acme")
    assert (await hall.send("dana", "PUT", at, json=view, headers=seen)).status_code == 412
    assert (await hall.send("sam", "DELETE", at)).status_code == 403
    await hall.ask("dana", "PUT", at, json={**view, "shared": False})
    assert (await hall.send("sam", "GET", at)).status_code == 404
    await hall.ask("dana", "DELETE", at, status=204)
    assert (await hall.send("dana", "GET", at)).status_code == 404
    for wrong in (
        {"title": "", "filters": {}},
        {"title": "x"},
        {"title": "x", "filters": {"q": "priority:huge"}},
    ):
        assert (await hall.send("dana", "POST", "/v1/views", json=wrong)).status_code == 422, wrong


@pytest.mark.covers("SERVER-IN-05")
async def test_who_looks_is_reported_until_they_stop(hall: Hall, clock: FakeClock) -> None:
    at = f"/v1/holds/{await hall.asks('group:finance')}/presence"
    await hall.ask("sam", "PUT", at, json={"editing": True})
    clock.advance(seconds=10)
    both = (await hall.ask("ada", "PUT", at, json={}))["items"]
    assert [(each["person"], each["editing"]) for each in both] == [
        ("user:sam@acme", True), ("user:ada@acme", False),
    ]  # fmt: skip
    assert (await hall.send("dana", "PUT", at, json={})).status_code == 403
    assert (await hall.send("eve", "GET", at)).status_code == 404
    clock.advance(seconds=25)
    assert [each["person"] for each in (await hall.ask("ada", "GET", at))["items"]] == ["user:ada@acme"]
    await hall.ask("ada", "DELETE", at, status=204)
    assert (await hall.ask("ada", "GET", at))["items"] == []
    assert await (await hall.hf.open()).documents("default", "presence") == []
