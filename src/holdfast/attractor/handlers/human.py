"""A gate: a person chooses among its outgoing edges. The question is a hold: no process waits for it."""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.attractor.handler import Visit
from holdfast.attractor.outcome import Outcome, StageStatus
from holdfast.errors import HoldCancelledError, HoldExpiredError

AUTO_KEY = "internal.auto_approve"
"""In the run's input: whoever started it asked for every gate to be passed by its first choice."""
_KEYS = (re.compile(r"^\[(\w+)\]\s*"), re.compile(r"^(\w)\)\s*"), re.compile(r"^(\w)\s+-\s+"))


class Choice(NamedTuple):
    key: str
    label: str
    to: str


class HumanHandler:
    async def perform(self, visit: Visit) -> Outcome:
        choices = choices_of(visit)
        if not choices:
            return Outcome(status=StageStatus.FAIL, failure_reason="No outgoing edges for human gate")
        if visit.given.get(AUTO_KEY):
            return chosen(choices[0])
        limit = visit.stage.microseconds("timeout")
        try:
            reply = await visit.ctx.ask(
                question_of(visit),
                options=[choice.label for choice in choices],
                timeout=None if limit is None else limit / 1e6,
                context={"stage": visit.stage.id},
            )
        except HoldExpiredError:
            return _timed_out(visit, choices)
        except HoldCancelledError:
            return Outcome(status=StageStatus.FAIL, failure_reason="human skipped interaction")
        return chosen(next(choice for choice in choices if choice.label == reply.decision))


def choices_of(visit: Visit) -> list[Choice]:
    links = visit.pipeline.outgoing.get(visit.stage.id, ())
    found = [(link.label or link.target, link.target) for link in links]
    return [Choice(accelerator(label), label, to) for label, to in dict(found).items()]


def accelerator(label: str) -> str:
    for pattern in _KEYS:
        found = pattern.match(label)
        if found:
            return found[1].upper()
    return label[:1].upper()


def question_of(visit: Visit) -> str:
    """Its label if that is explicit, else its prompt (AT-A9)."""
    stage = visit.stage
    return stage.text("label") or stage.prompt or "Select an option:"


def chosen(choice: Choice) -> Outcome:
    return Outcome(
        preferred_label=choice.label,
        suggested_next_ids=(choice.to,),
        context_updates={"human.gate.selected": choice.key, "human.gate.label": choice.label},
    )


def _timed_out(visit: Visit, choices: list[Choice]) -> Outcome:
    wanted = visit.stage.text("human.default_choice")
    for choice in choices:
        if wanted and wanted in (choice.to, choice.key, choice.label):
            return chosen(choice)
    return Outcome(status=StageStatus.RETRY, failure_reason="human gate timeout, no default")
