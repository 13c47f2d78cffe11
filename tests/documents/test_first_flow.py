"""The document of the reference page, from its text to the decision."""

from __future__ import annotations

from pathlib import Path
from threading import current_thread, main_thread

import pytest

from holdfast import Holdfast
from holdfast.documents.program import program_for
from holdfast.holds.forms.json_schema import problems_in
from holdfast.model.fingerprint import decode_graph, encode_graph, graph_fingerprint
from holdfast.model.graph import NodeKind
from tests.cli.conftest import Cli
from tests.documents.run import answer, compiled, graph, site_of, start

REFUND = """
holdfast: "1.0"
name: refund
config: {scaiqueue: {scope: support}, defaults: {timeout: 30s}, connections: {bank: {kind: http}}}
input: {type: object, required: [amount], properties: {amount: {type: number}}}
variables: {risk: {type: number, default: 0}}
nodes:
  - {id: start, type: start}
  - {id: ask, type: hitl_review, label: Review, position: {x: 240, y: 0},
     config: {queue: reviews, timeout: 2d, on_timeout: cancel, prompt: "Refund {{amount}}?",
              sections: [{type: decision, options: [approve, reject]}]}}
  - {id: pay, type: python, config: {function: pay, args: {amount: "{{amount}}"}}}
  - {id: done, type: end}
edges:
  - {source: start, target: ask}
  - {source: ask, source_port: approve, target: pay}
  - {source: ask, source_port: reject, target: done}
  - {source: pay, target: done}
notes: [{id: n1, text: Policy 4.2}]
groups: [{id: g1, label: Money, nodes: [pay]}]
"""


def pay(amount: float) -> dict[str, object]:
    return {"id": "r-1", "amount": amount}


FUNCTIONS = {"pay": pay}


@pytest.mark.covers("FL-4", "CV-30")
async def test_run_of_a_document_waits_for_its_review_and_ends_with_the_decision_bound(hf: Holdfast) -> None:
    waiting = await start(hf, REFUND, {"amount": 12}, FUNCTIONS)
    assert waiting.status == "pending_input"
    [hold] = waiting.holds
    assert (hold.node, hold.prompt) == ("ask", "Refund 12?")

    ended = await answer(hf, waiting, "approve")

    assert ended.status == "completed"
    assert ended.state["decision"] == "approve"
    assert ended.artifacts["pay"] == {"id": "r-1", "amount": 12}


async def test_run_of_a_document_skips_the_payment_when_it_is_rejected(hf: Holdfast) -> None:
    ended = await answer(hf, await start(hf, REFUND, {"amount": 12}, FUNCTIONS), "reject")

    assert ended.status == "completed"
    assert "pay" not in ended.state


@pytest.mark.covers("FL-4", "SC-1")
async def test_review_is_one_hold_with_the_inherited_scope_in_its_target(hf: Holdfast) -> None:
    spec = graph(REFUND, FUNCTIONS)
    [ask] = [node for node in spec.nodes if node.kind is NodeKind.hold]
    assert ask.hold is not None
    assert ask.hold.target
    assert (ask.hold.target.scope, ask.hold.target.queue) == ("support", "reviews")
    assert ask.hold.target.hitl_spec["sections"][0]["type"] == "decision"

    waiting = await start(hf, REFUND, {"amount": 12}, FUNCTIONS)
    [row] = await (await hf.service()).holds(waiting.run_id)
    assert row.terms.queue == "support/reviews"


@pytest.mark.covers("CV-30", "CV-31")
def test_version_is_a_digest_of_the_meaning_and_the_graph_carries_it() -> None:
    spec = graph(REFUND, FUNCTIONS)

    assert graph_fingerprint(spec).startswith("canvas-")
    assert spec.document
    assert spec.document["dialect"] == "canvas"
    assert "notes" not in spec.document["source"]
    assert "label" not in spec.document["source"]["nodes"][1]
    stored = decode_graph(encode_graph(spec))
    assert graph_fingerprint(stored) == graph_fingerprint(spec)


@pytest.mark.covers("CV-4", "CV-31")
def test_version_stays_when_only_the_layout_changes() -> None:
    moved = REFUND.replace("x: 240, y: 0", "x: 1, y: 2").replace("label: Review", "label: Other")
    moved = moved.replace("Policy 4.2", "Policy 5").replace("label: Money", "label: Cash")

    assert graph_fingerprint(graph(moved, FUNCTIONS)) == graph_fingerprint(graph(REFUND, FUNCTIONS))
    changed = REFUND.replace("timeout: 2d", "timeout: 3d")
    assert graph_fingerprint(graph(changed, FUNCTIONS)) != graph_fingerprint(graph(REFUND, FUNCTIONS))


@pytest.mark.covers("CV-32")
def test_defaults_are_written_into_the_graph_for_nodes_that_do_work() -> None:
    nodes = {node.id: node for node in graph(REFUND, FUNCTIONS).nodes}

    assert nodes["pay"].timeout == 30_000_000
    assert nodes["start"].timeout is None
    hold = nodes["ask"].hold
    assert hold is not None
    assert hold.timeout == 2 * 86_400_000_000


@pytest.mark.covers("CV-5")
async def test_input_that_does_not_fit_starts_no_run(hf: Holdfast) -> None:
    from holdfast.errors import StateError

    with pytest.raises(StateError, match="amount"):
        await start(hf, REFUND, {"amount": "much"}, FUNCTIONS)
    with pytest.raises(StateError, match="amount"):
        await start(hf, REFUND, {}, FUNCTIONS)


@pytest.mark.covers("CV-5")
async def test_large_input_of_a_schedule_is_compared_beside_the_event_loop(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[bool] = []

    def compared(value: object, schema: object) -> list[str]:
        used.append(current_thread() is main_thread())
        return problems_in(value, schema)

    monkeypatch.setattr("holdfast.documents.program.problems_in", compared)
    program = program_for(compiled(REFUND, FUNCTIONS), site_of(FUNCTIONS))
    schedules = await hf.schedules()
    for number, more in enumerate(([], [1] * 2_000)):
        given = {"amount": 1, "more": more}
        await schedules.put(f"s{number}", program, every="1h", input=given, by="user:ops")
    assert used == [True, False]


def test_document_runs_from_the_command_line_and_resumes_with_its_functions(cli: Cli, tmp_path: Path) -> None:
    document, functions = tmp_path / "refund.yaml", tmp_path / "money_functions.py"
    document.write_text(REFUND)
    functions.write_text("def pay(amount):\n    return {'id': 'r-1', 'amount': amount}\n")

    assert cli("check", str(document), "--functions", str(functions)).code == 0
    unknown = cli("check", str(document))
    assert unknown.code == 1
    assert "function-unknown" in unknown.out

    given = ["--functions", str(functions), "--input", '{"amount": 12}', "--json"]
    waiting = cli("run", str(document), *given)
    assert waiting.code == 3
    assert cli("answer", waiting.json["id"], "approve").code == 0
    ended = cli("resume", waiting.json["id"], "--json")
    assert ended.json["status"] == "completed"
    assert ended.json["state"]["decision"] == "approve"
    assert ended.json["artifacts"]["pay"]["id"] == "r-1"
    assert "ask" in cli("graph", str(document)).out


def test_worker_with_the_functions_runs_a_detached_document(cli: Cli, tmp_path: Path) -> None:
    document, functions = tmp_path / "refund.yaml", tmp_path / "money_for_worker.py"
    document.write_text(REFUND.replace("type: hitl_review", "type: hitl_review, disabled: true"))
    document.write_text(
        'holdfast: "1.0"\nname: one\nnodes:\n  - {id: a, type: start}\n'
        "  - {id: b, type: python, config: {function: pay, args: {amount: 3}}}\n  - {id: c, type: end}\n"
        "edges:\n  - {source: a, target: b}\n  - {source: b, target: c}\n"
    )
    functions.write_text("async def pay(amount):\n    return amount * 2\n")

    started = cli("run", str(document), "--functions", str(functions), "--detach", "--json")
    assert started.code == 0
    assert cli("worker", "--functions", str(functions), "--until-idle").code == 0
    assert cli("show", started.json["id"], "--json").json["run"]["status"] == "completed"


def test_compiled_document_says_its_name_and_lists_no_problem() -> None:
    found = compiled(REFUND, FUNCTIONS)

    assert (found.name, found.problems) == ("refund", [])
