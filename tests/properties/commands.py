"""Random commands to a few runs, on any store: what each command answered, and the rows that are left.

The reference is the pure engine: it decides again from each journal (`replay`), and the position that it
reaches says which questions and timers are open and how the run stands.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec
from hypothesis import strategies as st

from holdfast import Context, Flow, Holdfast, HoldfastError, Result
from holdfast.runs.driver.load import load
from holdfast.runs.service import RunService
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED
from tests.flows.places import COLD

RUNS: Final = [RunId(f"{n}0000000-0000-4000-8000-000000000000") for n in range(2)]
POINTS: Final = (
    "after_settle",
    "inside_settle",
    "after_substep",
    "after_intent",
    "before_park",
    "after_park",
)
Command = tuple[Any, ...]


def gate(world: World) -> Flow:
    """A question with a deadline, and an effect after it."""
    flow = Flow("gate", effect="read")
    ask = flow.hold("ask", prompt="Pay {{amount}}?", options=["approve", "reject"], timeout="1h")

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
    """Parallel items, one of which may fail and be retried."""
    flow = Flow("items", effect="read")

    async def one(item: int) -> int:
        if item in world.broken:
            raise ValueError(f"{item} is broken")
        return item * 2

    @flow.node
    async def add(state: dict[str, Any]) -> dict[str, Any]:
        return {"sum": sum(state["made"])}

    each = flow.map("each", over="items", body=one, into="made", effect="read", retry=2)
    flow.edge(each, add)
    return flow


FLOWS: Final = {"gate": gate, "script": script, "items": items}
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
        try:
            return await getattr(self, f"_{command[0]}")(*command[1:])
        except HoldfastError as error:
            return ["error", error.code]

    async def _start(self, run: RunId, flow: str) -> Any:
        self.started.setdefault(run, flow)
        return _shown(await self.flows[flow].run(GIVEN, on=self.hf, run_id=run))

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

    async def _advance(self, seconds: int) -> Any:
        self.clock.advance(seconds=seconds)
        await (await self.hf.service()).runtime.sweep_holds()
        return await self.store.fire_timers(limit=100)

    async def _break(self, item: int) -> None:
        self.broken ^= {item}

    async def _crash(self, run: RunId, point: str, nth: int) -> Any:
        """The worker dies while it resumes the run, or lives if it does not come so far. Another follows."""
        with armed(point, nth=nth) as reached, suppress(Crash, HoldfastError):
            await self.flows[self.started.get(run, "gate")].resume(run, on=self.hf)
        self.clock.advance(seconds=31)
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
            "bodies": [repr(_plain(codec.decode(record), drop={"duration"})) for record in records],
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
        # A failed run whose resume is requested has not failed any more; the next record says so.
        assert row.status not in ENDED or pos.status == row.status


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
    )
    begin = st.tuples(st.just("start"), run, st.sampled_from(sorted(FLOWS)))
    return st.tuples(begin, st.lists(each, min_size=least, max_size=most)).map(
        lambda drawn: [drawn[0], *drawn[1]]
    )
