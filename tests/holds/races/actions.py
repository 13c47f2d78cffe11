"""What is done to a hold before and after a death, and whether it happened once. See `dying`."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from holdfast import Flow, Holdfast
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.deliverer import Deliverer
from holdfast.holds.notify.notice import Notice
from holdfast.holds.service import HoldService
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.testing.clock import START, FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId
from holdfast.types.terms import MANAGE, Actor
from tests.holds.notify.scene import Diary

RUN = RunId(str(UUID(int=7, version=4)))
DANA = Actor(id="user:dana@acme")
ADMIN = Actor(id="user:ada@acme", rights=frozenset({MANAGE}))
WRITES = {
    "change_hold",
    "send",
    "settle",
    "claim",
    "claim_outbox",
    "finish_outbox",
    "park",
    "release",
    "append_audit",
}


class Fate:
    """The points that are passed, and the one that is the last."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.passed: list[str] = []

    def point(self, name: str) -> None:
        self.passed.append(name)
        if len(self.passed) == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


class Mortal:
    """A store whose user may die before and after each write."""

    def __init__(self, store: Store, fate: Fate) -> None:
        self._store, self._fate = store, fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name == "settle_now":
            return self._at_once(found)
        if name not in WRITES:
            return found

        async def write(*args: Any, **given: Any) -> Any:
            self._fate.point(f"before {name}")
            done = await found(*args, **given)
            self._fate.point(f"after {name}")
            return done

        return write

    def _at_once(self, settle: Callable[..., Any]) -> Callable[..., Any]:
        """A record that is written without a wait, where the writer has nothing else to do."""

        def write(*args: Any) -> Any:
            self._fate.point("before settle")
            done = settle(*args)
            self._fate.point("after settle")
            return done

        return write


class Scene:
    """One database, at some hour of the same day."""

    def __init__(self, folder: Path, hours: float, fate: Fate | None = None) -> None:
        self.folder, self.fate = folder, fate or Fate(0)
        self.clock = FakeClock(START + timedelta(hours=hours))

    async def open(self) -> Scene:
        inner = await open_store(f"sqlite:{self.folder / 'h.db'}", clock=self.clock)
        self.store: Store = Mortal(inner, self.fate)  # type: ignore[assignment]
        self.hf = Holdfast(self.store, clock=self.clock)
        self.holds = HoldService(self.store)
        self.sweeper = HoldSweeper(self.store, self.clock)
        diary = Diary(before=self._sent)
        channels = Channels(self.store, self.clock, given=(diary,))
        self.deliverer = Deliverer(self.store, self.clock, channels)
        return self

    async def _sent(self, notice: Notice) -> None:
        self._write("sent", notice.id)
        self.fate.point("after sending")

    def _write(self, what: str, key: str) -> None:
        with (self.folder / what).open("a") as file:
            file.write(f"{key}\n")

    def happened(self, what: str) -> list[str]:
        file = self.folder / what
        return file.read_text().splitlines() if file.exists() else []

    def flow(self, **asked: Any) -> Flow:
        """A question, a payment at a bank that knows our key, and another question."""
        flow = Flow("refund", effect="pure")
        given = {"options": ["approve", "reject"], "assignee": DANA.id, **asked}
        first = flow.hold("first", prompt="Pay?", **given)

        @flow.node(effect="external", idempotency_key="order-1")
        async def pay(_s: dict[str, Any], ctx: Any) -> dict[str, Any]:
            if ctx.idempotency_key not in self.happened("paid"):
                self._write("paid", ctx.idempotency_key)
            return {"paid": True}

        second = flow.hold("second", prompt="Post it?", options=["yes", "no"], bind="posted")
        flow.edge(first, pay, when="decision == 'approve'")
        flow.edge(pay, second)
        return flow

    async def first(self) -> HoldRow:
        (row,) = [row for row in await self.store.holds(run=RUN) if row.node == "first"]  # type: ignore[arg-type]
        return row

    async def topics(self, row: HoldRow) -> list[str]:
        return [each.topic for each in await self.store.list_outbox(hold=row.id)]

    async def actions(self, row: HoldRow) -> list[str]:
        return [each.action for each in await self.store.audit(row.tenant, hold=row.id)]


# ---------------------------------------------------------------------- deeds
async def resolve(scene: Scene) -> None:
    await scene.holds.resolve(DANA, (await scene.first()).id, "approve", idempotency_key="once")


async def sweep(scene: Scene) -> None:
    await scene.sweeper.sweep()


async def deliver(scene: Scene) -> None:
    await scene.deliverer.deliver()


async def go_on(scene: Scene) -> None:
    await resolve(scene)
    await scene.flow(**EXPIRES).resume(RUN, on=scene.hf)


async def whole_or_nothing(scene: Scene, done: str, topic: str) -> None:
    """What a transaction writes is all there, or nothing of it."""
    row, actions = await scene.first(), await scene.actions(await scene.first())
    happened = done in actions
    assert actions.count(done) == happened
    assert (await scene.topics(row)).count(topic) == happened
    assert (row.status != "pending" or row.epoch > 1) is happened
    mail = (await scene.store.pending(row.run))[1]
    assert len(mail) == (happened and done == "resolved")


async def resolved_once(scene: Scene) -> None:
    await whole_or_nothing(scene, "resolved", "hold.closed")
    await resolve(scene)
    await goes_on_once(scene)


async def swept_once(scene: Scene) -> None:
    await whole_or_nothing(scene, "resolved", "hold.closed")
    await sweep(scene)
    await goes_on_once(scene)


async def goes_on_once(scene: Scene) -> None:
    for _ in range(2):
        result = await scene.flow(**EXPIRES).resume(RUN, on=scene.hf)
    row = await scene.first()
    assert (row.status, (await scene.actions(row)).count("resolved")) == ("resolved", 1)
    assert row.resumed_at is not None
    assert len(scene.happened("paid")) == 1
    # The next question is asked once, and nothing else is left to do.
    (asked,) = result.holds
    assert [each.node for each in await scene.store.holds(run=row.run)] == ["first", "second"]
    assert (asked.node, (await scene.topics(asked)).count("hold.created")) == ("second", 1)
    assert (await scene.store.pending(row.run))[1] == []


async def went_on_once(scene: Scene) -> None:
    await resolve(scene)
    await goes_on_once(scene)


async def escalated_once(scene: Scene) -> None:
    await whole_or_nothing(scene, "escalated", "hold.escalated")
    await sweep(scene)
    row = await scene.first()
    assert (row.status, row.epoch, row.escalation_count) == ("pending", 2, 1)
    assert (row.assignee, (await scene.actions(row)).count("escalated")) == ("group:leads", 1)
    assert (await scene.topics(row)).count("hold.escalated") == 1
    assert row.expires_at is not None
    assert row.expires_at > scene.clock.now()


async def told_once(scene: Scene) -> None:
    """A notice that left the instance a moment before the death leaves it again, under the same id."""
    await deliver(scene)
    row = await scene.first()
    assert row.notification_sent
    assert (await scene.actions(row)).count("notified") == 1
    assert set(scene.happened("sent")) == {f"{row.id}:hold.created:1"}
    before = len(scene.happened("sent"))
    assert before <= 2
    await deliver(scene)
    assert len(scene.happened("sent")) == before


async def reminded_once(scene: Scene) -> None:
    for _ in range(2):
        await sweep(scene)
        await deliver(scene)
    row = await scene.first()
    assert row.reminder_count == (await scene.actions(row)).count("reminded") == 1
    assert len(set(scene.happened("sent"))) == 2  # of the opening, and of the reminder


async def remind(scene: Scene) -> None:
    await sweep(scene)
    await deliver(scene)


async def withdraw(scene: Scene) -> None:
    await scene.holds.cancel(ADMIN, (await scene.first()).id)


async def stop(scene: Scene) -> None:
    await (await scene.hf.service()).cancel(RUN)


async def withdrawn_once(scene: Scene) -> None:
    await withdraw(scene)
    await cancelled_once(scene)


async def stopped_once(scene: Scene) -> None:
    await stop(scene)
    await cancelled_once(scene)


async def cancelled_once(scene: Scene) -> None:
    for _ in range(2):
        result = await scene.flow().resume(RUN, on=scene.hf)
    row = await scene.first()
    assert (result.status, row.status) == ("cancelled", "cancelled")
    assert (await scene.actions(row)).count("cancelled") == 1
    assert (await scene.topics(row)).count("hold.closed") == 1
    assert scene.happened("paid") == []
    assert [each.node for each in await scene.store.holds(run=row.run)] == ["first"]


EXPIRES = {"timeout": "1h", "on_timeout": "default", "default_option": "approve"}
Deed = Callable[[Scene], Awaitable[None]]
# What is asked, the deed, whether it came out right, and whether people were told of the question before.
DEEDS: dict[str, tuple[dict[str, Any], Deed, Deed, bool]] = {
    "resolve": (EXPIRES, resolve, resolved_once, True),
    "expire": (EXPIRES, sweep, swept_once, True),
    "escalate": ({"timeout": "1h", "on_timeout": "escalate:group:leads"}, sweep, escalated_once, True),
    "deliver": ({}, deliver, told_once, False),
    "remind": ({"reminder": "15m"}, remind, reminded_once, True),
    "go on": (EXPIRES, go_on, went_on_once, True),
    "withdraw": ({}, withdraw, withdrawn_once, True),
    "stop": ({}, stop, stopped_once, True),
}
