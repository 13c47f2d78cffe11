"""Random commands to a few runs, on any store: what each command answered, and the rows that are left.

The reference is the pure engine: it decides again from each journal (`replay`), and the position that it
reaches says which questions and timers are open and how the run stands.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

from holdfast import Context, Flow, Holdfast, HoldfastError, Result
from holdfast.runs.driver.load import load
from holdfast.runs.service import RunService
from holdfast.store.copy import RULES
from holdfast.store.open import move_endpoint
from holdfast.store.protocols import Store
from holdfast.store.rows import RunFilter
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED
from holdfast.types.terms import MANAGE, RESOLVE, Actor
from tests.flows.places import COLD

RUNS: Final = [RunId(f"{n}0000000-0000-4000-8000-000000000000") for n in range(4)]
POINTS: Final = (
    "after_settle",
    "inside_settle",
    "after_substep",
    "after_intent",
    "before_park",
    "after_park",
)
EVERY_RIGHT: Final = frozenset({MANAGE, RESOLVE})
PEOPLE: Final = ("dana", "sam", "kim")
ACTIONS: Final = (
    "resolve", "vote", "place", "undo", "claim", "release", "reassign", "extend", "ask_back", "reply",
    "withdraw_question", "cancel",
)  # fmt: skip
VIEWS: Final = ("mine", "all")
Command = tuple[Any, ...]


def gate(world: World) -> Flow:
    """A question with a deadline, and an effect after it."""
    flow = Flow("gate", effect="read")
    ask = flow.hold(
        "ask", prompt="Pay {{amount}}?", options=["approve", "reject"], timeout="1h", assignee="user:dana"
    )

    @flow.node(effect="external", in_doubt="retry")
    async def pay(state: dict[str, Any]) -> dict[str, Any]:
        return {"paid": state["amount"]}

    @flow.node
    async def refuse() -> dict[str, Any]:
        return {"paid": 0}

    flow.start(ask)
    flow.edge(ask, pay, when="decision == 'approve'")
    flow.edge(ask, refuse, otherwise=True)
    return flow


def script(world: World) -> Flow:
    """Steps, a sleep and a question inside a node."""
    flow = Flow("script")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        found = await ctx.step("look", lambda: 7, effect="read")
        await ctx.sleep(600)
        reply = await ctx.ask("Continue?", options=["yes", "no"])
        await ctx.step("write", lambda: None, idempotent=True)
        return {"found": found, "said": reply.decision}

    return flow


def items(world: World) -> Flow:
    """Items, one of which may fail and be retried. One by one, each saved before the next begins: a crash
    finds the same records every time."""
    flow = Flow("items", effect="read", mode="strict")

    async def one(item: int) -> int:
        if item in world.broken:
            raise ValueError(f"{item} is broken")
        return item * 2

    @flow.node
    async def add(state: dict[str, Any]) -> dict[str, Any]:
        return {"sum": sum(state["made"])}

    each = flow.map("each", over="items", body=one, into="made", effect="read", retry=2, concurrency=1)
    flow.edge(each, add)
    return flow


def votes(world: World) -> Flow:
    """Two people in a row of holds, inside a sub-flow; one of the questions goes up a ladder."""
    inner = Flow("inner", effect="read")
    inner.hold(
        "both",
        prompt="Both?",
        options=["approve", "reject"],
        assignee="group:finance",
        approval={"mode": "quorum", "need": 2, "of": ["user:dana", "user:sam"]},
        timeout="1h",
        ladder=[{"to": "user:kim", "after": "1h"}],
    )
    flow = Flow("votes", effect="read")
    child = flow.subflow("child", inner, inputs={}, outputs={"said": "state.decision"})

    @flow.node(effect="read")
    async def keep(state: dict[str, Any], ctx: Context) -> dict[str, Any]:
        await ctx.memory.write(str(state["said"]))
        return {"kept": "x" * 50_000}

    flow.edge(child, keep)
    return flow


FLOWS: Final = {"gate": gate, "script": script, "items": items, "votes": votes}
GIVEN: Final = {"amount": 5, "items": [1, 2, 3]}


class World:
    """One store, with the workers that come and go on it."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.broken: set[int] = set()
        self.flows = {name: make(self) for name, make in FLOWS.items()}
        self.started: dict[RunId, str] = {}
        self.hf = self._worker()
        self._gone: list[Holdfast] = []

    def _worker(self) -> Holdfast:
        found = Holdfast(self.store, clock=self.clock, settings=COLD)
        for flow in self.flows.values():
            found.register(flow.program())
        return found

    async def close(self) -> None:
        for hf in (*self._gone, self.hf):
            await hf.close()

    async def perform(self, command: Command) -> Any:
        """The command's answer, without times."""
        # Records and events have the worker's name: the same for the same commands on another store.
        (await self.hf.service()).runtime.worker = f"worker-{len(self._gone)}"
        try:
            return await getattr(self, f"_{command[0]}")(*command[1:])
        except HoldfastError as error:
            return ["error", error.code]

    async def _start(self, run: RunId, flow: str) -> Any:
        self.started.setdefault(run, flow)
        return _shown(await self.flows[flow].run(GIVEN, on=self.hf, run_id=run, started_by="user:kim"))

    async def _resume(self, run: RunId) -> Any:
        flow = self.flows[self.started.get(run, "gate")]
        return _shown(await flow.resume(run, on=self.hf))

    async def _answer(self, run: RunId, number: int, option: str) -> Any:
        holds = sorted(await self.store.holds(run=run), key=lambda row: row.seq)
        hold = holds[number % len(holds)].id if holds else "none"
        row = await (await self.hf.service()).answer(hold, option, by="user:dana")
        return [row.status, row.version]

    async def _cancel(self, run: RunId) -> Any:
        return (await (await self.hf.service()).cancel(run)).status

    async def _hold(self, run: RunId, number: int, who: str, action: str) -> Any:
        """What a person does with a hold, besides deciding it once."""
        holds = sorted(await self.store.holds(run=run), key=lambda row: row.seq)
        hold, body = holds[number % len(holds)].id if holds else "none", {"decision": "approve"}
        harness, actor = await self.hf.holds(), Actor(id=f"user:{who}", rights=EVERY_RIGHT)
        more: dict[str, dict[str, Any]] = {
            "resolve": {"body": body, "idempotency_key": f"{who}-{number}", "reason": "because"},
            "vote": {"body": {"decision": "reject"}},
            "place": {"body": body, "seconds": 5, "reason": "because"},
            "reassign": {"to": "user:sam"},
            "claim": {"reason": "because"},
            "ask_back": {"text": "Why?"},
            "reply": {"text": "So."},
            "extend": {"until": timedelta(hours=5)},
        }
        found = await getattr(harness, action)(actor, hold, **more.get(action, {}))
        row = getattr(found, "row", found)
        return [row.status, row.version, row.assignee_value, row.claimed_by, row.placed_by]

    async def _fork(self, run: RunId, back: int) -> Any:
        return await self._branch(run, back, supersede=False)

    async def _rewind(self, run: RunId, back: int) -> Any:
        return await self._branch(run, back, supersede=True)

    async def _branch(self, run: RunId, back: int, *, supersede: bool) -> Any:
        """A fork or rewind of a few records ago; the next free id is its."""
        service, row = await self.hf.service(), await (await self.hf.service()).get(run)
        unused = [each for each in RUNS if await self.store.get_run(each) is None]
        if not unused:
            return None
        free = unused[0]
        make = service.rewind if supersede else service.fork
        made = await make(run, max(0, row.head - back), patch={"scratch": {"amount": 7}}, run_id=free)
        self.started[free] = row.flow
        return [made.status, made.head, made.forked_from]

    async def _prune(self, run: RunId, keep: int) -> Any:
        return await (await self.hf.service()).prune(run, keep=keep)

    async def _delete(self, run: RunId) -> Any:
        await (await self.hf.service()).delete(run)
        self.started.pop(run, None)

    async def _transfer(self, run: RunId) -> Any:
        """Out and in again, as history that cannot be changed."""
        service = await self.hf.service()
        data = await service.export_run(run)
        await service.delete(run)
        row = await service.import_run(data)
        return [row.status, row.read_only, row.head]

    async def _lists(self) -> Any:
        """What the lists of the inbox and of runs show, in their order."""
        harness, actor = await self.hf.holds(), Actor(id="user:dana", rights=EVERY_RIGHT)
        holds = {view: [row.id for row in (await harness.list(actor, view=view)).rows] for view in VIEWS}
        runs = await self.store.list_runs(RunFilter(), after=None, limit=50)
        whole = (await harness.verify_audit("default")).whole
        return [holds, [[row.id, row.status] for row in runs], whole]

    async def _advance(self, seconds: int) -> Any:
        self.clock.advance(seconds=seconds)
        await (await self.hf.service()).runtime.sweep_holds()
        return await self._fired()

    async def _fired(self) -> int:
        """Due timers have fired; how many are left. Instances that have a run in memory fire them too, as
        time goes on: which of them is first depends on how long the store takes."""
        while True:
            await self.store.fire_timers(limit=100)
            found = await self.store.fleet_figures(ages=())
            if not found.timers or (found.next_timer or 0) > 0:
                return found.timers
            await asyncio.sleep(0.001)

    async def _break(self, item: int) -> None:
        self.broken ^= {item}

    async def _crash(self, run: RunId, point: str, nth: int) -> Any:
        """The worker dies while it resumes the run, or lives if it does not come so far. Another follows."""
        with armed(point, nth=nth) as reached, suppress(Crash, HoldfastError):
            await self.flows[self.started.get(run, "gate")].resume(run, on=self.hf)
        self.clock.advance(seconds=31)
        await self._fired()
        self._gone.append(self.hf)
        self.hf = self._worker()
        return reached.reached

    # ------------------------------------------------------------------ rows
    async def rows(self) -> dict[str, Any]:
        service = await self.hf.service()
        return {run: await self._run(service, run) for run in sorted(self.started)}

    async def _run(self, service: RunService, run: RunId) -> Any:
        row = await self.store.get_run(run)
        if row is None:
            return None
        records = await self.store.read(run, first=0, last=None)
        codec = service.runtime.codec_for(service.runtime.program_for(row.version, row.flow))
        await self._assert_decided_by_the_engine(service, run)
        return {
            "run": _plain(row, drop={"worker", "lease_until", "key"}),
            "journal": [_plain(record, drop={"payload", "digest", "side", "size"}) for record in records],
            "bodies": [repr(_plain(codec.decode(record), drop=TIMED)) for record in records],
            "holds": [_plain(hold) for hold in await self.store.holds(run=run)],
            "events": [[e.type, e.node, e.scope, _steady(e.data)] for e in await service.events(run)],
            "audit": [[e.action, e.actor] for e in await self.store.audit(row.tenant) if e.run == run],
        }

    async def _assert_decided_by_the_engine(self, service: RunService, run: RunId) -> None:
        """The engine decides the same again, and its position says what the rows say."""
        found = await service.replay(run)
        assert found.same, found.difference
        row = await service.get(run)
        program = service.runtime.program_for(row.version, row.flow)
        codec = service.runtime.codec_for(program)
        loaded = await load(self.store, codec, program.graph, run, blobs=service.runtime.blobs)
        pos = loaded.pos
        # A hold that was decided or has expired stays open in the position until the run takes the answer.
        taken = {hold.id for hold in await self.store.holds(run=run) if hold.resumed_at is None}
        pending = {hold.id for hold in await service.holds(run)}
        assert pending <= set(pos.holds) <= taken
        # A failed run whose resume is requested has not failed any more; the next record says so. A run that
        # was replaced by a rewind is ended by that, and not by a record of its own.
        assert row.status not in ENDED or row.superseded_by or pos.status == row.status


def _shown(result: Result) -> Any:
    error = None if result.error is None else result.error.code
    return [result.status, error, sorted(result.state.items()), sorted(hold.prompt for hold in result.holds)]


def _plain(row: Any, drop: set[str] = frozenset()) -> dict[str, Any]:  # type: ignore[assignment]
    return {name: value for name, value in msgspec.structs.asdict(row).items() if name not in drop}


def _steady(data: Any) -> Any:
    """Without how long it took."""
    return {key: value for key, value in data.items() if key not in ("duration_us",)}


def commands(least: int, most: int) -> st.SearchStrategy[list[Command]]:
    run = st.sampled_from(RUNS)
    each = st.one_of(
        st.tuples(st.just("start"), run, st.sampled_from(sorted(FLOWS))),
        st.tuples(st.just("resume"), run),
        st.tuples(
            st.just("answer"), run, st.integers(0, 3), st.sampled_from(["approve", "reject", "yes", "x"])
        ),
        st.tuples(st.just("cancel"), run),
        st.tuples(st.just("advance"), st.sampled_from([1, 601, 4000])),
        st.tuples(st.just("break"), st.integers(1, 3)),
        st.tuples(st.just("crash"), run, st.sampled_from(POINTS), st.integers(1, 3)),
        st.tuples(st.just("hold"), run, st.integers(0, 3), st.sampled_from(PEOPLE), st.sampled_from(ACTIONS)),
        st.tuples(st.sampled_from(["fork", "rewind"]), run, st.integers(0, 9)),
        st.tuples(st.just("prune"), run, st.integers(1, 3)),
        st.tuples(st.sampled_from(["delete", "transfer"]), run),
        st.just(("lists",)),
    )
    begin = st.tuples(st.just("start"), run, st.sampled_from(sorted(FLOWS)))
    return st.tuples(begin, st.lists(each, min_size=least, max_size=most)).map(
        lambda drawn: [drawn[0], *drawn[1]]
    )


TIMED: Final = {"duration", "position", "base"}
"""Parts of records with the time that something took; what a position says is compared by the replay."""
UNSTEADY: Final = {
    "journal": ("payload", "digest", "size"),
    "events": ("payload",),
    "audit": ("prev", "hash"),
    "audit_heads": ("hash",),
    "turns": ("turn",),
}
"""Columns with the time that something took, with chained random ids, or with a dialect's own numbers."""
RANDOM_IDS: Final = ("audit", "hold_notes", "outbox")
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RENUMBERED: Final = {"inbox": "id", "outbox": "id", "holds": "number", "hold_notes": "number"}
"""SQLite gives the number of a deleted last row again; only the order counts."""
UNORDERED: Final = ("feed", "feed_marks")
"""How commits of parallel items fall together is not the same twice."""


async def tables_of(address: str) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table that a move of the store copies, in the form in which it does."""
    found: dict[str, list[dict[str, Any]]] = {}
    end = move_endpoint(address)
    try:
        await end.prepare()
        shapes = await end.shapes()
        for rule in RULES:
            shape, after = shapes[rule.table], None
            kept = found.setdefault(rule.table, [])
            drop = UNSTEADY.get(rule.table, ())
            while rule.table not in UNORDERED and (batch := await end.rows(shape, after)):
                rows = (dict(zip(shape.columns, row, strict=True)) for row in batch)
                kept += ({name: value for name, value in row.items() if name not in drop} for row in rows)
                after = shape.key_of(batch[-1])
            if rule.table in RANDOM_IDS:
                found[rule.table] = kept = _without_random_ids(kept)
            for number, row in enumerate(kept if rule.table in RENUMBERED else ()):
                row[RENUMBERED[rule.table]] = number
    finally:
        await end.close()
    return _with_first_keys(found)


def _with_first_keys(tables: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """A database that was emptied goes on with its numbers: the first run is 0, and so on."""
    ranks = {row["key"]: rank for rank, row in enumerate(tables["runs"])}
    for rows in tables.values():
        for row in rows:
            row.update({name: _ranked(row[name], ranks) for name in ("key", "run_key") if name in row})
    return tables


def _ranked(key: Any, ranks: dict[int, int]) -> Any:
    """The key of a record is that of its run, and its number in the lower half."""
    if isinstance(key, int) and key >= 1 << 32:
        return ranks.get(key >> 32, key >> 32), key & 0xFFFF_FFFF
    return ranks.get(key, key)


def _without_random_ids(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ids of questions are random: the first is 0, and so on."""
    seen: dict[str, str] = {}

    def steady(value: Any) -> Any:
        if isinstance(value, bytes):
            return steady(value.decode())
        if not isinstance(value, str):
            return value
        return _ID.sub(lambda found: seen.setdefault(found[0], f"id {len(seen)}"), value)

    return [{name: steady(value) for name, value in row.items()} for row in rows]
