"""Interviewers, which answer a pipeline's questions in its process (section 6).

Questions are holds: an interviewer is one more way to decide them, once.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from threading import Event
from typing import Any, Protocol, TextIO

import msgspec

from holdfast.model.forms.visible_text import for_terminal
from holdfast.model.user_code.boundary import call
from holdfast.types.redaction import redactor
from holdfast.types.text import clean_text


class QuestionType(StrEnum):
    YES_NO = "yes_no"
    MULTIPLE_CHOICE = "multiple_choice"
    FREEFORM = "freeform"
    CONFIRMATION = "confirmation"


class AnswerValue(StrEnum):
    YES = "yes"
    NO = "no"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"


class InterviewOption(msgspec.Struct, frozen=True):
    key: str
    label: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """`value` is one of `AnswerValue`, or what was chosen: a key, a label or a target."""

    value: str = ""
    selected_option: InterviewOption | None = None
    text: str = ""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    type: QuestionType = QuestionType.MULTIPLE_CHOICE
    options: Sequence[InterviewOption] = ()
    default: Answer | None = None
    timeout_seconds: float | None = None
    stage: str = ""
    metadata: Mapping[str, Any] = {}


class Interviewer(Protocol):
    """Sync or async. A sync `ask` runs in a separate thread."""

    def ask(self, question: Question) -> Answer | Awaitable[Answer]: ...


class InterviewerBase:
    """What every built-in interviewer has besides `ask`."""

    name = "interviewer"
    """Its name in the audit, after `interviewer:`."""

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """One by one, in order."""
        return [await ask_with_timeout(self, question) for question in questions]

    def inform(self, message: str, stage: str = "") -> None:
        """Show a message that needs no answer."""


class AutoApproveInterviewer(InterviewerBase):
    """Answers yes, or the first option. Never used by default."""

    name = "auto-approve"

    def ask(self, question: Question) -> Answer:
        if question.type in (QuestionType.YES_NO, QuestionType.CONFIRMATION):
            return Answer(value=AnswerValue.YES)
        if question.type is QuestionType.MULTIPLE_CHOICE and question.options:
            first = question.options[0]
            return Answer(value=first.key, selected_option=first)
        return Answer(value="auto-approved", text="auto-approved")


class CallbackInterviewer(InterviewerBase):
    """Calls your function, sync or async."""

    name = "callback"

    def __init__(self, callback: Callable[[Question], Answer | Awaitable[Answer]]) -> None:
        self._callback = callback

    async def ask(self, question: Question) -> Answer:
        return await call(self._callback, question)


class QueueInterviewer(InterviewerBase):
    """Gives prepared answers in order; after the last one every question is skipped."""

    name = "queue"

    def __init__(self, answers: Iterable[Answer | str] = ()) -> None:
        self.answers: deque[Answer | str] = deque(answers)

    def ask(self, question: Question) -> Answer:
        if not self.answers:
            return Answer(value=AnswerValue.SKIPPED)
        answer = self.answers.popleft()
        return answer if isinstance(answer, Answer) else Answer(value=answer, text=answer)


class RecordingInterviewer(InterviewerBase):
    """Wraps another interviewer and keeps all questions and answers in `recordings`."""

    def __init__(self, inner: Interviewer) -> None:
        self.inner = inner
        self.recordings: list[tuple[Question, Answer]] = []
        self.informed: list[tuple[str, str]] = []

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return name_of(self.inner)

    async def ask(self, question: Question) -> Answer:
        answer = await ask_without_timeout(self.inner, question)
        self.recordings.append((question, answer))
        return answer

    def inform(self, message: str, stage: str = "") -> None:
        self.informed.append((message, stage))
        inform(self.inner, message, stage)


class ConsoleInterviewer(InterviewerBase):
    """A person at this terminal. After an invalid answer it asks again; the end of the input skips the
    question."""

    name = "console"

    def __init__(self, source: TextIO | None = None, out: TextIO | None = None) -> None:
        self._lines = _Lines(source)
        self._out = out

    async def ask(self, question: Question) -> Answer:
        over = Event()
        try:
            return await asyncio.to_thread(self._ask, question, over)
        finally:
            # A thread cannot be stopped, but it checks this event, so that it does not read input for a
            # closed question.
            over.set()

    def inform(self, message: str, stage: str = "") -> None:
        self._print(f"[i] {f'{stage}: ' if stage else ''}{message}")

    def _ask(self, question: Question, over: Event) -> Answer:
        until = None if question.timeout_seconds is None else time.monotonic() + question.timeout_seconds
        self._print(f"[?] {question.text}")
        if question.type is QuestionType.MULTIPLE_CHOICE:
            for option in question.options:
                self._print(f"  [{option.key}] {option.label}")
        while True:
            line = self._read(_PROMPTS[question.type], until, over)
            if isinstance(line, AnswerValue):
                return Answer(value=line)
            found = parse_answer(question, line.strip())
            if found is not None:
                return found
            self._print(f"{clean_text(repr(line.strip()), 80)} is not one of the answers.")

    def _read(self, prompt: str, until: float | None, over: Event) -> str | AnswerValue:
        self._print(prompt, end="")
        while (line := self._lines.take()) is None:
            if until is not None and time.monotonic() >= until:
                self._print("")
                return AnswerValue.TIMEOUT
            if over.is_set():
                return AnswerValue.SKIPPED
        return line or AnswerValue.SKIPPED

    def _print(self, text: str, end: str = "\n") -> None:
        # Questions contain what models wrote.
        print(for_terminal(redactor.redact(text)), end=end, file=self._out or sys.stdout, flush=True)


_POLL_SECONDS = 0.05


class _Lines:
    """Lines of a terminal or pipe without blocking. Reads the file descriptor itself: `select` does not see
    what Python has buffered."""

    def __init__(self, source: TextIO | None) -> None:
        self._source = source
        self._read = b""
        self._ended = False

    def take(self) -> str | None:
        """A line, "" at the end of input, or None if there is none yet."""
        source = self._source or sys.stdin
        try:
            file = source.fileno()
        except (OSError, ValueError):
            # Not a real file, for example StringIO in a test: it cannot be polled.
            return source.readline()
        if b"\n" not in self._read and not self._ended:
            if not select.select([file], [], [], _POLL_SECONDS)[0]:
                return None
            more = os.read(file, 4096)
            self._read += more
            self._ended = not more
            if more and b"\n" not in self._read:
                return None
        line, newline, self._read = self._read.partition(b"\n")
        return (line + newline).decode(errors="replace")


_PROMPTS = {
    QuestionType.MULTIPLE_CHOICE: "Select: ",
    QuestionType.YES_NO: "[Y/N]: ",
    QuestionType.CONFIRMATION: "[Y/N]: ",
    QuestionType.FREEFORM: "> ",
}
_YES, _NO = frozenset({"y", "yes"}), frozenset({"n", "no"})


def parse_answer(question: Question, text: str) -> Answer | None:
    """The typed text as an answer; None if it is not valid."""
    if question.type is QuestionType.FREEFORM:
        return Answer(value=text, text=text) if text else None
    word = text.casefold()
    if question.type in (QuestionType.YES_NO, QuestionType.CONFIRMATION):
        if word in _YES:
            return Answer(value=AnswerValue.YES)
        return Answer(value=AnswerValue.NO) if word in _NO else None
    by_key = [option for option in question.options if option.key.casefold() == word]
    by_label = [option for option in question.options if option.label.casefold() == word]
    fits = next((found for found in (by_key, by_label) if word and len(found) == 1), None)
    return None if fits is None else Answer(value=fits[0].key, selected_option=fits[0])


def name_of(interviewer: Any) -> str:
    return str(getattr(interviewer, "name", "") or type(interviewer).__name__)


def inform(interviewer: Any, message: str, stage: str) -> None:
    if callable(say := getattr(interviewer, "inform", None)):
        say(message, stage)


async def ask_without_timeout(interviewer: Any, question: Question) -> Answer:
    return await call(interviewer.ask, question)


async def ask_with_timeout(interviewer: Any, question: Question) -> Answer:
    """At the timeout: the question's default, else TIMEOUT."""
    try:
        answer = await asyncio.wait_for(ask_without_timeout(interviewer, question), question.timeout_seconds)
    except TimeoutError:
        answer = Answer(value=AnswerValue.TIMEOUT)
    if answer.value == AnswerValue.TIMEOUT and question.default is not None:
        return question.default
    return answer
