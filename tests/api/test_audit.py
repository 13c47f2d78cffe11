"""The audit over HTTP: filtered, in pages, and checked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import Holdfast
from holdfast.api.routes import audit
from tests.api.people import Hall, hall_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf, hall_of(hf) as found:
        yield found


@pytest.mark.covers("SERVER-API-10", "SERVER-IN-06", "SERVER-API-14")
async def test_audit_is_filtered_and_read_in_pages(hall: Hall) -> None:
    holds = [await hall.asks() for _ in range(3)]
    for hold in holds[:2]:
        await hall.ask("dana", "POST", f"/v1/holds/{hold}/resolve", json={"decision": "approve"})

    async def read(**params: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = await hall.ask("ada", "GET", "/v1/audit", params={"limit": 2, **params})
            found += page["items"]
            if page["next"] is None:
                return found
            params["cursor"] = page["next"]

    everything = await read()
    assert [each["seq"] for each in everything] == [*range(1, len(everything) + 1)]
    assert {each["module"] for each in everything} == {"scaicore", "holdfast"}
    ours = await read(module="scaicore")
    assert [each["type"] for each in ours] == ["checkpoint.created"] * 3 + ["checkpoint.resolved"] * 2
    assert [each["checkpoint_id"] for each in await read(action="resolved")] == holds[:2]
    assert [each["action"] for each in await read(checkpoint=holds[0])] == ["created", "resolved"]
    assert {each["actor"] for each in await read(actor="user:dana@acme")} == {"user:dana@acme"}
    assert await read(module="nosuch") == []
    newest = await read(order="newest")
    assert [each["seq"] for each in newest] == [*range(len(newest), 0, -1)]
    decided = [each["checkpoint_id"] for each in newest if each["action"] == "resolved"]
    assert decided == [holds[1], holds[0]]
    for part in ({"actor_part": "DANA"}, {"action_part": "resol"}, {"text": '"decision":"APPROVE'}):
        assert [each["checkpoint_id"] for each in await read(order="newest", **part)] == decided
    assert [each["action"] for each in await read(order="newest", text=holds[2])] == ["created"]
    assert [each["action"] for each in await read(order="newest", checkpoint=holds[0])] == [
        "resolved",
        "created",
    ]
    assert await read(text="no such text") == []
    # As sentences, also for a search.
    asked = (await hall.ask("ada", "GET", f"/v1/holds/{holds[0]}"))["prompt"]
    said = f"dana approved, over the API (“{asked}”)"
    assert [each["text"] for each in await read(text="dana approved, over")] == [said] * 2
    assert len(await read(text=asked.upper(), action="resolved")) == 2
    assert ours[0]["text"].startswith("Asked of ")
    # Who may read the audit may not by that alone read what is asked.
    given = {"subject": "service:log", "rights": ["audit:read"]}
    hall.tokens["log"] = (await hall.ask("ada", "POST", "/v1/tokens", json=given, status=201))["token"]
    found = await hall.ask("log", "GET", "/v1/audit", params={"action": "resolved", "text": "dana approved"})
    assert [each["text"] for each in found["items"]] == ["dana approved, over the API"] * 2
    found = await hall.ask("log", "GET", "/v1/audit", params={"text": asked})
    assert found["items"] == []
    assert (await hall.ask("eve", "GET", "/v1/audit", params={"module": "scaicore"}))["items"] == []
    for who in ("dana", "clerk", "olga"):
        assert (await hall.send(who, "GET", "/v1/audit")).status_code == 403


@pytest.mark.covers("SERVER-API-10", "HI-5")
async def test_verify_finds_what_was_edited_and_what_was_cut_off(hall: Hall, tmp_path: Path) -> None:
    hold = await hall.asks()
    await hall.ask("dana", "POST", f"/v1/holds/{hold}/resolve", json={"decision": "approve"})
    head = await hall.ask("ada", "GET", "/v1/audit/head")
    known = {"against": {"seq": head["seq"], "hash": head["hash"]}}
    whole = await hall.ask("ada", "POST", "/v1/audit/verify", json=known)
    assert (whole["whole"], whole["records"], whole["problem"]) == (True, head["seq"], None)
    lost = {"against": {"seq": head["seq"] + 5, "hash": head["hash"]}}
    assert (await hall.ask("ada", "POST", "/v1/audit/verify", json=lost))["problem"] == "truncated"
    raw = apsw.Connection(str(tmp_path / "h.db"))
    for (name,) in [*raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]:
        if "audit" in name:
            raw.execute(f"DROP TRIGGER {name}")
    raw.execute("UPDATE audit SET actor = 'user:mallory' WHERE seq = 2")
    raw.close()
    broken = await hall.ask("ada", "POST", "/v1/audit/verify", json={})
    assert (broken["whole"], broken["problem"], broken["seq"]) == (False, "edited", 2)


async def test_newest_records_are_read_in_parts_and_a_part_without_a_match_has_a_next(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await hall.asks()
    last = (await hall.ask("ada", "GET", "/v1/audit/head"))["seq"]
    monkeypatch.setattr(audit, "_PAGE", 2)
    monkeypatch.setattr(audit, "MOST_READ", 2)
    seen, cursor = list[int](), None
    while True:
        params = {"order": "newest", "action_part": "created", "module": "scaicore"}
        page = await hall.ask(
            "ada", "GET", "/v1/audit", params=params | ({"cursor": cursor} if cursor else {})
        )
        seen += [each["seq"] for each in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == sorted(seen, reverse=True)
    assert (len(seen), seen[0]) == (3, last)
