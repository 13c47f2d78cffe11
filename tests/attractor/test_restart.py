"""`loop_restart`: the walk begins anew in the same run, bounded and counted."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Holdfast, Outcome
from tests.attractor.stages import Stages

pytestmark = pytest.mark.anyio

ENDS = "start [shape=Mdiamond]; end [shape=Msquare];"
ROUND = "start -> plan -> work; work -> plan [label=anew, loop_restart=true]; work -> end [label=done];"


def pipeline(body: str, **said: Any) -> Stages:
    return Stages(f'digraph p {{ graph [goal="go", max_restarts=3]; {ENDS} {body} }}', **said)


@pytest.mark.covers("AT-A13", "AT-246", "ATTRACTOR-RUN-04")
async def test_the_walk_begins_anew_with_the_context_that_it_started_with(hf: Holdfast) -> None:
    seen: list[tuple[int, str, dict[str, Any]]] = []

    async def plan(ctx: Context, context: dict[str, Any]) -> Outcome:
        seen.append((ctx.restarts, ctx.came_by, context))
        return Outcome(update={"made": ctx.visit})

    stages = pipeline(ROUND, plan=plan, work=[Outcome(label="anew", update={"x": 1}), Outcome(label="done")])
    result = (await stages.run(hf, given="by hand")).expect()
    (first, by, context), (second, again, anew) = seen
    assert (first, by, second, again) == (0, "start->plan", 1, "work->plan")
    assert (context["graph.goal"], context["given"], context["outcome"]) == ("go", "by hand", "success")
    assert {k: v for k, v in anew.items() if not k.startswith("graph.")} == {"given": "by hand"}
    assert result.state["made"] == 2
    assert "x" not in result.state
    service = await hf.service()
    (text,) = [e for e in await service.events(result.run_id) if e.type == "walk.restarted"]
    assert (text.node, text.data["to"]) == ("work", "plan")


@pytest.mark.covers("ATTRACTOR-BOUND-03", "AT-A13", "AT-247")
@pytest.mark.parametrize(("graph", "limit"), [("", 3), ("graph [max_restarts=1];", 1)])
async def test_restarts_are_bounded(hf: Holdfast, graph: str, limit: int) -> None:
    stages = pipeline(graph + ROUND, work=Outcome(label="anew"))
    result = await stages.run(hf)
    assert result.error is not None
    assert f"restarted the walk {limit} times" in result.error.message
    assert stages.trace.count("plan") == limit + 1


async def test_restarts_are_bounded_by_default(hf: Holdfast) -> None:
    stages = Stages(f"digraph p {{ {ENDS} {ROUND} }}", work=Outcome(label="anew"))
    await stages.run(hf)
    assert stages.trace.count("plan") == 11


@pytest.mark.covers("AT-A11", "ATTRACTOR-BOUND-06")
async def test_visits_count_from_the_restart_and_gates_are_forgotten_by_it(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> plan -> work; plan [max_visits=2]; work [goal_gate=true, retry_target=plan];
        work -> more [condition="outcome=fail"]; more -> plan [label=again];
        more -> plan [label=anew, loop_restart=true]; work -> end""",
        work=[Outcome("fail")] * 3 + [Outcome()],
        more=[Outcome(label="again"), Outcome(label="anew"), Outcome(label="again")],
    )
    (await stages.run(hf)).expect()
    assert stages.trace.count("plan") == 4


@pytest.mark.covers("ATTRACTOR-RUN-04", "ATTRACTOR-BOUND-06")
async def test_the_count_of_restarts_is_durable_and_questions_are_asked_afresh(hf: Holdfast) -> None:
    rounds: list[int] = []

    async def work(ctx: Context, _seen: dict[str, Any]) -> Outcome:
        reply = await ctx.ask("Again?", options=["anew", "done"])
        rounds.append(ctx.restarts)
        return Outcome(label=reply.decision)

    stages = pipeline(ROUND, work=work)
    result = await stages.run(hf)
    service = await hf.service()
    asked: set[str] = set()
    for answer in ("anew", "anew", "done"):
        (hold,) = result.holds
        asked.add(hold.id)
        await service.answer(hold.id, answer)
        result = await stages.go_on(hf, result.run_id)
    result.expect()
    assert (rounds, len(asked)) == ([0, 1, 2], 3)
