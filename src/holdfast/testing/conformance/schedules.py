"""Schedules: kept with a revision, and found when they are due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.types.clock import MICROS
from holdfast.types.schedule import ScheduleRow

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit

FLOWS = ("report", "sweep")


def row(name: str = "nightly", next_at: int | None = None, **given: Any) -> ScheduleRow:
    fields: dict[str, Any] = {"tenant": "default", "flow": "report", "body": b"{}", "name": name}
    return ScheduleRow(**{**fields, **given}, next_at=next_at)


@pytest.mark.anyio
@pytest.mark.covers("FLEET-WORK-10")
class ScheduleSuite:
    async def test_schedule_comes_back_as_it_was_put(self, kit: StoreKit) -> None:
        given = row(next_at=7, last_at=5, last_run="r", body=b'{"cron":"* * * * *"}')
        put = await kit.store.put_schedule(given)
        assert put == await kit.store.schedule("default", "nightly")
        assert put is not None
        assert (put.body, put.next_at, put.last_at, put.last_run) == (given.body, 7, 5, "r")
        assert (put.revision, put.updated_at) == (1, kit.clock.now())
        assert await kit.store.schedule("acme", "nightly") is None

    async def test_schedule_is_written_only_over_the_revision_that_was_read(self, kit: StoreKit) -> None:
        assert await kit.store.put_schedule(row(), expect=1) is None
        assert await kit.store.put_schedule(row(), expect=0) is not None
        assert await kit.store.put_schedule(row(), expect=0) is None
        second = await kit.store.put_schedule(row(next_at=9, flow="sweep"), expect=1)
        assert second is not None
        assert (second.revision, second.next_at, second.flow) == (2, 9, "sweep")
        assert await kit.store.put_schedule(row(), expect=1) is None
        assert await kit.store.schedule("default", "nightly") == second
        third = await kit.store.put_schedule(row())
        assert third is not None
        assert (third.revision, third.next_at) == (3, None)

    async def test_one_of_many_advances_what_all_read(self, kit: StoreKit) -> None:
        await kit.store.put_schedule(row(next_at=1))

        async def contend(store: Store, number: int) -> bool:
            return await store.put_schedule(row(next_at=2, last_run=str(number)), expect=1) is not None

        won = await kit.race(6, contend)
        assert sum(won) == 1
        found = await kit.store.schedule("default", "nightly")
        assert found is not None
        assert (found.last_run, found.revision) == (str(won.index(True)), 2)

    async def test_schedules_are_listed_by_tenant_and_name(self, kit: StoreKit) -> None:
        for tenant, name in (("b", "x"), ("a", "y"), ("a", "x"), ("b", "a")):
            await kit.store.put_schedule(row(name, tenant=tenant, body=f"{tenant}/{name}".encode()))

        async def bodies(*given: Any, **how: Any) -> list[bytes]:
            return [found.body for found in await kit.store.schedules(*given, **how)]

        assert await bodies() == [b"a/x", b"a/y", b"b/a", b"b/x"]
        assert await bodies("a") == [b"a/x", b"a/y"]
        assert await bodies(after=("a", "y"), limit=1) == [b"b/a"]
        assert await bodies("nobody") == []

    async def test_due_schedules_are_those_whose_time_has_come_the_longest_due_first(
        self, kit: StoreKit
    ) -> None:
        now = kit.clock.now()
        for name, at in (("later", now + MICROS), ("now", now), ("early", now - MICROS), ("paused", None)):
            await kit.store.put_schedule(row(name, at))
        await kit.store.put_schedule(row("other", now - 2 * MICROS, flow="sweep"))

        async def due(*flows: str, limit: int = 9) -> list[str]:
            return [found.name for found in await kit.store.due_schedules(flows, limit=limit)]

        assert await due("report") == ["early", "now"]
        assert await due(*FLOWS) == ["other", "early", "now"]
        assert await due(*FLOWS, limit=1) == ["other"]
        assert await due("unknown") == await due() == []
        kit.clock.advance(seconds=1)
        assert await due("report") == ["early", "now", "later"]

    async def test_next_schedule_is_the_earliest_of_these_flows(self, kit: StoreKit) -> None:
        assert await kit.store.next_schedule(FLOWS) is None
        await kit.store.put_schedule(row("a", 50))
        await kit.store.put_schedule(row("b", 40, flow="sweep"))
        await kit.store.put_schedule(row("c", None))
        assert await kit.store.next_schedule(FLOWS) == 40
        assert await kit.store.next_schedule(("report",)) == 50
        assert await kit.store.next_schedule(()) is None

    async def test_dropped_schedule_is_gone_and_new_when_put_again(self, kit: StoreKit) -> None:
        await kit.store.put_schedule(row(next_at=1))
        assert await kit.store.drop_schedule("default", "nightly")
        assert not await kit.store.drop_schedule("default", "nightly")
        assert await kit.store.schedule("default", "nightly") is None
        assert await kit.store.due_schedules(FLOWS, limit=9) == []
        assert await kit.store.put_schedule(row(), expect=0) is not None
