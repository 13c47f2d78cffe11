"""The question of a gate: its choices, its text, and which choice an answer means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.attractor.interviewers import Answer, AnswerValue, InterviewOption, Question, QuestionType
from holdfast.frontends.dot.document import Attributes, Link, Pipeline, Stage
from holdfast.model.edge_labels import split_label
from holdfast.types.hold import Option as HoldOption

TYPE_KEYS: Final = ("question_type", "human.question_type")
FIRST: Final = "first"
"""`human.unknown_answer=first`: the letter of the specification, which takes the first choice (AT-165)."""
_BINARY: Final = (QuestionType.YES_NO, QuestionType.CONFIRMATION)
_WORDS: Final = {QuestionType.YES_NO: ("Yes", "No"), QuestionType.CONFIRMATION: ("Confirm", "Decline")}
_TEXTS: Final = ("assignee", "priority", "reminder", "escalate", "calendar")
_BY_ANSWER: Final = ("preferred_label", "human.gate.")
_LISTS: Final = ("tags", "excluded")
YES, NO = "yes", "no"


class GateChoice(msgspec.Struct, frozen=True):
    """An outgoing edge. `id`: its id in the hold, the written accelerator, else the label."""

    id: str
    key: str
    label: str
    to: str
    plain: bool = True
    """Whether its label is unique among the edges."""


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    stage: str
    text: str
    type: QuestionType
    choices: tuple[GateChoice, ...]
    default: GateChoice | None = None
    timeout: float | None = None
    takes_first: bool = False
    terms: Mapping[str, Any] = {}
    """Assignee and terms, as `ctx.ask` takes them."""

    @property
    def yes(self) -> GateChoice:
        return next((each for each in self.choices if each.key == "Y"), self.choices[0])

    @property
    def no(self) -> GateChoice | None:
        """None if there is no edge for it."""
        others = [each for each in self.choices if each != self.yes]
        return next((each for each in others if each.key == "N"), others[0] if others else None)

    def options(self) -> list[HoldOption] | None:
        """The options of the hold; None: any text is an answer."""
        if self.type is QuestionType.FREEFORM:
            return None
        if self.type not in _BINARY:
            return [HoldOption(each.id, each.label) for each in self.choices]
        yes, no = _WORDS[self.type]
        return [
            HoldOption(YES, _worded(self.yes, yes), "primary"),
            HoldOption(NO, no if self.no is None else _worded(self.no, no)),
        ]

    def question(self, metadata: Mapping[str, Any] | None = None) -> Question:
        return Question(
            text=self.text,
            type=self.type,
            options=tuple(InterviewOption(each.key, each.label) for each in self.choices),
            default=None if self.default is None else _answer(self.default),
            timeout_seconds=self.timeout,
            stage=self.stage,
            metadata=metadata or {},
        )

    def decision(self, answer: Answer) -> str | None:
        """The decision for the hold; None if the text is not one of the answers."""
        if self.type is QuestionType.FREEFORM:
            return answer.text or answer.value or None
        meant = self._binary(answer) if self.type in _BINARY else self._chosen(answer)
        if meant is None and self.takes_first:
            return YES if self.type in _BINARY else self.choices[0].id
        return meant

    def _binary(self, answer: Answer) -> str | None:
        word = (answer.value or answer.text).strip().casefold()
        if word in (AnswerValue.YES, "y"):
            return YES
        if word in (AnswerValue.NO, "n"):
            return NO
        found = self._found(answer)
        return None if found is None else YES if found == self.yes else NO if found == self.no else None

    def _chosen(self, answer: Answer) -> str | None:
        found = self._found(answer)
        return None if found is None else found.id

    def _found(self, answer: Answer) -> GateChoice | None:
        if answer.selected_option is not None:
            label = answer.selected_option.label
            return next((each for each in self.choices if each.label == label), None)
        return named(self.choices, answer.value or answer.text)

    def decided(self, decision: str) -> GateChoice | None:
        """The edge of the hold's decision."""
        if self.type in _BINARY:
            return self.yes if decision == YES else self.no
        if self.type is QuestionType.FREEFORM:
            return named(self.choices, decision)
        return next((each for each in self.choices if each.id == decision), None)


def gate_of(stage: Stage, pipeline: Pipeline) -> Gate:
    choices = choices_of([each for each in pipeline.outgoing.get(stage.id, ()) if is_choice(each)])
    limit = stage.microseconds("timeout")
    return Gate(
        stage=stage.id,
        text=stage.text("label") or stage.prompt or "Select an option:",
        type=_type(stage),
        choices=choices,
        default=named(choices, stage.text("human.default_choice")),
        timeout=None if limit is None else limit / 1e6,
        takes_first=_either(stage, pipeline, "human.unknown_answer") == FIRST,
        terms=_terms(stage),
    )


def is_choice(link: Link) -> bool:
    """Not an edge such as that for its failure, which no answer leads along."""
    return not link.condition or bool(link.label) or any(key in link.condition for key in _BY_ANSWER)


def choices_of(links: Sequence[Link]) -> tuple[GateChoice, ...]:
    """One for each edge, in the order of the document."""
    found: dict[str, GateChoice] = {}
    labels = [bare(link.label or link.target).casefold() for link in links]
    for link, plain in zip(links, labels, strict=True):
        label = link.label or link.target
        names = (written_key(label), label, f"{label} ({link.target})")
        name = next((each for each in names if each and each not in found), "")
        if name:
            choice = GateChoice(name, accelerator(label), label, link.target, labels.count(plain) == 1)
            found[name] = choice
    return tuple(found.values())


def written_key(label: str) -> str:
    """The key of `[K] Label`, `K) Label` or `K - Label`; else empty."""
    return split_label(label)[0].upper()


def accelerator(label: str) -> str:
    return written_key(label) or label.strip()[:1].upper()


def bare(label: str) -> str:
    """The label without its accelerator."""
    return split_label(label)[1] or label.strip()


def named(choices: Sequence[GateChoice], word: str) -> GateChoice | None:
    """By its id in the hold, its target, its label with or without accelerator, or its key; None if no choice
    matches, or more than one does."""
    meant = word.strip().casefold()
    if not meant:
        return None
    for names in _NAMES:
        fits = [choice for choice in choices if names(choice).casefold() == meant]
        if fits:
            return fits[0] if len(fits) == 1 else None
    return None


def _id(choice: GateChoice) -> str:
    return choice.id


def _to(choice: GateChoice) -> str:
    return choice.to


def _label(choice: GateChoice) -> str:
    return choice.label


def _bare(choice: GateChoice) -> str:
    return bare(choice.label)


def _key(choice: GateChoice) -> str:
    return choice.key


_NAMES: Final = (_id, _to, _label, _bare, _key)


def _worded(choice: GateChoice, word: str) -> str:
    """The label of an edge that has none: derived from the kind of the question."""
    return word if choice.label == choice.to else choice.label


def _answer(choice: GateChoice) -> Answer:
    return Answer(value=choice.id, selected_option=InterviewOption(choice.key, choice.label))


def _type(stage: Stage) -> QuestionType:
    value = next((stage.text(key) for key in TYPE_KEYS if stage.text(key)), "")
    word = value.strip().lower().replace("-", "_").replace("/", "_")
    return next((each for each in QuestionType if each == word), QuestionType.MULTIPLE_CHOICE)


def _either(stage: Stage, pipeline: Pipeline, key: str) -> str:
    return stage.text(key) or pipeline.text(key)


def _terms(stage: Attributes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in (*_TEXTS, *_LISTS):
        value = stage.text(f"human.{name}") or stage.text(name)
        if value:
            parts = [each.strip() for each in value.split(",") if each.strip()]
            found[name] = value if name in _TEXTS else parts
    return found
