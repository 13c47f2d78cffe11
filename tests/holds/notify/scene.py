"""An instance with a flow that asks, channels that write down what they get, and a deliverer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from holdfast import Flow, Holdfast
from holdfast.holds.notify.channel import ChannelScope, Delivery
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.deliverer import Deliverer
from holdfast.holds.notify.notice import Notice
from holdfast.holds.notify.settings import NotifySettings
from holdfast.holds.service import HoldService
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.terms import Assignee, operator

FAILS = Delivery(accepted=False, retry=True, detail="not now")
REFUSED = Delivery(accepted=False, detail="no such mailbox")


@dataclass
class Diary:
    """A channel that writes down what it is told. `answers`: what it says to each in turn, else yes."""

    name: str = "diary"
    personal: bool = True
    scope: ChannelScope = field(default_factory=ChannelScope)
    notices: list[Notice] = field(default_factory=list)
    answers: dict[str, list[Delivery]] = field(default_factory=dict)
    people: dict[str, Sequence[str]] = field(default_factory=dict)
    before: Callable[[Notice], Any] | None = None
    asked: list[Assignee] = field(default_factory=list)
    admin: tuple[str, ...] = ()

    async def addresses(self, to: Assignee, tenant: str) -> Sequence[str]:
        self.asked.append(to)
        return self.people.get(str(to), (to.value,) if to.type == "user" else ())

    async def admins(self) -> Sequence[str]:
        return self.admin

    async def send(self, notice: Notice) -> Delivery:
        if self.before is not None:
            await self.before(notice)
        self.notices.append(notice)
        turns = self.answers.get(notice.to)
        return turns.pop(0) if turns else Delivery(accepted=True)

    def told(self) -> list[tuple[str, str]]:
        return [(notice.topic, notice.to) for notice in self.notices]


@dataclass
class Scene:
    hf: Holdfast
    clock: FakeClock
    deliverer: Deliverer
    flow: Flow

    @property
    def store(self):
        return self.deliverer.store

    async def ask(self, **values: Any) -> HoldRow:
        result = await self.flow.run({"n": 3, **values}, on=self.hf)
        (row,) = await self.store.holds(run=result.run_id)
        return row

    async def row(self, row: HoldRow) -> HoldRow:
        found = await self.store.hold(row.id)
        assert found is not None
        return found

    @property
    def holds(self) -> HoldService:
        return HoldService(self.store)

    async def resolve(self, row: HoldRow, decision: str = "approve") -> None:
        await self.holds.resolve(operator(), row.id, {"decision": decision})

    async def actions(self, row: HoldRow) -> list[str]:
        return [each.action for each in await self.store.audit(row.tenant, hold=row.id)]


@asynccontextmanager
async def scene(
    *channels: Any,
    store: str = "memory:",
    settings: NotifySettings | None = None,
    directory: Any = None,
    **hold: Any,
) -> AsyncIterator[Scene]:
    clock = FakeClock()
    flow = Flow("refund", effect="read")
    asked: dict[str, Any] = {"assignee": "user:Dana@acme.example", "options": ["approve", "reject"], **hold}
    flow.hold("approve", prompt="Refund {{n}}?", **asked)
    async with Holdfast(store, clock=clock) as hf:
        opened = await hf.open()
        made = Channels(opened, clock, settings=settings, directory=directory, given=channels)
        yield Scene(hf, clock, Deliverer(opened, clock, made), flow)
