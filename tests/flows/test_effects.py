from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Retry, RunStatus
from holdfast.store.protocols import Store
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.record import Kind, RunBatch, SettleAnswer
from tests.flows.places import Place, answer, open_holds, told

pytestmark = pytest.mark.anyio


class Outside:
    """The world: what was done to it, and how often."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def flow(self, *, fails: bool = False, **options: Any) -> Flow:
        flow = Flow("pay")

        @flow.node(**options)
        async def pay(ctx: Context) -> dict[str, Any]:
            self.done.append(ctx.idempotency_key)
            if fails and len(self.done) == 1:
                raise ConnectionError("reset by peer")
            return {"paid": len(self.done)}

        return flow


@pytest.mark.parametrize("effect", ["pure", "read"])
@pytest.mark.covers("G-25", "E11", "CORE-FLOW-31")
async def test_an_exception_is_a_failure_when_the_node_may_simply_run_again(
    hf: Holdfast, effect: str
) -> None:
    outside = Outside()
    result = await outside.flow(fails=True, effect=effect).run(on=hf)
    assert result.failed
    assert result.failed_node == "pay"
    (failed,) = await told(hf, result, "node.failed")
    assert failed.data["error"]["type"] == "ConnectionError"
    assert (await told(hf, result))[-1].type == "checkpoint.created"
    assert [e.type for e in await told(hf, result, "run.failed")] == ["run.failed"]


@pytest.mark.parametrize("effect", ["write", "external", None])
@pytest.mark.covers("D-15", "CORE-FLOW-31", "CORE-FLOW-33", "G-33")
async def test_an_exception_leaves_a_doubt_when_the_node_touches_the_outside(
    hf: Holdfast, effect: str | None
) -> None:
    outside = Outside()
    flow = outside.flow(fails=True, effect=effect, retry=Retry(3, delay=0))
    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    assert len(outside.done) == 1
    (hold,) = result.holds
    assert hold.type == "in_doubt"
    assert "reset by peer" in hold.prompt
    assert [option.id for option in hold.options or ()] == ["happened", "not_happened", "fail"]


@pytest.mark.covers("CORE-FLOW-31")
async def test_a_flow_may_set_another_default_class_when_its_nodes_declare_none(hf: Holdfast) -> None:
    flow = Flow("reads", effect="read")

    @flow.node
    async def look() -> dict[str, Any]:
        raise ValueError("no")

    assert (await flow.run(on=hf)).failed


@pytest.mark.covers("D-15", "CORE-FLOW-32", "CORE-CTX-09", "D-18")
async def test_an_effect_is_retried_under_the_same_key_when_it_declares_one(hf: Holdfast) -> None:
    outside = Outside()
    flow = outside.flow(
        fails=True, effect="external", idempotency_key="pay-{{order}}", retry=Retry(3, delay=0)
    )
    result = await flow.run({"order": "A17"}, on=hf)
    assert result.completed
    assert outside.done == ["pay-A17", "pay-A17"]


@pytest.mark.parametrize("key", ["pay-{{order}}", "{{order}}", "pay-{{order | json}}"])
@pytest.mark.parametrize("order", ["", None, [], {}])
async def test_a_key_that_other_runs_would_have_too_stops_the_run_before_the_effect(
    hf: Holdfast, key: str, order: Any
) -> None:
    outside = Outside()
    result = await outside.flow(effect="external", idempotency_key=key).run({"order": order}, on=hf)
    assert result.failed
    assert "order" in str(result.error)
    assert outside.done == []


async def test_a_part_of_a_key_that_has_a_default_may_be_empty(hf: Holdfast) -> None:
    outside = Outside()
    flow = outside.flow(effect="external", idempotency_key="pay-{{order}}{{part | default('')}}")
    assert (await flow.run({"order": "A17"}, on=hf)).completed
    assert outside.done == ["pay-A17"]


@pytest.mark.covers("D-18", "CORE-CTX-09")
async def test_the_key_is_stable_over_attempts_and_new_for_another_run(hf: Holdfast) -> None:
    outside = Outside()
    flow = outside.flow(fails=True, effect="external", in_doubt="retry")
    assert (await flow.run(on=hf)).completed
    assert len(outside.done) == 2
    assert len(set(outside.done)) == 1
    await flow.run(on=hf)
    assert len(set(outside.done)) == 2


@pytest.mark.covers("D-13", "G-35")
async def test_a_committed_effect_is_never_executed_again_when_what_follows_fails(hf: Holdfast) -> None:
    outside = Outside()
    flow = outside.flow(effect="external")
    mended = False

    @flow.node(effect="read")
    async def report() -> dict[str, Any]:
        if not mended:
            raise ValueError("not yet")
        return {"reported": True}

    flow.edge("pay", report)
    result = await flow.run(on=hf)
    assert result.failed
    mended = True
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert len(outside.done) == 1


@pytest.mark.covers("G-36", "E1", "C1", "R-33", "RF-1")
async def test_a_failed_effect_is_executed_again_when_its_run_is_resumed(hf: Holdfast) -> None:
    outside = Outside()
    flow = outside.flow(fails=True, effect="external", in_doubt="fail")

    @flow.node(effect="pure")
    async def report(s: dict[str, Any]) -> dict[str, Any]:
        return {"seen": s["paid"]}

    flow.edge("pay", report)
    result = await flow.run(on=hf)
    assert result.failed
    assert "report" not in {e.node for e in await told(hf, result, "node.started")}
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert result.state["seen"] == 2
    assert len(outside.done) == 2


class Counting:
    """A store that counts its commits, and passes everything on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commits: list[list[Kind]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _count(self, batches: Sequence[RunBatch]) -> None:
        self.commits += [[Kind(record.kind) for record in batch.records] for batch in batches]

    async def settle(self, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
        self._count(batches)
        return await self._store.settle(batches)

    def settle_now(self, batches: Sequence[RunBatch]) -> list[SettleAnswer] | None:
        answers = self._store.settle_now(batches)
        if answers is not None:
            self._count(batches)
        return answers


@pytest.mark.covers("D-14", "G-33")
async def test_a_chain_of_writes_costs_one_commit_each_when_one_worker_runs_it(hf: Holdfast) -> None:
    store = Counting(await hf.open())
    flow = Flow("chain")
    names = [f"w{i}" for i in range(5)]
    for name in names:

        async def write() -> dict[str, Any]:
            return {}

        flow.node(id=name, effect="write")(write)
    for a, b in itertools.pairwise(names):
        flow.edge(a, b)
    hf.register(flow.program())
    counted = Holdfast(store)  # pyright: ignore[reportArgumentType]
    result = await flow.run(on=counted)
    assert result.completed
    # The first node's intent, then each settle with the intent of the next; the last with the end.
    assert store.commits == [
        [Kind.intent],
        *[[Kind.step, Kind.intent]] * 4,
        [Kind.step, Kind.end],
    ]
    await counted.close()


@pytest.mark.covers("D-14", "G-33")
async def test_an_intent_is_stored_before_the_handler_is_called(hf: Holdfast) -> None:
    flow = Flow("intends")
    seen: list[int] = []

    @flow.node(effect="external")
    async def pay(ctx: Context) -> dict[str, Any]:
        store = await hf.open()
        seen.extend(r.kind for r in await store.read(ctx.run_id) if r.node == "pay")
        return {}

    assert (await flow.run(on=hf)).completed
    assert seen == [Kind.intent]


@pytest.mark.covers("D-14")
async def test_a_retried_effect_has_an_intent_of_its_own_before_it_starts_again(hf: Holdfast) -> None:
    outside = Outside()
    flow = outside.flow(fails=True, effect="external", idempotency_key="k", retry=Retry(2, delay=0))
    result = await flow.run(on=hf)
    store = await hf.open()
    kinds = [Kind(r.kind) for r in await store.read(result.run_id) if r.node == "pay"]
    assert kinds == [Kind.intent, Kind.attempt, Kind.attempt, Kind.intent, Kind.step]


@pytest.mark.covers("D-13", "G-35", "R-36")
async def test_committed_work_is_not_repeated_when_the_worker_dies_after_it(place: Place) -> None:
    outside = Outside()
    flow = outside.flow(effect="external")

    @flow.node(effect="write")
    async def note() -> dict[str, Any]:
        outside.done.append("note")
        return {"noted": True}

    flow.edge("pay", note)
    # The second intent travels with the settle of the first node: then the worker dies.
    run = await place.crash(flow, {}, "after_intent", nth=2)
    assert len(outside.done) == 1
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    assert result.status is RunStatus.pending_input
    await answer(hf, run, "not_happened")
    assert (await flow.resume(run, on=hf)).completed
    assert outside.done[1:] == ["note"]


@pytest.mark.parametrize("effect", ["pure", "read"])
@pytest.mark.covers("CORE-FLOW-31", "R-36")
async def test_a_node_without_effect_simply_runs_again_when_the_worker_died_in_it(
    place: Place, effect: str
) -> None:
    outside = Outside()
    flow = outside.flow(effect=effect)
    run = await place.crash(flow, {}, "after_handler")
    hf = await place.hf()
    assert (await flow.resume(run, on=hf)).completed
    assert len(outside.done) == 2


@pytest.mark.covers("D-15", "D-18")
async def test_an_effect_with_a_key_simply_runs_again_when_the_worker_died_in_it(place: Place) -> None:
    outside = Outside()
    flow = outside.flow(effect="external", idempotency_key="k-{{n}}")
    run = await place.crash(flow, {"n": 1}, "after_handler")
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    assert result.completed
    assert outside.done == ["k-1", "k-1"]
    assert not await open_holds(hf, run)


@pytest.mark.covers("G-33", "CORE-FLOW-33")
async def test_an_effect_is_in_doubt_and_not_repeated_when_the_worker_died_in_it(place: Place) -> None:
    outside = Outside()
    flow = outside.flow(effect="external")
    run = await place.crash(flow, {}, "after_handler")
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    assert result.status is RunStatus.pending_input
    assert len(outside.done) == 1
    (hold,) = result.holds
    assert hold.type == "in_doubt"
    assert hold.node == "pay"


@pytest.mark.covers("CORE-FLOW-34")
async def test_an_effect_runs_again_when_the_policy_says_retry_and_the_worker_died(place: Place) -> None:
    outside = Outside()
    flow = outside.flow(effect="external", in_doubt="retry")
    run = await place.crash(flow, {}, "after_handler")
    result = await flow.resume(run, on=await place.hf())
    assert result.completed
    assert len(outside.done) == 2


@pytest.mark.covers("CORE-FLOW-35")
async def test_a_run_fails_when_the_policy_says_fail_and_the_worker_died(place: Place) -> None:
    outside = Outside()
    flow = outside.flow(effect="external", in_doubt="fail")
    run = await place.crash(flow, {}, "after_handler")
    hf = await place.hf()
    result = await flow.resume(run, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "outcome_unknown"
    assert len(outside.done) == 1


@pytest.mark.covers("D-13")
async def test_no_effect_is_lost_or_doubled_when_the_worker_dies_again_and_again(place: Place) -> None:
    outside = Outside()
    flow = outside.flow(effect="external", idempotency_key="only")
    run = await place.crash(flow, {}, "after_intent")
    for _ in range(3):
        hf = await place.hf()
        with armed("after_intent"), pytest.raises(Crash):
            await flow.resume(run, on=hf)
        place.lapse()
    assert outside.done == []
    assert (await flow.resume(run, on=await place.hf())).completed
    assert outside.done == ["only"]


@pytest.mark.parametrize(
    ("mode", "commits"),
    [
        # Eight pure steps, then an effect. What shares a commit is what the modes differ in.
        ("strict", [*[[Kind.step]] * 7, [Kind.step, Kind.intent], [Kind.step, Kind.end]]),
        ("exit", [[Kind.step] * 8 + [Kind.intent], [Kind.step, Kind.end]]),
    ],
)
async def test_mode_decides_when_steps_are_committed_and_an_effect_never_starts_without_them(
    hf: Holdfast, mode: str, commits: list[list[Kind]]
) -> None:
    store = Counting(await hf.open())
    flow = Flow("modes", mode=mode)
    names = [f"n{i}" for i in range(9)]
    for name in names:

        async def work() -> dict[str, Any]:
            # Longer than the background would wait for company.
            await asyncio.sleep(0.03)
            return {}

        flow.node(id=name, effect="write" if name == "n8" else "pure")(work)
    flow.chain(*names)
    hf.register(flow.program())
    counted = Holdfast(store)  # pyright: ignore[reportArgumentType]
    assert (await flow.run(on=counted)).completed
    assert store.commits == commits
    await counted.close()
