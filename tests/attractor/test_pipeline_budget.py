"""The budget of a pipeline is one ledger for its run: tool loops and parallel branches draw on it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, Scripted, tool, tool_call
from holdfast.agents.messages import TokenUsage
from holdfast.attractor import Runner, stage_runner
from holdfast.attractor.backends.model import ModelBackend
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.registry import HandlerRegistry
from tests.attractor.run import dot, line, run

pytestmark = pytest.mark.anyio

TEN = [f"b{i}" for i in range(10)]


@tool(effect="read")
async def look(place: str) -> str:
    """Looks at a place."""
    return f"{place} is calm"


def looks(turns: int, **options: Any) -> Scripted:
    """40 tokens a turn: tool calls, then an answer."""
    calls = [tool_call("look", place=f"p{n}") for n in range(turns - 1)]
    return Scripted(*calls, "Done.", tokens=TokenUsage(30, 10), **options)


def spent(model: Scripted) -> int:
    return 40 * len(model.requests)


def branches(graph: str) -> str:
    stages = "fan [shape=component, max_parallel=10]; join [shape=tripleoctagon]; "
    stages += "".join(f'{name} [prompt="Do it"]; ' for name in TEN)
    links = "start -> fan; join -> done; " + "".join(f"fan -> {name} -> join; " for name in TEN)
    return dot(stages, links, graph)


@pytest.mark.covers("SAFE-BUDGET-01", "SAFE-BUDGET-02")
async def test_a_stage_with_a_tool_loop_does_not_pass_the_budget(hf: Holdfast, tmp_path: Path) -> None:
    model = looks(12)
    found = await run(
        hf,
        line('a [prompt="Look"];', "a", graph="budget_tokens=100"),
        tmp_path,
        backend=ModelBackend(model=model, tools=[look]),
    )
    assert found.status == "fail"
    assert spent(model) <= 100
    assert "the budget of 100 tokens" in found.outcome.failure_reason


@pytest.mark.covers("SAFE-BUDGET-01", "SAFE-BUDGET-02")
async def test_ten_branches_do_not_pass_the_budget(hf: Holdfast, tmp_path: Path) -> None:
    model = looks(1)
    backend = ModelBackend(model=model)
    found = await run(hf, branches("budget_tokens=200"), tmp_path, backend=backend)
    assert found.status == "fail"
    assert spent(model) == 200


@pytest.mark.covers("SAFE-BUDGET-03")
async def test_ten_branches_ask_one_question_and_the_grant_counts_for_all(
    hf: Holdfast, tmp_path: Path
) -> None:
    model = looks(1)
    runner = Runner(hf, logs_root=tmp_path, backend=ModelBackend(model=model))
    found = await runner.run(branches("budget_tokens=200, budget_ask_at=0.8"))
    assert found.status == "waiting"
    (hold,) = found.holds
    # It grants the same amount again: there is no field that would ask for JSON.
    assert hold.schema is None
    # 160 of 200, the fifth call would have brought 200.
    assert spent(model) == 160
    await (await hf.service()).answer(hold.id, "go on", by="user:dana")
    found = await runner.resume(found.run_id)
    (hold,) = found.holds
    assert spent(model) == 360
    await (await hf.service()).answer(hold.id, "go on", by="user:dana")
    found = await runner.resume(found.run_id)
    assert (found.status, spent(model)) == ("success", 400)


class Spending:
    """A handler of one's own: what it spends is known only afterwards."""

    def __init__(self) -> None:
        self.calls = 0

    async def execute(
        self, node: Any, context: Any, graph: Any, logs_root: Any, visit: StageVisit
    ) -> StageOutcome:
        self.calls += 1
        await asyncio.sleep(0)
        visit.ctx.spent(tokens=40)
        return StageOutcome()


class SpendingBackend:
    def __init__(self) -> None:
        self.calls = 0

    async def answer(self, visit: StageVisit, prompt: str) -> str:
        self.calls += 1
        await asyncio.sleep(0)
        visit.ctx.spent(tokens=40)
        return "Done."


@pytest.mark.covers("SAFE-BUDGET-02")
@pytest.mark.parametrize("limit", [200, 190])
async def test_branches_without_a_bound_of_their_own_spend_one_after_the_other(
    hf: Holdfast, tmp_path: Path, limit: int
) -> None:
    handler, backend = Spending(), SpendingBackend()
    text = branches(f"budget_tokens={limit}")
    found = await run(hf, text, tmp_path / "a", backend=backend)
    assert (found.status, backend.calls) == ("fail", 5)
    typed = text.replace('[prompt="Do it"]', "[type=spend, effect=read]")
    found = await run(hf, typed, tmp_path / "b", registry=HandlerRegistry({"spend": handler}))
    assert (found.status, handler.calls) == ("fail", 5)


@pytest.mark.covers("SAFE-BUDGET-03")
async def test_a_stage_that_is_stopped_at_a_threshold_is_not_routed_around(
    hf: Holdfast, tmp_path: Path
) -> None:
    model = looks(12)
    stages = 'a [prompt="Look"]; b [prompt="Else"];'
    links = (
        'start -> a; a -> done [condition="outcome=success"]; a -> b [condition="outcome=fail"]; b -> done'
    )
    runner = Runner(hf, logs_root=tmp_path, backend=ModelBackend(model=model, tools=[look]))
    found = await runner.run(dot(stages, links, "budget_tokens=100, budget_ask_at=0.8"))
    (hold,) = found.holds
    assert hold.prompt == "80 tokens of 100 tokens are used up in stage 'a'. Go on with 100 tokens more?"
    await (await hf.service()).answer(hold.id, "stop", by="user:dana")
    found = await runner.resume(found.run_id)
    assert (found.status, spent(model)) == ("fail", 80)
    assert "the budget was not raised at 80 tokens" in found.outcome.failure_reason
    assert "b" not in found.completed_nodes


@pytest.mark.covers("SAFE-BUDGET-01", "SAFE-BUDGET-03")
async def test_what_was_spent_and_granted_is_known_to_the_next_worker(tmp_path: Path) -> None:
    model = looks(12)
    text = line('a [prompt="Look"];', "a", graph="budget_tokens=100, budget_ask_at=0.8")
    run_id = ""
    used: list[int] = []
    found: Any = None
    while found is None or found.status == "waiting":
        async with Holdfast(f"sqlite:{tmp_path}/runs.db") as hf:
            runner = Runner(hf, logs_root=tmp_path, backend=ModelBackend(model=model, tools=[look]))
            found = await (runner.resume(run_id) if run_id else runner.run(text))
            run_id = found.run_id
            if found.status == "waiting":
                (hold,) = found.holds
                used.append(spent(model))
                await (await hf.service()).answer(hold.id, "go on", by="user:dana")
    # The thresholds are 80, 180, 280 and 380; a call takes 40.
    assert (found.status, spent(model), used) == ("success", 480, [80, 200, 280, 400])


async def check_as_before(visit: StageVisit) -> None:
    """What earlier versions did before a stage: calls with numbers, and the text of their question."""
    used = visit.ctx.totals.get("tokens", 0)
    over = [{"name": "tokens", "allowed": 100.0, "used": used, "unit": "tokens", "step": 100.0}]
    for each in await visit.ctx.step("budget", lambda: over if used >= 80 else [], effect="read"):
        await visit.ctx.ask(
            f"{each['used']:,.0f} tokens of 100 tokens are used up before stage {visit.stage.id!r}. "
            "Go on with 100 tokens more?",
            options=["go on", "stop"],
            context={"budget": "tokens", "used": each["used"], "allowed": each["allowed"]},
        )


@pytest.mark.covers("SAFE-BUDGET-03")
@pytest.mark.parametrize("decision", ["go on", "stop"])
async def test_a_run_that_an_earlier_version_left_at_its_question_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decision: str
) -> None:
    model = looks(2)
    text = line(
        'a [prompt="Look"]; b [prompt="Look"];', "a", "b", graph="budget_tokens=100, budget_ask_at=0.8"
    )
    async with Holdfast("memory:") as hf:
        runner = Runner(hf, logs_root=tmp_path, backend=ModelBackend(model=model, tools=[look]))
        with monkeypatch.context() as before:
            before.setattr(stage_runner, "check_budgets", check_as_before)
            found = await runner.run(text)
        (hold,) = found.holds
        assert "before stage 'b'" in hold.prompt
        await (await hf.service()).answer(hold.id, decision, by="user:dana")
        found = await runner.resume(found.run_id)
        assert found.status == ("success" if decision == "go on" else "fail")
        # 80 of 200 with the grant: no other question.
        assert spent(model) == (160 if decision == "go on" else 80)


def managed(folder: Path, child: str, graph: str) -> str:
    (folder / "child.dot").write_text(child)
    stages = 'a [prompt="Look"]; m [shape=house, manager.poll_interval=10ms]; b [prompt="Look"];'
    found = line(stages, "a", "m", "b", graph=graph)
    (folder / "parent.dot").write_text(found.replace("m [shape", 'm [stack.child_dotfile="child.dot", shape'))
    return str(folder / "parent.dot")


CHILD = 'c [prompt="Look"]; d [prompt="Look"]; e [prompt="Look"];'


@pytest.mark.parametrize(
    ("own", "calls"),
    [
        ("", 3),  # a, c, d: the last of its three does not fit
        ("budget_tokens=1000", 3),  # more than is left
        ("budget_tokens=40", 2),  # its own is less
    ],
)
async def test_the_child_of_a_manager_has_what_is_left_of_the_budget(
    hf: Holdfast, tmp_path: Path, own: str, calls: int
) -> None:
    model = looks(1)
    source = managed(tmp_path, line(CHILD, "c", "d", "e", graph=own), "budget_tokens=125")
    found = await run(hf, Path(source), tmp_path / "logs", backend=ModelBackend(model=model))
    assert (found.status, spent(model)) == ("fail", 40 * calls)
    assert "the budget of" in found.outcome.failure_reason


async def test_what_the_child_of_a_manager_spends_counts_for_the_manager(
    hf: Holdfast, tmp_path: Path
) -> None:
    model = looks(1)
    source = managed(tmp_path, line(CHILD.partition(" e ")[0], "c", "d"), "budget_tokens=125")
    found = await run(hf, Path(source), tmp_path / "logs", backend=ModelBackend(model=model))
    # a, c and d; nothing is left for b.
    assert (found.status, spent(model)) == ("fail", 120)
    assert found.completed_nodes == ("start", "a", "m", "b")
