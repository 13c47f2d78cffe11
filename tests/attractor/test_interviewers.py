"""Interviewers: who answers in the process itself, and how their answers are understood."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor.interviewers import (
    Answer,
    AnswerValue,
    AutoApproveInterviewer,
    CallbackInterviewer,
    ConsoleInterviewer,
    InterviewOption,
    Question,
    QuestionType,
    QueueInterviewer,
    RecordingInterviewer,
    ask_with_timeout,
)
from holdfast.attractor.runner import PipelineResult, Runner
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus
from tests.attractor.run import dot

pytestmark = pytest.mark.anyio

CHOICES = (InterviewOption("A", "[A] Approve"), InterviewOption("F", "[F] Fix"))
PICK = Question(text="Ship?", options=CHOICES, stage="gate")
YES_NO = Question(text="Go?", type=QuestionType.YES_NO)
CONFIRM = Question(text="Sure?", type=QuestionType.CONFIRMATION)
WORDS = Question(text="Why?", type=QuestionType.FREEFORM)
GATE = 'gate [shape=hexagon, label="Ship?"MORE]; fix;'
LINKS = 'start -> gate; gate -> done [label="[A] Approve"]; gate -> fix [label="[F] Fix"]; fix -> done'


def gated(more: str = "") -> str:
    return dot(GATE.replace("MORE", more), LINKS)


async def interviewed(hf: Holdfast, logs: Path, who: Any, more: str = "") -> PipelineResult:
    return await Runner(hf, logs_root=logs, interviewer=who).run(gated(more))


async def question_of(hf: Holdfast, found: PipelineResult) -> HoldRow:
    (hold,) = await (await hf.service()).holds(found.run_id, open_only=False)  # type: ignore[arg-type]
    return hold


@pytest.mark.covers("AT-167", "ATTRACTOR-GATE-03")
async def test_auto_approve_says_yes_takes_the_first_option_or_says_so() -> None:
    auto = AutoApproveInterviewer()
    assert [auto.ask(each).value for each in (YES_NO, CONFIRM)] == [AnswerValue.YES, AnswerValue.YES]
    assert auto.ask(PICK) == Answer(value="A", selected_option=CHOICES[0])
    assert auto.ask(WORDS) == Answer(value="auto-approved", text="auto-approved")
    assert auto.ask(Question(text="Nothing to choose")).value == "auto-approved"


def console(typed: str) -> tuple[ConsoleInterviewer, io.StringIO]:
    out = io.StringIO()
    return ConsoleInterviewer(io.StringIO(typed), out), out


@pytest.mark.covers("AT-168", "ATTRACTOR-GATE-03")
@pytest.mark.parametrize(
    ("question", "typed", "answer", "shown"),
    [
        (PICK, "f\n", Answer(value="F", selected_option=CHOICES[1]),
         "[?] Ship?\n  [A] [A] Approve\n  [F] [F] Fix\nSelect: "),
        (PICK, "[a] approve\n", Answer(value="A", selected_option=CHOICES[0]), "Select: "),
        (YES_NO, "y\n", Answer(value=AnswerValue.YES), "[?] Go?\n[Y/N]: "),
        (YES_NO, "n\n", Answer(value=AnswerValue.NO), "[Y/N]: "),
        (CONFIRM, "Yes\n", Answer(value=AnswerValue.YES), "[?] Sure?\n[Y/N]: "),
        (WORDS, "because\n", Answer(value="because", text="because"), "[?] Why?\n> "),
        (PICK, "", Answer(value=AnswerValue.SKIPPED), "Select: "),
        (PICK, "x\nF\n", Answer(value="F", selected_option=CHOICES[1]),
         "'x' is not one of the answers.\nSelect: "),
        (YES_NO, "perhaps\nn\n", Answer(value=AnswerValue.NO),
         "'perhaps' is not one of the answers.\n[Y/N]: "),
    ],
)  # fmt: skip
async def test_the_console_asks_in_the_form_of_the_specification(
    question: Question, typed: str, answer: Answer, shown: str
) -> None:
    who, out = console(typed)
    assert await who.ask(question) == answer
    assert shown in out.getvalue()


@pytest.mark.covers("AT-168")
async def test_the_console_gives_up_in_time_and_reads_lines_that_came_at_once() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as source, os.fdopen(writing, "w") as typed:
        who = ConsoleInterviewer(source, io.StringIO())
        late = Question(text="Ship?", options=CHOICES, timeout_seconds=0.05)
        assert (await who.ask(late)).value == AnswerValue.TIMEOUT
        typed.write("A\nF\n")
        typed.flush()
        assert [(await who.ask(PICK)).value for _ in range(2)] == ["A", "F"]
        abandoned = asyncio.ensure_future(who.ask(PICK))
        await asyncio.sleep(0)
        abandoned.cancel()
        await asyncio.gather(abandoned, return_exceptions=True)


@pytest.mark.covers("AT-169", "ATTRACTOR-GATE-03")
async def test_a_callback_may_be_sync_or_async() -> None:
    async def later(question: Question) -> Answer:
        await asyncio.sleep(0)
        return Answer(value=f"{question.text} yes")

    assert (await CallbackInterviewer(lambda q: Answer(value=q.stage)).ask(PICK)).value == "gate"
    assert (await CallbackInterviewer(later).ask(PICK)).value == "Ship? yes"


@pytest.mark.covers("AT-170", "ATTRACTOR-GATE-03")
def test_a_queue_gives_its_answers_in_order_then_skips() -> None:
    who = QueueInterviewer([Answer(value="F"), "A"])
    assert [who.ask(PICK).value for _ in range(3)] == ["F", "A", AnswerValue.SKIPPED]


@pytest.mark.covers("AT-171", "AT-172", "ATTRACTOR-GATE-03")
async def test_a_recording_keeps_what_another_was_asked_reported_and_answered() -> None:
    who = RecordingInterviewer(QueueInterviewer(["A", "F"]))
    answers = await who.ask_multiple([PICK, YES_NO])
    assert [each.value for each in answers] == ["A", "F"]
    assert who.recordings == [(PICK, answers[0]), (YES_NO, answers[1])]
    said, out = console("")
    result = RecordingInterviewer(said)
    result.inform("nearly done", "build")
    assert (result.informed, out.getvalue()) == ([("nearly done", "build")], "[i] build: nearly done\n")
    assert who.name == "queue"


@pytest.mark.covers("AT-166")
async def test_the_default_of_a_question_comes_before_a_timeout() -> None:
    async def never(_question: Question) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    slow = CallbackInterviewer(never)
    late = Question(text="Ship?", options=CHOICES, timeout_seconds=0.01)
    assert (await ask_with_timeout(slow, late)).value == AnswerValue.TIMEOUT
    safe = Question(text="Ship?", options=CHOICES, timeout_seconds=0.01, default=Answer(value="F"))
    assert (await ask_with_timeout(slow, safe)).value == "F"


@pytest.mark.covers("ATTRACTOR-GATE-03", "AT-169")
async def test_an_interviewers_answer_decides_the_hold_and_is_in_the_audit(
    hf: Holdfast, tmp_path: Path
) -> None:
    seen: list[Question] = []

    def answer(question: Question) -> Answer:
        seen.append(question)
        return Answer(value="F")

    found = await interviewed(hf, tmp_path, CallbackInterviewer(answer))
    assert found.completed_nodes == ("start", "gate", "fix", "done")
    hold = await question_of(hf, found)
    assert (hold.status, hold.resolved_by) == (HoldStatus.resolved, "interviewer:callback")
    assert (seen[0].text, seen[0].stage, seen[0].options) == ("Ship?", "gate", CHOICES)
    assert seen[0].metadata["hold"] == hold.id
    entries = await (await hf.open()).audit("default", after=0, limit=100)
    assert [e.actor for e in entries if e.hold == hold.id and e.action == "resolved"] == [
        "interviewer:callback"
    ]


@pytest.mark.covers("AT-164", "AT-170")
async def test_a_skipped_question_fails_its_gate(hf: Holdfast, tmp_path: Path) -> None:
    found = await interviewed(hf, tmp_path, QueueInterviewer())
    assert (found.status, found.outcome.failure_reason) == ("fail", "human skipped interaction")
    assert (await question_of(hf, found)).closed_reason == "interviewer: skipped"


@pytest.mark.covers("AT-163", "AT-162", "AT-166")
async def test_an_interviewer_that_runs_out_of_time_takes_the_default_or_is_asked_again(
    hf: Holdfast, tmp_path: Path
) -> None:
    asked: list[str] = []

    def late(question: Question) -> Answer:
        asked.append(question.stage)
        return Answer(value=AnswerValue.TIMEOUT)

    who = CallbackInterviewer(late)
    found = await interviewed(hf, tmp_path / "a", who, ", human.default_choice=fix")
    assert found.completed_nodes == ("start", "gate", "fix", "done")
    asked.clear()
    again = await interviewed(hf, tmp_path / "b", who, ", max_retries=1")
    assert (again.status, len(asked)) == ("fail", 2)
    status = (tmp_path / "b" / "gate" / "status.json").read_text()
    assert "human gate timeout, no default" in status


@pytest.mark.covers("AT-165", "ATTRACTOR-PROOF-10")
async def test_an_unknown_answer_leaves_the_question_open_unless_the_letter_is_asked_for(
    hf: Holdfast, tmp_path: Path
) -> None:
    who = RecordingInterviewer(QueueInterviewer(["perhaps"]))
    found = await interviewed(hf, tmp_path / "a", who)
    assert (found.status, [hold.status for hold in found.holds]) == ("waiting", [HoldStatus.pending])
    assert who.informed == [("'perhaps' is not one of the answers: the question stays open", "gate")]
    await (await hf.service()).answer(found.holds[0].id, "F")
    ended = await Runner(hf, interviewer=who).resume(found.run_id)
    assert ended.completed_nodes == ("start", "gate", "fix", "done")
    letter = await interviewed(
        hf, tmp_path / "b", QueueInterviewer(["perhaps"]), ", human.unknown_answer=first"
    )
    assert letter.completed_nodes == ("start", "gate", "done")


async def test_somebody_else_may_be_faster_than_the_interviewer(hf: Holdfast, tmp_path: Path) -> None:
    service = await hf.service()

    async def slow(question: Question) -> Answer:
        await service.answer(question.metadata["hold"], "F", by="user:dana")
        await asyncio.Event().wait()
        raise AssertionError

    found = await interviewed(hf, tmp_path, CallbackInterviewer(slow))
    assert found.completed_nodes == ("start", "gate", "fix", "done")
    assert found.context["human.gate.by"] == "user:dana"


async def test_a_question_of_before_is_put_to_an_interviewer_that_comes_later(
    hf: Holdfast, tmp_path: Path
) -> None:
    found = await Runner(hf, logs_root=tmp_path).run(gated())
    assert found.status == "waiting"
    ended = await Runner(hf, interviewer=QueueInterviewer(["fix"])).resume(found.run_id)
    assert ended.completed_nodes == ("start", "gate", "fix", "done")


async def test_auto_approval_is_asked_for_and_marked(hf: Holdfast, tmp_path: Path) -> None:
    found = await Runner(hf, logs_root=tmp_path, auto_approve=True).run(gated())
    assert found.completed_nodes == ("start", "gate", "done")
    assert found.context["internal.auto_approve"] is True
    assert (await question_of(hf, found)).resolved_by == "interviewer:auto-approve"


async def test_an_interviewer_that_fails_leaves_the_question_to_people(
    hf: Holdfast, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_question: Question) -> Answer:
        raise OSError("no such chat")

    found = await interviewed(hf, tmp_path, CallbackInterviewer(broken))
    assert (found.status, len(found.holds)) == ("waiting", 1)
    assert "OSError: no such chat" in caplog.text


@pytest.mark.covers("ATTRACTOR-GATE-06")
async def test_gates_in_branches_are_put_to_the_interviewer_each_with_its_own_question(
    hf: Holdfast, tmp_path: Path
) -> None:
    stages = 'fan [shape=component]; a [shape=hexagon, label="Left?"]; b [shape=hexagon, label="Right?"];'
    links = "start -> fan; fan -> a; fan -> b; a -> join; b -> join; join -> done"
    who = RecordingInterviewer(CallbackInterviewer(lambda question: Answer(value="join")))
    text = dot(f"{stages} join [shape=tripleoctagon];", links)
    found = await Runner(hf, logs_root=tmp_path, interviewer=who).run(text)
    assert found.succeeded
    assert {question.text for question, _ in who.recordings} == {"Left?", "Right?"}
    auto = await Runner(hf, logs_root=tmp_path / "auto", auto_approve=True).run(text)
    assert auto.succeeded
