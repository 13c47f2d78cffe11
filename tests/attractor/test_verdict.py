"""One verdict for every backend: its form, how it is asked for, where it is read and which one counts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from holdfast import Holdfast
from holdfast.attractor import Runner
from holdfast.attractor.backends.cli import CommandBackend
from holdfast.attractor.export import export_directory
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.runner import PipelineResult
from holdfast.attractor.verdict import (
    PLACEHOLDER,
    VerdictError,
    VerdictSource,
    block_in,
    judge,
    outcome_of,
    structured_in,
    verdict_schema,
)
from tests.agents.conftest import provider
from tests.agents.provider import Answer, Provider
from tests.attractor.models import backend as model_backend
from tests.attractor.run import dot, line, run, whole, written

__all__ = ["provider"]
pytestmark = pytest.mark.anyio

WHOLE = {
    "outcome": "fail",
    "preferred_label": "Fix",
    "suggested_next_ids": ["fix"],
    "notes": "two tests are red",
    "failure_reason": "test_login fails",
    "context_updates": {"red": 2},
    "score": 0.25,
    "verdict_id": "v0a1b2c3",
}
TO_FILE = '>"$ATTRACTOR_STAGE_DIR/status.json"'
PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "verdict.schema.json"
FORKED = dot("a; fix;", "start -> a; a -> done [label=Ship]; a -> fix [label=Fix]; fix -> done")
GATE = line('a [prompt="Test it", goal_gate=true, auto_status=false];', "a")


def block(**fields: Any) -> str:
    return f"```json\n{json.dumps(fields)}\n```"


def prose_then(*answers: str) -> tuple[list[str], Callable[[str], str]]:
    """A function that gives these answers, and what it was asked."""
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return answers[min(len(asked), len(answers)) - 1]

    return asked, answer


def agent(folder: Path, script: str) -> CommandBackend:
    file = folder / "agent"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return CommandBackend(str(file))


def status_of(result: PipelineResult, stage: str = "a") -> dict[str, Any]:
    return json.loads(written(result.logs_root / stage / "status.json"))


# ---------------------------------------------------------------------- the form
@pytest.mark.covers("CP2-V1")
def test_the_schema_is_published_and_accepts_what_is_read() -> None:
    schema = verdict_schema()
    assert json.loads(PUBLISHED.read_text()) == schema
    assert set(schema["properties"]) == set(WHOLE)
    jsonschema.validate(WHOLE, schema)
    found = outcome_of(WHOLE)
    assert (found.status, found.preferred_label, found.score) == ("fail", "Fix", 0.25)
    assert (found.suggested_next_ids, found.context_updates) == (("fix",), {"red": 2})
    assert (found.notes, found.failure_reason) == (WHOLE["notes"], WHOLE["failure_reason"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"notes": "no outcome"}, schema)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "status.json has no outcome"),
        ({"outcome": 3}, "status.json has no outcome"),
        (
            {"outcome": "fail", "preferred_label": 3},
            "status.json: preferred_label: Expected `str`, got `int`",
        ),
        ({"outcome": "fail", "suggested_next_ids": [1]}, r"suggested_next_ids\[0\]: Expected `str`"),
        ({"outcome": "fail", "context_updates": 3}, "context_updates: Expected `object`"),
        ({"outcome": "fail", "score": "high"}, "score: Expected `float | null`"),
        ({"outcome": "fail", "score": float("inf")}, "score is not a finite number"),
    ],
)
def test_a_field_of_a_wrong_type_is_named(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(VerdictError, match=text.replace("|", r"\|")):
        outcome_of(fields)


def test_null_fields_and_words_of_other_dialects_are_accepted() -> None:
    found = outcome_of({"status": "SUCCEEDED", "preferred_next_label": "x", "score": None, "notes": ["n"]})
    assert (found.status, found.preferred_label, found.notes) == ("success", "x", '["n"]')


@pytest.mark.parametrize(
    ("text", "fields", "fault"),
    [
        ("prose", None, ""),
        (f"Before\n{block(outcome='fail')}\nand after", {"outcome": "fail"}, ""),
        (f"{block(outcome='fail')}\n{block(outcome='success')}", {"outcome": "success"}, ""),
        ('```\n{"outcome": "retry"}\n```', {"outcome": "retry"}, ""),
        ('~~~ json\n{"outcome": "retry"}\n~~~', {"outcome": "retry"}, ""),
        ("```python\nprint({})\n```", None, ""),
        (block(other=1), None, ""),
        ('```json\n{"outcome": "success"', None, "the verdict at the end of the answer is cut off"),
        ('```json\n{"outcome": success}\n```', None, "the verdict at the end of the answer is not JSON"),
        (block(outcome="success", score="8"), None, "the verdict at the end of the answer: score: "),
    ],
)
def test_the_last_block_of_an_answer_is_its_verdict(
    text: str, fields: dict[str, Any] | None, fault: str
) -> None:
    found, why = block_in(text)
    assert found == fields
    assert why.startswith(fault)
    assert bool(why) == bool(fault)


def test_an_answer_that_is_one_object_is_structured_output() -> None:
    assert structured_in('{"outcome": "fail"}') == ({"outcome": "fail"}, "")
    assert structured_in('{"answer": 3}') == (None, "")
    assert structured_in("{half") == (None, "")
    assert structured_in('{"outcome": "fail", "score": []}')[1].startswith("the structured answer: score: ")


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        (["success", "success"], "success"),
        (["success", "fail"], "fail"),
        (["fail", "success"], "fail"),
        (["needs_review", "partial_success"], "partial_success"),
        (["needs_review", "success"], "needs_review"),
        (["success", "retry", "partial_success"], "retry"),
        (["retry", "failed"], "failed"),
    ],
)
def test_the_first_source_counts_unless_a_later_one_says_worse(words: list[str], counts: str) -> None:
    found = judge([VerdictSource(f"source {n}", StageOutcome(status=word)) for n, word in enumerate(words)])
    assert found is not None
    assert found.status == counts
    assert ("the worse counts" in found.notes) == (counts != words[0])


# ---------------------------------------------------------------------- how it is asked for
@pytest.mark.covers("CP2-V2")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (line("a [goal_gate=true];", "a"), True),
        (line("a [verdict=true];", "a"), True),
        (FORKED, True),
        (line("a;", "a"), False),
    ],
)
async def test_every_backend_gets_the_same_instruction(
    hf: Holdfast, tmp_path: Path, provider: Provider, text: str, wanted: bool
) -> None:
    given: list[str] = []

    def answer(prompt: str, verdict: str) -> str:
        given.append(verdict)
        return "ok"

    await run(hf, text, tmp_path / "logs", backend=answer)
    shutil.rmtree(tmp_path / "logs")
    provider.says(Answer("ok"), Answer("ok"))
    await run(hf, text, tmp_path / "logs", backend=model_backend(provider))
    shutil.rmtree(tmp_path / "logs")
    system = provider.seen[0].json["messages"][0]["content"]
    await run(hf, text, tmp_path / "logs", backend=agent(tmp_path, "cat >/dev/null; echo ok"))
    request = written(tmp_path / "logs" / "a" / "request.md")
    path = whole(tmp_path / "logs" / "a" / "status.json")
    if not wanted:
        assert given[0] == ""
        assert "verdict" not in system + request
        return
    assert request.endswith(given[0])
    assert path in given[0]
    assert path not in system  # it has no files
    assert system.split("\n\n", 1)[1] == given[0].rpartition("\n")[0]
    assert "outcome: success, partial_success, retry, fail." in system
    labels = "preferred_label: empty, or the label of the edge to follow: Ship, Fix."
    assert (labels in system) == (text == FORKED)


async def test_the_words_of_conditions_are_named_in_the_instruction(hf: Holdfast, tmp_path: Path) -> None:
    given: list[str] = []

    def answer(prompt: str, verdict: str) -> dict[str, Any]:
        given.append(verdict)
        return {"outcome": "needs_docs"}

    links = 'start -> a; a -> done [condition="outcome=success"]; a -> b [condition="outcome=needs_docs"];'
    result = await run(hf, dot("a; b;", f"{links} b -> done"), tmp_path, backend=answer)
    assert "retry, fail, needs_docs." in given[0]
    assert result.completed_nodes == ("start", "a", "b", "done")


async def test_a_model_with_a_shell_is_told_where_the_file_goes(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    provider.says(Answer("ok"))
    text = line("a [verdict=true];", "a")
    await run(hf, text, tmp_path, backend=model_backend(provider, kits=["shell"]))
    assert whole(tmp_path / "a" / "status.json") in provider.seen[0].json["messages"][0]["content"]


# ---------------------------------------------------------------------- which one counts
@pytest.mark.covers("CP2-V3")
@pytest.mark.parametrize(
    ("returned", "file", "outcome"),
    [
        (StageOutcome(notes="mine"), {"outcome": "fail", "failure_reason": "red"}, "fail"),
        (StageOutcome(status="fail", failure_reason="mine"), {"outcome": "success"}, "fail"),
        (f"done\n{block(outcome='success')}", {"outcome": "retry"}, "retry"),
        (f"done\n{block(outcome='fail', failure_reason='red')}", {"outcome": "success"}, "fail"),
        ({"outcome": "partial_success"}, {"outcome": "success"}, "partial_success"),
        ({"outcome": "success"}, {"outcome": "partial_success"}, "partial_success"),
        (json.dumps({"outcome": "fail"}), None, "fail"),
        ("prose", None, "success"),
    ],
)
async def test_of_several_verdicts_the_worse_counts(
    hf: Holdfast, tmp_path: Path, returned: Any, file: dict[str, Any] | None, outcome: str
) -> None:
    def answer(prompt: str) -> Any:
        if file is not None:
            (tmp_path / "a" / "status.json").write_text(json.dumps(file))
        return returned

    result = await run(hf, line("a [allow_partial=false, max_retries=0];", "a"), tmp_path, backend=answer)
    # In its last attempt a retry is a failure.
    assert result.node_outcomes["a"] == outcome.replace("retry", "fail")


async def test_a_lowered_verdict_says_so(hf: Holdfast, tmp_path: Path) -> None:
    def answer(prompt: str) -> str:
        (tmp_path / "a" / "status.json").write_text(json.dumps({"outcome": "success", "notes": "fine"}))
        return f"done\n{block(outcome='fail', failure_reason='two are red', context_updates={'red': 2})}"

    result = await run(hf, line("a;", "a"), tmp_path, backend=answer)
    shown = status_of(result)
    assert shown["notes"] == "the end of the answer says fail, status.json success: the worse counts"
    assert shown["failure_reason"] == "two are red"
    assert shown["context_updates"]["red"] == 2


# ---------------------------------------------------------------------- never a false success
@pytest.mark.covers("CP2-V4")
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f"echo '{block(outcome='success')}'; exit 3", "exit code 3"),
        (f'echo \'{{"outcome": "needs_docs"}}\' {TO_FILE}; exit 3', "exit code 3"),
        (f'echo \'{{"outcome": "fail", "failure_reason": "red"}}\' {TO_FILE}; exit 3', "red"),
        ('echo \'{"type": "result", "result": "ok", "is_error": true}\'', "the agent reported a failure: ok"),
        ('echo \'{"outcome": "success"}\' >"$ATTRACTOR_STAGE_DIR/status.json"; sleep 60', "timeout"),
        ("echo '```json'; echo '{\"outcome\": \"success\"'", "is cut off"),
        ('echo half >"$ATTRACTOR_STAGE_DIR/status.json"; echo fine', "status.json is not JSON"),
    ],
)
async def test_an_error_of_any_kind_is_never_a_success(
    hf: Holdfast, tmp_path: Path, script: str, reason: str
) -> None:
    text = line("a [timeout=500ms];" if "sleep" in script else "a;", "a")
    result = await run(hf, text, tmp_path / "logs", backend=agent(tmp_path, script))
    assert result.status == "fail"
    assert reason in result.outcome.failure_reason


@pytest.mark.covers("CP2-V4")
@pytest.mark.parametrize("answer", ['```json\n{"outcome": "success"', block(outcome="success", score=[])])
async def test_a_verdict_that_cannot_be_read_has_its_own_class(
    hf: Holdfast, tmp_path: Path, answer: str
) -> None:
    links = 'start -> a; a -> done; a -> b [condition="context.failure_class=verdict"]; b -> done'
    text = dot("a; b;", links)
    asked, fn = prose_then(answer, "ok")
    result = await run(hf, text, tmp_path, backend=fn)
    assert result.completed_nodes == ("start", "a", "b", "done")
    assert len(asked) == 2


async def test_a_models_answer_that_was_cut_before_its_verdict_is_a_failure(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    provider.says(Answer("I looked at", finish="length"))
    text = line("a [verdict=true];", "a")
    result = await run(hf, text, tmp_path, backend=model_backend(provider))
    assert result.outcome.failure_reason == "the answer was cut at its limit (length) and has no verdict"


async def test_a_ranking_by_an_agent_that_failed_is_a_failure(hf: Holdfast, tmp_path: Path) -> None:
    text = dot(
        'fan [shape=component]; x; y; best [shape=tripleoctagon, prompt="Which?"];',
        "start -> fan; fan -> x; fan -> y; x -> best; y -> best; best -> done",
    )
    asks = agent(tmp_path, 'cat >/dev/null; [ "$HOLDFAST_NODE" != best ] || { echo y; exit 1; }')
    result = await run(hf, text, tmp_path / "logs", backend=asks)
    assert result.status == "fail"
    assert "exit code 1" in result.outcome.failure_reason


# ---------------------------------------------------------------------- prose at a fail-closed gate
@pytest.mark.covers("CP2-V5")
@pytest.mark.parametrize(
    ("second", "outcome"),
    [
        (f"Yes.\n{block(outcome='success', notes='42 pass')}", "success"),
        (block(outcome="fail", failure_reason="red"), "fail"),
        ("As I said, it is done.", "fail"),
        ('```json\n{"outcome":', "fail"),
    ],
)
@pytest.mark.parametrize("kind", ["function", "model", "command"])
async def test_prose_of_a_fail_closed_gate_is_asked_about_once(
    hf: Holdfast, tmp_path: Path, provider: Provider, kind: str, second: str, outcome: str
) -> None:
    first, asked = "All is well.", []
    if kind == "function":
        asked, backend = prose_then(first, second)
    elif kind == "model":
        provider.says(Answer(first), Answer(second))
        backend = model_backend(provider)
    else:
        (tmp_path / "second").write_text(second)
        backend = agent(
            tmp_path,
            f"cat >>{tmp_path}/asked; if [ -e {tmp_path}/once ]; then cat {tmp_path}/second; "
            f"else touch {tmp_path}/once; echo '{first}'; fi",
        )
    result = await run(hf, GATE, tmp_path / "logs", backend=backend)
    assert result.status == outcome
    response = written(tmp_path / "logs" / "a" / "response.md")
    assert response == f"{first}\n\n{second}"
    assert written(tmp_path / "logs" / "a" / "prompt.md") == "Test it"
    if kind == "function":
        assert len(asked) == 2
    if kind == "model":
        assert len(provider.seen) == 2
        roles = [message["role"] for message in provider.seen[1].json["messages"]]
        assert roles == ["system", "user", "assistant", "user"]
    if kind != "model":
        told = asked[1] if kind == "function" else written(tmp_path / "asked")
        assert "Your answer has no verdict" in told
        assert '"suggested_next_ids": []' in told
        assert first in told


@pytest.mark.covers("CP2-V5")
async def test_prose_of_other_stages_is_a_success_and_is_asked_once(hf: Holdfast, tmp_path: Path) -> None:
    asked, answer = prose_then("All is well.")
    result = await run(hf, line("a [goal_gate=true];", "a"), tmp_path, backend=answer)
    assert result.succeeded
    assert len(asked) == 1


async def test_the_directory_made_anew_has_both_turns(hf: Holdfast, tmp_path: Path) -> None:
    _, answer = prose_then("Well.", f"Yes.\n{block(outcome='success')}")
    runner = Runner(hf, backend=answer, logs_root=tmp_path / "logs")
    result = await runner.run(GATE)
    await export_directory(await hf.service(), result.run_id, tmp_path / "again")
    for name in ("prompt.md", "response.md", "status.json"):
        assert written(tmp_path / "again" / "a" / name) == written(tmp_path / "logs" / "a" / name)


async def test_the_score_of_a_verdict_ranks_branches(hf: Holdfast, tmp_path: Path) -> None:
    def answer(node: Any, prompt: str) -> str:
        return f"tried\n{block(outcome='success', score={'x': 1, 'y': 3, 'z': 2}[node.id])}"

    text = dot(
        "fan [shape=component]; x; y; z; best [shape=tripleoctagon];",
        "start -> fan; fan -> x -> best; fan -> y -> best; fan -> z -> best; best -> done",
    )
    result = await run(hf, text, tmp_path, backend=answer)
    assert result.context["parallel.fan_in.best_id"] == "y"


async def test_a_verdict_changes_no_attribute_of_the_graph(hf: Holdfast, tmp_path: Path) -> None:
    updates = {"graph.goal": "another", "graph.budget_usd": "9", "internal.x": 1, "red": 2}

    def answer(prompt: str) -> str:
        return f"done\n{block(outcome='success', context_updates=updates)}"

    result = await run(hf, line("a;", "a"), tmp_path, backend=answer)
    assert result.context["graph.goal"] == "ship it"
    assert "graph.budget_usd" not in result.context
    assert result.context["red"] == 2
    events = await (await hf.service()).events(result.run_id)
    logs = [str(event.data["data"]) for event in events if event.type == "node.emitted"]
    expected = "stage a cannot change attributes of the graph: graph.budget_usd, graph.goal stays as it was"
    assert expected in logs


@pytest.mark.covers("CP2-V5")
async def test_a_program_that_repeats_what_it_was_asked_has_no_verdict(hf: Holdfast, tmp_path: Path) -> None:
    """Transcripts of agents begin with their prompt: the form in it is no success."""
    text = line("a [goal_gate=true, fail_closed=true];", "a")
    for command in ("cat", "sh -c 'cat; echo I could not do it.'"):
        found = await run(hf, text, tmp_path / command[:2], backend=CommandBackend(command))
        assert (found.status, found.context["failure_class"]) == ("fail", "verdict")
    for words, outcome in (("fail", "fail"), ("success", "success")):
        (tmp_path / "answer").write_text(f"\n{block(outcome=words)}\n")
        backend = CommandBackend(f"sh -c 'cat; cat {tmp_path}/answer'")
        found = await run(hf, text, tmp_path / words, backend=backend)
        assert found.status == outcome


def test_the_form_that_is_asked_for_is_no_verdict() -> None:
    form = {"outcome": PLACEHOLDER, "notes": ""}
    assert structured_in(json.dumps(form)) == (None, "")
    assert block_in(f"```json\n{json.dumps(form)}\n```") == (None, "")
    with pytest.raises(VerdictError, match="not filled in"):
        outcome_of(form)
