"""Where the tests of the review take place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast import Flow, Holdfast, Registrar
from holdfast.holds.links.open import Links
from holdfast.holds.notify.channel import ChannelScope, Delivery
from holdfast.holds.notify.notice import Notice
from holdfast.holds.service import HoldService
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.terms import Actor, Assignee


class Channel:
    """Takes what it is told, unless it is down."""

    name = "pager"
    personal = True
    scope = ChannelScope()

    def __init__(self) -> None:
        self.told: list[Notice] = []
        self.down = False

    @property
    def subjects(self) -> list[tuple[str, str]]:
        return [(each.to, each.subject) for each in self.told]

    async def addresses(self, to: Assignee, tenant: str) -> Sequence[str]:
        return (to.value,)

    async def admins(self) -> Sequence[str]:
        return ()

    async def send(self, notice: Notice) -> Delivery:
        if self.down:
            return Delivery(accepted=False, retry=True, detail="down")
        self.told.append(notice)
        return Delivery(accepted=True)


class Firm:
    def __init__(
        self, hf: Holdfast, clock: FakeClock, people: Registrar, channel: Channel, holds: HoldService
    ) -> None:
        self.hf = hf
        self.clock = clock
        self.people = people
        self.channel = channel
        self.holds = holds

    async def asks(self, *, run: dict[str, Any] | None = None, **asked: Any) -> HoldRow:
        """A run that has stopped at a hold, and the hold."""
        flow = Flow("refund", effect="pure")
        flow.hold("approve", prompt="Pay 250?", options=["approve", "reject"], **asked)
        (hold,) = (await flow.run({"amount": 250}, on=self.hf, **(run or {}))).holds
        return await self.row(hold.id)

    async def row(self, hold: str) -> HoldRow:
        found = await self.holds.store.hold(hold)  # type: ignore[arg-type]
        assert found is not None
        return found

    async def delivers(self) -> None:
        deliverer = (await self.hf.service()).runtime.deliverer
        assert deliverer is not None
        await deliverer.deliver()

    @property
    def links(self) -> Links:
        return Links(self.holds.ctx)


def person(name: str, *rights: str, **more: Any) -> Actor:
    return Actor(id=f"user:{name}", rights=frozenset(rights), **more)
