"""What is told of runs that ended around something: cancelled, superseded; and of calls inside a node."""

from __future__ import annotations

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.checkpoint.visit import Visit
from holdfast.reports.markdown import to_markdown
from holdfast.reports.postmortem import build_postmortem
from holdfast.runs.history.timeline import make_timeline
from holdfast.types.ids import RunId
from holdfast.types.record import Kind
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = pytest.mark.anyio


@pytest.mark.covers("TOOL-CLI-05", "TOOL-TIME-04")
async def test_a_superseded_run_waits_for_nobody_when_it_is_shown(bare_hf: Holdfast) -> None:
    flow = refund_flow()
    waiting = await flow.run(GIVEN, on=bare_hf)
    service = await bare_hf.service()
    await flow.rewind(waiting.run_id, 0, on=bare_hf)

    row = await service.get(waiting.run_id)
    line = await make_timeline(service, row)
    last = line.visits.all()[-1]
    assert (last.state, last.ended_at) == ("stopped", row.ended_at)
    assert all(wait.until for wait in last.waits)
    text = to_markdown(await build_postmortem(service, waiting.run_id))
    assert "The run was cancelled after" in text
    assert f"{last.node}: stopped" in text
    assert "under way" not in text


@pytest.mark.covers("TOOL-TIME-07")
async def test_a_cancelled_run_is_asked_to_have_been_cancelled(bare_hf: Holdfast) -> None:
    flow = refund_flow()
    waiting = await flow.run(GIVEN, on=bare_hf)
    service = await bare_hf.service()
    await service.cancel(waiting.run_id)
    await flow.resume(waiting.run_id, on=bare_hf)

    text = to_markdown(await build_postmortem(service, waiting.run_id))
    assert "the run cancelled" not in text.lower()
    assert "Closed: the run was cancelled." in text


@pytest.mark.covers("TOOL-TIME-07")
async def test_an_edge_that_was_chosen_and_taken_is_reported_once(bare_hf: Holdfast) -> None:
    flow = Flow("rounds", effect="read")

    @flow.node
    async def spin(s: dict[str, int]) -> dict[str, int]:
        return {"n": s["n"] + 1}

    @flow.node
    async def end() -> None: ...

    flow.start(spin)
    flow.loop(spin, spin, when="n < 2", max=5)
    flow.edge(spin, end, otherwise=True)
    result = (await flow.run({"n": 0}, on=bare_hf)).expect()

    text = await build_postmortem(await bare_hf.service(), result.run_id)
    last = [c for c in text.chapters if isinstance(c, Visit) and c.node == "spin"][-1]
    assert last.followed.count("spin->end") == 1


@pytest.mark.covers("TOOL-TIME-07", "D-21")
async def test_a_call_is_reported_with_its_own_effect_and_the_node_with_its(bare_hf: Holdfast) -> None:
    flow = Flow("calls")

    @flow.script(effect="read")
    async def work(ctx: Context) -> None:
        await ctx.step("pay", lambda: "paid", effect="external")
        await ctx.step("keep", lambda: "kept", effect="write")
        await ctx.step("look", lambda: "seen", effect="pure")
        await ctx.ask("Well?")

    flow.start(work)
    run = (await flow.run({}, on=bare_hf)).run_id
    service = await bare_hf.service()
    result = await build_postmortem(service, run)
    (chapter,) = [c for c in result.chapters if isinstance(c, Visit)]
    assert [(call.name, call.effect) for call in chapter.calls] == [
        ("pay", "external"),
        ("keep", "write"),
        ("look", "pure"),
    ]
    assert chapter.effect in ("", "read")
    intents = [r.effect for r in await service.store.read(RunId(run)) if r.kind == Kind.intent]
    assert intents == ["external", "write"]


@pytest.mark.covers("TOOL-CLI-05")
async def test_a_node_that_nobody_works_at_is_ready_not_running(bare_hf: Holdfast) -> None:
    flow = refund_flow()
    done = await flow.run(GIVEN, on=bare_hf)
    service = await bare_hf.service()
    made = await service.fork(done.run_id, 0)

    line = await make_timeline(service, made)
    assert [visit.state for visit in line.visits.all()] == ["ready"]


@pytest.mark.covers("TOOL-TIME-02", "TOOL-TIME-07")
async def test_calls_that_were_settled_before_a_fork_belong_to_it_too(bare_hf: Holdfast) -> None:
    flow, made = Flow("calls"), list[str]()

    def call(name: str, ctx: Context) -> str:
        made.append(name)
        ctx.spent(tokens=7)
        return name

    @flow.script(effect="read")
    async def work(ctx: Context) -> None:
        await ctx.step("first", call, "first", ctx, effect="read")
        await ctx.ask("Well?")
        await ctx.step("second", call, "second", ctx, effect="read")

    flow.start(work)
    source = (await flow.run({}, on=bare_hf)).run_id
    service = await bare_hf.service()
    fork = (await service.fork(source, (await service.get(source)).head)).id
    await flow.resume(fork, on=bare_hf)
    again = (await service.fork(fork, (await service.get(fork)).head)).id
    await flow.resume(again, on=bare_hf)
    assert made == ["first"]

    for run in (fork, again):
        assert [node for node in (await bare_hf.diff(source, run)).nodes if node.calls] == []
        result = await build_postmortem(service, run)
        (chapter,) = [c for c in result.chapters if isinstance(c, Visit)]
        assert [(c.name, c.effect, c.tokens) for c in chapter.calls] == [("first", "read", 7)]
        assert result.spent.tokens == 7


@pytest.mark.covers("TOOL-TIME-07")
async def test_a_report_calls_the_version_as_people_do(bare_hf: Holdfast) -> None:
    flow = Flow("named", version="spring", effect="read")

    @flow.node
    async def work() -> None: ...

    flow.start(work)
    run = (await flow.run({}, on=bare_hf)).run_id
    assert "named spring (g1-" in to_markdown(await build_postmortem(await bare_hf.service(), run))
