"""A small world of holds, twice: in memory and in a file. Whatever is done is done to both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import msgspec

from holdfast import Flow, Holdfast
from holdfast.errors import HoldfastError
from holdfast.holds.actions.decide import ResolveResult
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.deliverer import Deliverer
from holdfast.holds.service import HoldService
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.status import RunStatus
from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE, Actor
from tests.holds.notify.scene import Diary

FINANCE = frozenset({"finance"})
PEOPLE = {
    "ann": Actor(id="user:ann"),
    "bob": Actor(id="user:bob", groups=FINANCE),
    "cid": Actor(id="user:cid", groups=FINANCE, roles=frozenset({"cfo"})),
    "ada": Actor(id="user:ada", rights=frozenset({MANAGE})),
    "boss": Actor(id="user:boss", rights=frozenset({OVERRIDE})),
    "clerk": Actor(id="service:clerk", rights=frozenset({RESOLVE})),
    "agent": Actor(id="service:helper", rights=frozenset({RESOLVE}), channel="mcp"),
    "eve": Actor(id="user:ann", tenant="elsewhere", rights=frozenset({MANAGE, RESOLVE, OVERRIDE})),
}
_QUORUM = {"mode": "quorum", "need": 2, "of": ["group:finance", "user:ann"], "veto": ["role:cfo"]}
_IN_TURN = {"mode": "sequential", "of": ["user:ann", "role:cfo"]}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"assignee": "user:ann"},
    "nobody": {"assignee": None, "timeout": "5h"},
    "cancel": {"assignee": "group:finance", "timeout": "1h", "on_timeout": "cancel", "reminder": "15m"},
    "default": {"timeout": "2h", "on_timeout": "default", "default_option": "reject", "reminder": "15m"},
    "escalate": {"timeout": "1h", "on_timeout": "escalate:role:cfo", "reminder": "15m"},
    "ladder": {"ladder": [("1h", "role:cfo"), ("2h", "user:ada")], "timeout": "1h"},
    "expires": {"assignee": "role:cfo", "timeout": "1h", "late_resolution": "reject"},
    "quorum": {"assignee": "group:finance", "approval": _QUORUM},
    "sequential": {"approval": _IN_TURN, "timeout": "5h", "on_timeout": "cancel"},
    "duties": {"assignee": "group:finance", "approval": {"exclude": ["initiator"]}},
    "undo": {"assignee": "group:finance", "undo": 60},
}

Do = Callable[[HoldService, Actor, str, int], Awaitable[Any]]
TARGETS = ["user:bob", "group:finance", "role:cfo", "user:ann", None]
ACTS: dict[str, Do] = {
    "approve": lambda s, who, hold, n: s.resolve(who, hold, "approve", reason="because" if n % 2 else None),
    "reject": lambda s, who, hold, n: s.resolve(who, hold, {"decision": "reject", "comment": "no"}),
    "keyed": lambda s, who, hold, n: s.resolve(
        who, hold, ("approve", "reject")[n % 2], idempotency_key=f"k{n % 3}"
    ),
    "seen version": lambda s, who, hold, n: s.resolve(who, hold, "approve", if_match=n),
    "nonsense": lambda s, who, hold, n: s.resolve(who, hold, ("", "yes", "APPROVE", "default")[n % 4]),
    "place": lambda s, who, hold, n: s.place(who, hold, ("approve", "reject")[n % 2], seconds=n),
    "undo": lambda s, who, hold, n: s.undo(who, hold),
    "claim": lambda s, who, hold, n: s.claim(who, hold, seconds=600 * (n + 1)),
    "release": lambda s, who, hold, n: s.release(who, hold),
    "reassign": lambda s, who, hold, n: s.reassign(who, hold, TARGETS[n % len(TARGETS)]),
    "extend": lambda s, who, hold, n: s.extend(who, hold, s.store.now() + (n + 1) * 10**9),
    "cancel": lambda s, who, hold, n: s.cancel(who, hold, reason="not needed"),
    "ask back": lambda s, who, hold, n: s.ask_back(who, hold, "Why?", to=("user:bob", "agent")[n % 2]),
    "reply": lambda s, who, hold, n: s.reply(who, hold, "Because."),
    "drop question": lambda s, who, hold, n: s.withdraw_question(who, hold),
    "comment": lambda s, who, hold, n: s.comment(who, hold, "Hm."),
    "draft": lambda s, who, hold, n: s.save_draft(who, hold, {"decision": "approve"}),
    "watch": lambda s, who, hold, n: s.watch(who, hold),
    "snooze": lambda s, who, hold, n: s.snooze(who, hold, s.store.now() + (n + 1) * 10**9),
    "look": lambda s, who, hold, n: s.seen(who, hold),
}


class World:
    """One store, and everything that works on it."""

    def __init__(self, hf: Holdfast, store: Store, clock: FakeClock) -> None:
        self.hf, self.store, self.clock = hf, store, clock
        self.holds = HoldService(store)
        self.sweeper = HoldSweeper(store, clock)
        channels = Channels(store, clock, given=(Diary(),))
        self.deliverer = Deliverer(store, clock, channels)
        self.paid: list[str] = []
        self.flows = {kind: self._flow(kind, options) for kind, options in KINDS.items()}

    def _flow(self, kind: str, options: dict[str, Any]) -> Flow:
        flow = Flow(kind, effect="pure")
        given = {"assignee": "group:finance", "options": ["approve", "reject"], **options}
        ask = flow.hold("ask", prompt="Pay?", **given)

        @flow.node(effect="external", idempotency_key="pay")
        async def pay(_s: dict[str, Any], ctx: Any) -> dict[str, Any]:
            self.paid.append(ctx.run_id)
            return {"paid": True}

        flow.edge(ask, pay, when="decision == 'approve'")
        return flow

    async def asks(self, kind: str, number: int) -> str:
        await self.is_caught_up()
        # The same run under the same name in both worlds: then its hold has the same id too.
        run = str(UUID(int=number, version=4))
        result = await self.flows[kind].run({}, on=self.hf, run_id=run, started_by="user:bob")
        (hold,) = result.holds
        return hold.id

    async def is_caught_up(self) -> None:
        """Whoever drives a run sweeps what is due, if that takes long enough: here it is always done."""
        await self.sweeper.sweep()

    async def does(self, act: str, who: str, hold: str, number: int) -> Any:
        """What it came to, as both worlds must say it."""
        try:
            return told(await ACTS[act](self.holds, PEOPLE[who], hold, number))
        except HoldfastError as error:
            return error.code, error.status, error.message

    async def row(self, hold: str) -> HoldRow:
        found = await self.store.hold(hold)  # type: ignore[arg-type]
        assert found is not None
        return found

    async def goes_on(self, hold: str) -> RunStatus:
        await self.is_caught_up()
        row = await self.row(hold)
        status = (await self.store.get_run(row.run)).status  # type: ignore[union-attr]
        # A failed run would ask anew.
        if status is RunStatus.failed:
            return status
        return (await self.flows[row.flow].resume(row.run, on=self.hf)).status


def told(value: Any) -> Any:
    if isinstance(value, ResolveResult):
        return value.row, value.replay
    # What has a random name is the same but for that.
    return value if isinstance(value, HoldRow) else type(value)


def decision_of(row: HoldRow) -> str | None:
    said = msgspec.json.decode(row.resolution) if row.resolution else {}
    return said.get("effective_decision") or said.get("decision")
