"""Runs that wait for what no live worker has: found by version, and told of each change once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from holdfast.store.unserved import missing_mark
from holdfast.types.event import EventRow
from holdfast.types.fleet import WaitingRuns

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.ids import RunId

CODEX = ("agent:codex",)
VERSION = "attractor-1"


async def unserved_events(kit: StoreKit, run: RunId) -> list[tuple[str, list[str]]]:
    rows = [row for row in await kit.store.events(run, after=0, limit=99) if isinstance(row, EventRow)]
    return [(row.type, msgspec.json.decode(row.payload).get("missing", [])) for row in rows]


def group(mark: str = "", runs: int = 1) -> WaitingRuns:
    return WaitingRuns("main", "refund", VERSION, mark, runs)


@pytest.mark.anyio
class UnservedSuite:
    async def test_waiting_runs_are_counted_by_version_and_by_what_was_reported(self, kit: StoreKit) -> None:
        await kit.created(version=VERSION)
        await kit.created(version=VERSION)
        await kit.created(version=VERSION, lane="gpu")
        await kit.created(version="attractor-2")
        await kit.claimed(version=VERSION)
        assert await kit.store.waiting_runs(["attractor-3"]) == []
        gpu = msgspec.structs.replace(group(), lane="gpu")
        assert await kit.store.waiting_runs([VERSION]) == [gpu, group(runs=2)]
        assert await kit.store.tell_missing(group(), CODEX, limit=1) == 1
        found = await kit.store.waiting_runs([VERSION])
        assert found == [gpu, group(), group(missing_mark(CODEX))]

    async def test_each_change_is_one_event(self, kit: StoreKit) -> None:
        row = await kit.created(version=VERSION)
        other = await kit.created(version=VERSION, lane="gpu")
        for missing in (CODEX, CODEX, ("agent:codex", "program:git"), (), ()):
            await kit.store.tell_missing(group(), missing, limit=9)
        assert await unserved_events(kit, row.id) == [
            ("run.unserved", ["agent:codex"]),
            ("run.unserved", ["agent:codex", "program:git"]),
            ("run.served", []),
        ]
        assert await unserved_events(kit, other.id) == []
        shown = await kit.row(row.id)
        assert (shown.status, shown.head, shown.ready_at) == (row.status, row.head, row.ready_at)

    async def test_run_that_waits_for_something_else_has_an_event_of_its_own(self, kit: StoreKit) -> None:
        row = await kit.created(version=VERSION)
        other = await kit.created(version=VERSION)
        assert await kit.store.tell_run(row.id, CODEX) == 1
        assert await kit.store.tell_run(row.id, CODEX) == 0
        assert await kit.store.tell_missing(group(), (), limit=9, but=[row.id]) == 0
        assert await kit.store.tell_missing(group(), ("program:git",), limit=9, but=[row.id]) == 1
        assert await unserved_events(kit, row.id) == [("run.unserved", ["agent:codex"])]
        assert await unserved_events(kit, other.id) == [("run.unserved", ["program:git"])]
        await kit.claim(row.id)
        assert await kit.store.tell_run(row.id, ()) == 0

    async def test_run_that_was_claimed_is_said_to_wait_no_longer(self, kit: StoreKit) -> None:
        row = await kit.created(version=VERSION)
        assert await kit.store.tell_missing(group(), CODEX, limit=9) == 1
        assert await kit.store.tell_taken(limit=9) == 0
        await kit.claim(row.id)
        assert await kit.store.tell_taken(limit=9) == 1
        assert await kit.store.tell_taken(limit=9) == 0
        assert await unserved_events(kit, row.id) == [("run.unserved", ["agent:codex"]), ("run.served", [])]
