"""Gates: what they ask, how an answer routes, and what waits while nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor.human_gates import accelerator, bare, gate_of
from holdfast.attractor.interviewers import Answer, AnswerValue, QuestionType
from holdfast.attractor.runner import PipelineResult, Runner
from holdfast.errors import AnswerInvalidError, HoldDecidedError, PipelineInvalidError
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.transforms import prepare
from holdfast.testing.clock import FakeClock
from holdfast.types.status import HoldStatus
from holdfast.types.terms import operator
from tests.attractor.run import dot, line

pytestmark = pytest.mark.anyio

LINKS = 'start -> gate; gate -> done [label="[A] Approve"]; gate -> fix [label="[F] Fix"]; fix -> done'


def gated(more: str = 'label="Ship?"', links: str = LINKS, graph: str = "") -> str:
    return dot(f"gate [shape=hexagon{f', {more}' if more else ''}]; fix [label=Fix]; ", links, graph)


class Gates:
    """Runs on a house whose time stands still, so that nothing is late by itself."""

    def __init__(self, hf: Holdfast, clock: FakeClock, logs: Path) -> None:
        self.hf, self.clock, self.logs = hf, clock, logs
        self.runner, self.runs = Runner(hf), 0

    async def run(self, text: str) -> PipelineResult:
        self.runs += 1
        return await self.runner.run(text, logs_root=self.logs / str(self.runs))

    async def retry_while_unavailable(self, run: str) -> PipelineResult:
        """With the waits between two tries."""
        going = asyncio.ensure_future(self.runner.resume(run))
        while not going.done():
            await asyncio.sleep(0.005)
            if self.clock.sleeping:
                self.clock.advance(seconds=1)
        return await going

    async def answer(self, found: PipelineResult, decision: str, **more: Any) -> PipelineResult:
        await (await self.hf.service()).answer(found.holds[0].id, decision, **more)
        return await self.runner.resume(found.run_id)


@pytest.fixture
async def gates(anyio_backend: str, tmp_path: Path) -> AsyncIterator[Gates]:
    clock = FakeClock()
    async with Holdfast("memory:", clock=clock) as hf:
        yield Gates(hf, clock, tmp_path)


def human(found: PipelineResult) -> dict[str, Any]:
    return {key.removeprefix("human.gate."): found.context[key] for key in found.context if "human." in key}


@pytest.mark.covers("AT-159")
@pytest.mark.parametrize(
    ("label", "key", "rest"),
    [
        ("[Y] Yes, deploy", "Y", "Yes, deploy"),
        ("[OK] Fine", "OK", "Fine"),
        ("y) Yes, deploy", "Y", "Yes, deploy"),
        ("Y - Yes, deploy", "Y", "Yes, deploy"),
        ("Yes, deploy", "Y", "Yes, deploy"),
        ("e-mail it", "E", "e-mail it"),
        ("ship_it", "S", "ship_it"),
    ],
)
def test_a_label_has_an_accelerator(label: str, key: str, rest: str) -> None:
    assert (accelerator(label), bare(label)) == (key, rest)


@pytest.mark.covers("AT-158", "AT-161", "AT-A7", "AT-A9")
async def test_the_edges_are_the_options_and_the_chosen_one_is_followed(gates: Gates) -> None:
    found = await gates.run(gated())
    (hold,) = found.holds
    assert (found.status, hold.prompt, hold.type) == ("waiting", "Ship?", "approval")
    assert [(each.id, each.label) for each in hold.options or ()] == [("A", "[A] Approve"), ("F", "[F] Fix")]
    ended = await gates.answer(found, "F", by="user:dana", comment="typo")
    assert ended.completed_nodes == ("start", "gate", "fix", "done")
    assert human(ended) == {"selected": "F", "label": "[F] Fix", "by": "user:dana", "comment": "typo"}
    assert ended.context["preferred_label"] == "[F] Fix"


@pytest.mark.covers("AT-158", "AT-A9")
async def test_an_edge_without_label_is_called_by_its_target_and_the_question_may_be_a_prompt(
    gates: Gates,
) -> None:
    links = "start -> gate; gate -> done; gate -> fix; fix -> done"
    found = await gates.run(gated('prompt="Which way?"', links))
    assert found.holds[0].prompt == "Which way?"
    assert [each.id for each in found.holds[0].options or ()] == ["done", "fix"]
    assert (await gates.answer(found, "fix")).completed_nodes == ("start", "gate", "fix", "done")
    silent = await gates.run(gated("", links))
    assert silent.holds[0].prompt == "Select an option:"


async def test_edges_that_are_called_the_same_are_distinguished_by_their_targets(gates: Gates) -> None:
    links = "start -> gate; gate -> done [label=Go]; gate -> fix [label=Go]; fix -> done"
    found = await gates.run(gated(links=links))
    assert [each.id for each in found.holds[0].options or ()] == ["Go", "Go (fix)"]
    assert (await gates.answer(found, "Go (fix)")).completed_nodes == ("start", "gate", "fix", "done")


@pytest.mark.covers("AT-160")
async def test_a_gate_without_edges_fails(gates: Gates) -> None:
    found = await gates.run(gated(links="start -> gate; start -> fix [weight=-1]; fix -> done"))
    assert found.outcome.failure_reason == "No outgoing edges for human gate"
    assert found.holds == ()


@pytest.mark.covers("AT-165", "ATTRACTOR-PROOF-10")
async def test_an_unknown_answer_is_refused_and_the_first_one_wins(gates: Gates) -> None:
    found = await gates.run(gated())
    service, hold = await gates.hf.service(), found.holds[0].id
    with pytest.raises(AnswerInvalidError, match="A, F"):
        await service.answer(hold, "perhaps")
    await service.answer(hold, "A", by="user:dana")
    with pytest.raises(HoldDecidedError):
        await service.answer(hold, "F", by="user:eve")
    assert (await gates.runner.resume(found.run_id)).completed_nodes == ("start", "gate", "done")


@pytest.mark.covers("AT-162", "AT-A8", "ATTRACTOR-GATE-04")
@pytest.mark.parametrize("choice", ["fix", "F", "[F] Fix", "Fix"])
async def test_a_timeout_takes_the_default_by_target_key_or_label(gates: Gates, choice: str) -> None:
    found = await gates.run(gated(f'label="Ship?", timeout=1h, human.default_choice="{choice}"'))
    gates.clock.advance(minutes=59)
    assert (await gates.runner.resume(found.run_id)).status == "waiting"
    gates.clock.advance(minutes=1)
    ended = await gates.runner.resume(found.run_id)
    assert ended.completed_nodes == ("start", "gate", "fix", "done")
    assert human(ended) == {"selected": "F", "label": "[F] Fix", "by": "timeout"}


@pytest.mark.covers("AT-163")
async def test_a_timeout_without_default_is_a_retry_and_each_try_asks_anew(
    gates: Gates, tmp_path: Path
) -> None:
    found = await gates.run(gated('label="Ship?", timeout=1h, max_retries=1'))
    gates.clock.advance(hours=1)
    again = await gates.retry_while_unavailable(found.run_id)
    assert (again.status, len(again.holds)) == ("waiting", 1)
    assert again.holds[0].id != found.holds[0].id
    assert "human gate timeout, no default" in (tmp_path / "1" / "gate" / "status.json").read_text()
    assert (await gates.answer(again, "A")).completed_nodes == ("start", "gate", "done")


@pytest.mark.covers("AT-164")
async def test_a_question_that_is_withdrawn_was_skipped(gates: Gates) -> None:
    links = LINKS.replace("gate -> fix", 'gate -> mend [condition="outcome=fail"]; mend -> done; gate -> fix')
    found = await gates.run(gated(links=links).replace("fix [", "mend; fix [", 1))
    people = (await gates.hf.service()).people
    await people.cancel(operator("user:dana"), found.holds[0].id, reason="not now")
    ended = await gates.runner.resume(found.run_id)
    assert ended.completed_nodes == ("start", "gate", "mend", "done")


JUNCTION = (
    'start -> gate; gate -> aa [label="[A] Approve"]; gate -> fix [label="[F] Fix"]; aa -> done; fix -> done'
)
ONLY_YES = "start -> gate; gate -> aa [label=Yes]; start -> fix [weight=-1]; aa -> done; fix -> done"


@pytest.mark.covers("AT-A2", "SAFE-CHECK-16")
@pytest.mark.parametrize("shape", ["diamond", "box, label=Pay"])
@pytest.mark.parametrize("more", ["", ", allow_partial=true"])
@pytest.mark.parametrize("end", ["timeout", "withdrawn", "no"])
async def test_a_gate_that_nobody_approved_leads_along_none_of_its_answers(
    gates: Gates, end: str, more: str, shape: str
) -> None:
    kind, links = ("question_type=yes_no", ONLY_YES) if end == "no" else ("timeout=1h", JUNCTION)
    text = gated(f'label="Ship?", {kind}{more}', links).replace("fix [", f"aa [shape={shape}]; fix [", 1)
    found = await gates.run(text)
    people = (await gates.hf.service()).people
    if end == "timeout":
        gates.clock.advance(hours=1)
        ended = await gates.runner.resume(found.run_id)
    elif end == "withdrawn":
        await people.cancel(operator("user:dana"), found.holds[0].id, reason="not now")
        ended = await gates.runner.resume(found.run_id)
    else:
        ended = await gates.answer(found, "no")
    assert ended.status == "fail"
    assert "aa" not in ended.completed_nodes


@pytest.mark.covers("AT-A7", "SAFE-CHECK-16")
@pytest.mark.parametrize("kind", ["yes_no", "multiple_choice"])
async def test_fail_edge_of_a_gate_is_no_answer_and_no_answer_leads_along_another(
    gates: Gates, kind: str
) -> None:
    links = 'start -> gate; gate -> aa [label=Yes]; gate -> fix [condition="outcome=fail"]; fix -> done; '
    links += "aa -> done"
    text = gated(f'label="Ship?", question_type={kind}', links).replace("fix [", "aa [label=Pay]; fix [", 1)
    found = await gates.run(text)
    options = [each.id for each in found.holds[0].options or ()]
    assert options == (["yes", "no"] if kind == "yes_no" else ["Yes"])
    if kind == "yes_no":
        assert (await gates.answer(found, "no")).completed_nodes == ("start", "gate", "fix", "done")


@pytest.mark.covers("AT-A7", "SAFE-CHECK-16")
@pytest.mark.parametrize("kind", ["freeform", "multiple_choice"])
async def test_answer_for_which_no_edge_is_meant_fails_the_run(gates: Gates, kind: str) -> None:
    links = (
        "start -> gate; gate -> aa [label=Yes]; gate -> done [label=Maybe]; aa -> done; "
        'gate -> fix [label=No, condition="outcome=fail"]; fix -> done'
    )
    text = gated(f'label="Ship?", question_type={kind}', links).replace("fix [", "aa [label=Pay]; fix [", 1)
    ended = await gates.answer(await gates.run(text), "No")
    assert ended.status == "fail"
    assert "aa" not in ended.completed_nodes


@pytest.mark.covers("AT-163", "SAFE-CHECK-16")
@pytest.mark.parametrize("end", ["timeout", "no"])
async def test_answer_of_an_earlier_gate_is_not_read_as_that_of_the_next(gates: Gates, end: str) -> None:
    kind = "question_type=yes_no" if end == "no" else "timeout=1h"
    links = (
        'start -> gate; gate -> more [label="[Y] Yes"]; gate -> fix [label="[F] Fix"]; fix -> done; '
        'more -> done [label="[Y] Yes"]; more -> way [condition="outcome=fail"]; '
        'way -> aa [condition="context.human.gate.selected=Y"]; way -> fix; aa -> done'
    )
    stages = f'more [shape=hexagon, label="Sure?", {kind}]; way [shape=diamond]; aa [label=Pay]; fix ['
    found = await gates.run(gated(links=links).replace("fix [", stages, 1))
    asked = await gates.answer(found, "Y")
    if end == "no":
        ended = await gates.answer(asked, "no")
    else:
        gates.clock.advance(hours=1)
        ended = await gates.runner.resume(found.run_id)
    assert ended.completed_nodes == ("start", "gate", "more", "way", "fix", "done")


@pytest.mark.covers("AT-173", "ATTRACTOR-GATE-05")
@pytest.mark.parametrize(
    ("kind", "labels"), [("yes_no", ["Yes", "No"]), ("confirmation", ["Confirm", "Decline"])]
)
async def test_yes_or_no_leads_along_the_edges_for_it(gates: Gates, kind: str, labels: list[str]) -> None:
    links = "start -> gate; gate -> done; gate -> fix; fix -> done"
    found = await gates.run(gated(f'label="Ship?", question_type={kind}', links))
    assert [each.label for each in found.holds[0].options or ()] == labels
    assert (await gates.answer(found, "no")).completed_nodes == ("start", "gate", "fix", "done")
    named = links.replace("gate -> done", "gate -> done [label=No]").replace(
        "gate -> fix", "gate -> fix [label=Yes]"
    )
    turned = await gates.run(gated(f'label="Ship?", question_type={kind}', named))
    assert (await gates.answer(turned, "yes")).completed_nodes == ("start", "gate", "fix", "done")
    only = "start -> gate -> done; start -> fix [weight=-1]; fix -> done"
    alone = await gates.run(gated(f"question_type={kind}", only))
    assert (await gates.answer(alone, "no")).outcome.failure_reason == "human answered no"


@pytest.mark.covers("AT-173", "ATTRACTOR-GATE-05")
async def test_free_words_are_kept_and_route_where_an_edge_is_called_so(gates: Gates) -> None:
    more = 'label="What next?", question_type=freeform'
    found = await gates.run(gated(more))
    assert found.holds[0].options is None
    result = await gates.answer(found, "Fix")
    assert (result.completed_nodes, human(result)["text"]) == (("start", "gate", "fix", "done"), "Fix")
    single = gated(more, "start -> gate -> done; start -> fix [weight=-1]; fix -> done")
    other = await gates.answer(await gates.run(single), "ship it on Monday")
    assert human(other)["text"] == "ship it on Monday"
    assert other.completed_nodes == ("start", "gate", "done")
    unknown = await gates.answer(await gates.run(gated(more)), "ship it on Monday")
    assert unknown.status == "fail"


@pytest.mark.covers("AT-173")
def test_every_form_of_answer_is_understood_and_no_other() -> None:
    pipeline = parse(gated('question_type="yes/no"')).pipeline
    gate = gate_of(pipeline.stages["gate"], pipeline)
    assert gate.type is QuestionType.YES_NO
    said = (AnswerValue.YES, "Y", AnswerValue.NO, "n", "approve", "F", "perhaps")
    assert [gate.decision(Answer(value=each)) for each in said] == [
        "yes", "yes", "no", "no", "yes", "no", None,
    ]  # fmt: skip
    first = parse(gated(graph="human.unknown_answer=first")).pipeline
    letter = gate_of(first.stages["gate"], first)
    assert [letter.decision(Answer(value=each)) for each in ("fix", "perhaps")] == ["F", "A"]


async def test_a_gate_says_whom_it_goes_to_and_how_urgent_it_is(gates: Gates) -> None:
    more = 'assignee="group:finance", human.priority=high, reminder=4h, tags="money, q3", prompt="Pay?"'
    (hold,) = (await gates.run(gated(more))).holds
    assert (hold.assignee, hold.priority, hold.reminder_interval) == ("group:finance", "high", 240)
    assert hold.tags == ("money", "q3")
    with pytest.raises(PipelineInvalidError, match=r"human\.priority of gate gate: 'soon'"):
        await gates.run(gated('human.priority=soon, prompt="Pay?"'))


@pytest.mark.covers("ATTRACTOR-GATE-01", "ATTRACTOR-PROOF-09")
async def test_a_question_keeps_its_id_and_the_next_visit_asks_anew(gates: Gates) -> None:
    back = LINKS.replace("fix -> done", "fix -> gate")
    found = await gates.run(gated(links=back))
    again = await gates.runner.resume(found.run_id)
    assert again.holds[0].id == found.holds[0].id
    second = await gates.answer(again, "F")
    assert (second.status, second.holds[0].visit) == ("waiting", 2)
    assert second.holds[0].id != found.holds[0].id
    assert (await gates.answer(second, "A")).completed_nodes == ("start", "gate", "fix", "gate", "done")


@pytest.mark.covers("ATTRACTOR-GATE-06", "ATTRACTOR-PROOF-09")
async def test_gates_in_branches_are_open_at_once_and_answered_in_any_order(gates: Gates) -> None:
    stages = "fan [shape=component]; a [shape=hexagon]; b [shape=hexagon]; join [shape=tripleoctagon];"
    links = "start -> fan; fan -> a; fan -> b; a -> join [label=Yes]; b -> join [label=Yes]; join -> done"
    found = await gates.run(dot(stages, links))
    holds = {hold.node: hold for hold in found.holds}
    assert sorted(holds) == ["a", "b"]
    service = await gates.hf.service()
    await service.answer(holds["b"].id, "Yes")
    half = await gates.runner.resume(found.run_id)
    assert [hold.id for hold in half.holds] == [holds["a"].id]
    await service.answer(holds["a"].id, "Yes")
    ended = await gates.runner.resume(found.run_id)
    assert ended.succeeded
    assert [each["outcome"] for each in ended.context["parallel.results"]] == ["success", "success"]


@pytest.mark.covers("ATTRACTOR-PROOF-09")
async def test_waiting_for_a_person_counts_against_no_timeout(gates: Gates) -> None:
    """Not against that of the manager of a child that asks, nor the gate's own node."""
    found = await gates.run(line("gate [shape=hexagon, timeout=1h, human.default_choice=done];", "gate"))
    gates.clock.advance(minutes=30)
    assert (await gates.runner.resume(found.run_id)).holds[0].status is HoldStatus.pending
    ended = await gates.answer(found, "done")
    assert ended.succeeded
    forever = await gates.run(gated(graph="budget_time=1s"))
    gates.clock.advance(days=30)
    assert (await gates.answer(forever, "F")).succeeded


@pytest.mark.covers("ATTRACTOR-PROOF-09")
async def test_no_gate_is_passed_by_itself(gates: Gates) -> None:
    found = await gates.run(gated())
    gates.clock.advance(days=365)
    assert (await gates.runner.resume(found.run_id)).status == "waiting"


def test_the_attributes_of_gates_are_known_to_the_checks() -> None:
    odd = prepare(gated('label="Ship?", question_type=perhaps')).diagnostics
    assert [each.rule for each in odd if "question_type" in each.message] == ["values_fit"]
    known = 'label="Ship?", question_type=yes_no, human.assignee="user:dana", reminder=1h'
    assert not prepare(gated(known, graph="goal=x")).diagnostics
