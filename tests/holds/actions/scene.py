"""Where the tests of a hold's life take place: runs that ask, and people with and without rights."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast import Flow, Holdfast, Result
from holdfast.holds.service import HoldService
from holdfast.testing.clock import FakeClock
from holdfast.types.audit import AuditRow
from holdfast.types.hold import HoldRow
from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE, Actor

DANA = Actor(id="user:dana@acme", channel="inbox", auth_method="session")
SAM = Actor(id="user:sam@acme", channel="inbox", auth_method="session", groups=frozenset({"finance"}))
FINN = Actor(id="user:finn@acme", groups=frozenset({"finance"}))
ADMIN = Actor(id="user:ada@acme", rights=frozenset({MANAGE}))
BOSS = Actor(id="user:boss@acme", rights=frozenset({OVERRIDE}))
CLERK = Actor(id="service:clerk", rights=frozenset({RESOLVE}))
FOREIGN = Actor(id="user:dana@acme", tenant="elsewhere", rights=frozenset({MANAGE, RESOLVE, OVERRIDE}))

YES_NO = ["approve", "reject"]


class Scene:
    def __init__(self, hf: Holdfast, clock: FakeClock, holds: HoldService) -> None:
        self.hf = hf
        self.clock = clock
        self.holds = holds
        self.flow = Flow("refund")
        self.results: dict[str, Result] = {}

    async def asks(
        self,
        *,
        assignee: str | None = "user:dana@acme",
        options: Any = YES_NO,
        run: dict[str, Any] | None = None,
        **asked: Any,
    ) -> HoldRow:
        """A run that has stopped at a hold, and the hold."""
        self.flow = flow = Flow("refund", effect="pure")
        flow.hold("approve", prompt="Pay 250?", options=options, assignee=assignee, **asked)
        result = await flow.run({"amount": 250}, on=self.hf, **(run or {}))
        (hold,) = result.holds
        return await self.row(hold.id)

    async def row(self, hold: str) -> HoldRow:
        found = await self.holds.store.hold(hold)  # type: ignore[arg-type]
        assert found is not None
        return found

    async def goes_on(self, row: HoldRow) -> Result:
        return await self.flow.resume(row.run, on=self.hf)

    async def audit(self, row: HoldRow, action: str | None = None) -> list[AuditRow]:
        found = await self.holds.store.audit(row.tenant, hold=row.id)
        return [each for each in found if action in (None, each.action)]

    async def topics(self, row: HoldRow) -> list[str]:
        return [each.topic for each in await self.holds.store.list_outbox(hold=row.id)]


def said(row: HoldRow) -> dict[str, Any]:
    assert row.resolution is not None
    return msgspec.json.decode(row.resolution)


def data(entry: AuditRow) -> dict[str, Any]:
    return msgspec.json.decode(entry.data)
