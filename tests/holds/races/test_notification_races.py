"""Reminders against reminders, decisions and deliverers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.holds.actions.decide import ResolveResult
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.deliverer import Deliverer
from holdfast.holds.notify.recipients import recipients_of
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.store.protocols import Store
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.outbox import REMINDED
from holdfast.types.status import HoldStatus
from tests.holds.notify.scene import Diary
from tests.holds.races.acts import DANA, resolves
from tests.holds.races.race import ROUNDS, Act, Arena

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-PG-14")]


class Post:
    """A channel that all deliverers share, and how often it was asked to remind of each hold."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.diary = Diary()
        self._lock = threading.Lock()

    def deliverer(self, store: Store) -> Deliverer:
        clock = self.arena.clock
        return Deliverer(store, clock, Channels(store, clock, given=(self.diary,)))

    def delivers(self) -> Act:
        async def act(store: Store, _row: HoldRow) -> Any:
            return await self.deliverer(store).deliver()

        return act

    def reminds(self) -> Act:
        async def act(store: Store, _row: HoldRow) -> Any:
            swept = await HoldSweeper(store, self.arena.clock).sweep()
            await self.deliverer(store).deliver()
            return swept

        return act

    def pings(self, row: HoldRow) -> int:
        return sum(each.hold == row.id and each.topic == REMINDED for each in self.diary.notices)

    async def is_told(self, row: HoldRow) -> None:
        """Of its opening; then its first reminder falls due."""
        await self.deliverer(self.arena.store).deliver()
        self.arena.clock.advance(minutes=15)

    async def is_asked_for_a_ping(self, row: HoldRow) -> None:
        await self.is_told(row)
        await HoldSweeper(self.arena.store, self.arena.clock).sweep()


@pytest.mark.covers("RC-6", "RE-5", "RE-2", "NO-8", "HOLD-PROOF-01")
async def test_one_ping_is_sent_and_counted_when_two_remind(arena: Arena) -> None:
    arena.asking(assignee=DANA.id, reminder="15m")
    post = Post(arena)

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        assert not [each for each in done if isinstance(each, Exception)], done
        await post.deliverer(arena.store).deliver()
        after = await arena.row(row.id)
        assert (post.pings(row), after.reminder_count) == (1, 1)
        assert len(await arena.audit(row, "reminded")) == 1
        assert after.notified_at == arena.clock.now()
        await arena.holds.resolve(DANA, row.id, "reject")
        return "once"

    await arena.race(post.reminds(), post.reminds(), judge=judge, before=post.is_told)


@pytest.mark.covers("NO-8", "NO-1", "HOLD-PROOF-01")
async def test_one_notice_is_sent_when_two_deliverers_work_at_once(arena: Arena) -> None:
    arena.asking(assignee=DANA.id)
    post = Post(arena)

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        assert sum(each.done for each in done) == 1, done
        assert [each.topic for each in post.diary.notices if each.hold == row.id] == ["hold.created"]
        after = await arena.row(row.id)
        assert (after.notification_sent, len(await arena.audit(row, "notified"))) == (True, 1)
        return "once"

    await arena.race(post.delivers(), post.delivers(), judge=judge, rounds=ROUNDS // 2)


@pytest.mark.covers("RC-7", "NO-9", "HOLD-PROOF-01")
async def test_nobody_is_reminded_of_what_is_decided_but_by_a_ping_that_was_under_way(arena: Arena) -> None:
    arena.asking(assignee=DANA.id, reminder="15m")
    post, outcomes = Post(arena), dict[str, int]()

    async def judge(row: HoldRow, done: Sequence[Any]) -> str:
        _, answer = done
        assert isinstance(answer, ResolveResult), answer
        sent = post.pings(row)
        known = [each for each in await recipients_of(arena.store, row.id) if each.topic == REMINDED]
        order = [each.action for each in await arena.audit(row) if each.action in ("reminded", "resolved")]
        after = await arena.row(row.id)
        assert (after.status, len(known)) == (HoldStatus.resolved, sent)
        # What was on its way is marked; it counts only where the hold was still open.
        assert all(each.late is ("reminded" not in order) for each in known)
        assert order in (["resolved"], ["reminded", "resolved"])
        assert after.reminder_count == order.count("reminded")
        outcomes[row.id] = sent
        return "late" if known and known[0].late else "sent" if sent else "none"

    await arena.race(post.delivers(), resolves(DANA), judge=judge, before=post.is_asked_for_a_ping)
    # Nor later: nobody hears of any of them again.
    for _ in range(2):
        arena.clock.advance(minutes=15)
        await HoldSweeper(arena.store, arena.clock).sweep()
        await post.deliverer(arena.store).deliver()
    assert {hold: post.pings(await arena.row(hold)) for hold in outcomes} == outcomes
    assert arena.is_short or {"sent", "none"} <= arena.seen | {"none" if "late" in arena.seen else ""}


@pytest.mark.covers("RC-7", "NO-9")
@pytest.mark.parametrize(("look", "sent"), [(1, 0), (2, 0), (3, 1)])
async def test_a_ping_is_sent_only_where_its_last_look_came_before_the_decision(
    arena: Arena, look: int, sent: int
) -> None:
    """A deliverer looks at the row when it takes a message up, before it sends, and to write that it did."""
    arena.asking(assignee=DANA.id, reminder="15m")
    post, row = Post(arena), await arena.asked()
    await post.is_asked_for_a_ping(row)
    looking = _Deciding(arena, row, look)
    await post.deliverer(looking).deliver()  # type: ignore[arg-type]
    assert (looking.looks >= look, post.pings(row)) == (True, sent)
    known = [each for each in await recipients_of(arena.store, row.id) if each.topic == REMINDED]
    assert [each.late for each in known] == [True] * sent
    assert (await arena.row(row.id)).reminder_count == 0


class _Deciding:
    """A handle at whose nth look at the row somebody has just decided."""

    def __init__(self, arena: Arena, row: HoldRow, nth: int) -> None:
        self._arena, self._row, self._nth = arena, row, nth
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arena.store, name)

    async def hold(self, hold: HoldId) -> HoldRow | None:
        self.looks += 1
        if self.looks == self._nth:
            await self._arena.holds.resolve(DANA, self._row.id, "approve")
        return await self._arena.store.hold(hold)
