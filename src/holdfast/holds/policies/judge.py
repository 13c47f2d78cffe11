"""The judge protocol and its result. If a judge is not sure, too slow or fails, people decide."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, cast, runtime_checkable

import msgspec

from holdfast._version import __version__
from holdfast.frontends.python.code import code_fingerprint
from holdfast.model.user_code.boundary import call_alone

Facts = Mapping[str, Any]


class Judgement(msgspec.Struct, frozen=True):
    """`decision`: the id of an option, or approve or reject for the hold's option. `confidence`: 0 to 1."""

    decision: str
    confidence: float = 1.0
    reasoning: str = ""
    decided_by: str = "judge"  # llm-judge, webhook, ...: as the decision is recorded
    # What it used, for the totals of the run; one that has noted it in the ledger itself leaves it out.
    tokens: int = 0
    cost: float = 0.0


class JudgeLedger(Protocol):
    """The ledger of the run that asked, where the judge is called by the worker that advances the run."""

    async def note_spent(
        self, key: str, name: str, *, tokens: int = 0, cost: float = 0.0, micros: int = 0
    ) -> None: ...


class JudgedHold(msgspec.Struct, frozen=True):
    hold: str
    ledger: JudgeLedger

    @property
    def key(self) -> str:
        return f"judge/{self.hold}"


judged_hold: ContextVar[JudgedHold | None] = ContextVar("the hold that is judged", default=None)


@runtime_checkable
class Judge(Protocol):
    """Answers in place of a person. If it raises, a person decides."""

    async def judge(self, facts: Facts) -> Judgement:
        """What it would decide, and how sure it is."""
        ...


JudgeLike = Judge | Callable[[Facts], Any | Awaitable[Any]]
Judges = Mapping[str, JudgeLike]


def auto_approve(_facts: Facts) -> Judgement:
    """Approves everything."""
    return Judgement("approve", decided_by="auto-accept")


def auto_reject(reason: str = "Auto-rejected") -> Callable[[Facts], Judgement]:
    """Rejects everything."""

    def judge(_facts: Facts) -> Judgement:
        return Judgement("reject", reasoning=reason, decided_by="auto-reject")

    return judge


def judge_digests(judge: JudgeLike) -> dict[str, str]:
    """Of the judge's code or task, and of what it names itself (its model, its prompt)."""
    named = getattr(judge, "digests", None)
    if callable(named):
        return cast("dict[str, str]", named())
    code = judge.judge if isinstance(judge, Judge) else judge
    return {"judge": code_fingerprint(cast("Any", code)), "holdfast": __version__}


async def ask_judge(judge: JudgeLike, facts: Facts) -> Judgement:
    """The judge's answer. Raises ValueError if it is not a judgement, and whatever the judge raises."""
    return read_judgement(await call_alone(judge.judge if isinstance(judge, Judge) else judge, facts))


def read_judgement(answer: Any) -> Judgement:
    """A judgement, a text (sure of it), True or False, or an object with `approved` or `decision`."""
    if isinstance(answer, Judgement):
        found = answer
    elif isinstance(answer, bool):
        found = Judgement("approve" if answer else "reject")
    elif isinstance(answer, str):
        found = Judgement(answer)
    elif isinstance(answer, Mapping):
        found = _of_object(cast("Mapping[str, Any]", answer))
    else:
        raise ValueError(f"{type(answer).__name__} is not a judgement")
    if not found.decision.strip():
        raise ValueError("it has no decision")
    if not 0 <= found.confidence <= 1:  # also true for NaN
        raise ValueError(f"its confidence {found.confidence!r} is not between 0 and 1")
    return found


def _of_object(fields: Mapping[str, Any]) -> Judgement:
    approved, decision, confidence = fields.get("approved"), fields.get("decision"), fields.get("confidence")
    if isinstance(approved, bool) and decision is None:
        decision = "approve" if approved else "reject"
    if (
        not isinstance(decision, str)
        or not isinstance(confidence, (int, float))
        or isinstance(confidence, bool)
    ):
        raise ValueError("it needs approved (true or false) or decision (text), and confidence (a number)")
    reasoning = fields.get("reasoning")
    return Judgement(decision, float(confidence), reasoning if isinstance(reasoning, str) else "")
