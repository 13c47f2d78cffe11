"""Shadow answers: a judge answers a question before people see it. The answer is sealed: the hold has its
digest, and the answer itself is shown when people have decided."""

from __future__ import annotations

import asyncio
import secrets
from hashlib import sha256
from typing import Any, Final

import msgspec

from holdfast.errors import StoreError
from holdfast.holds.policies.facts import facts_of
from holdfast.holds.policies.judge import JudgeLike, Judges, ask_judge, judge_digests
from holdfast.model.shadow_judges import forget_judge, shadow_judge, shown_name
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.audit import canonical
from holdfast.types.clock import iso
from holdfast.types.decision_words import NO, YES, approving_answer, refusing_answer
from holdfast.types.document import Document
from holdfast.types.hold import HoldFacts, HoldRow, NewHold, Option
from holdfast.types.ids import HoldId
from holdfast.types.redaction import redactor
from holdfast.types.status import HoldStatus
from holdfast.types.text import clean_text

KIND: Final = "shadow_answer"
TIMEOUT: Final = 30.0  # seconds: while the judge is asked, the run writes nothing
_LONGEST: Final = 4000


class ShadowAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a judge would have decided. Before the decision only `judge` and `sealed` are known. `error`: the
    judge gave no answer. `intact`: whether it is the answer that was sealed. `digests`: of the judge, its
    model and its prompt, so that answers of the same judge can be told from those of a changed one."""

    judge: str
    sealed: str
    decision: str | None = None
    confidence: float | None = None
    reasoning: str = ""
    error: str = ""
    at: str | None = None
    agrees: bool | None = None
    intact: bool = True
    digests: dict[str, str] = {}

    @property
    def version(self) -> str:
        """The same for answers of the same judge, model and prompt."""
        named = sorted((name, each) for name, each in self.digests.items() if name != "holdfast")
        return sha256(msgspec.json.encode(named)).hexdigest()[:12] if named else ""


class Agreement(msgspec.Struct):
    """How often a version of a judge agrees with people."""

    judge: str
    version: str
    decided: int = 0
    agreed: int = 0
    failed: int = 0
    last: str = ""

    def count(self, hold: str, answer: ShadowAnswer) -> None:
        """An answer that was changed after it was sealed counts as none."""
        if answer.agrees is None or not answer.intact:
            self.failed += 1
            return
        self.decided += 1
        self.agreed += answer.agrees
        if not answer.agrees:
            self.last = hold

    def plain(self) -> dict[str, Any]:
        share = self.agreed / self.decided if self.decided else None
        return {**msgspec.structs.asdict(self), "share": share}

    def cells(self) -> tuple[str, ...]:
        share = f"{self.agreed / self.decided:.0%}" if self.decided else ""
        counts = (str(self.decided), str(self.agreed), share, str(self.failed))
        return (self.judge, self.version, *counts, self.last[:8])


async def seal(store: Store, judges: Judges, hold: NewHold, facts: HoldFacts) -> NewHold:
    """The hold with the digest of its judge's answer, which is written first, and once: a hold that is
    prepared again has the same answer."""
    name = _name(facts.run, hold.id)
    kept = await store.document(facts.tenant, KIND, name)
    if kept is None:
        body = canonical(await _answer(store, judges, hold, facts))
        kept = Document(tenant=facts.tenant, kind=KIND, name=name, body=body)
        if await store.put_document(kept, expect=0) is None:
            # Another process prepared it at the same time.
            kept = await store.document(facts.tenant, KIND, name) or kept
    found = msgspec.json.decode(kept.body)
    usage = {name: found.get(name, 0) for name in ("tokens", "cost")}
    terms = msgspec.structs.replace(
        hold.terms,
        shadow=shown_name(hold.terms.shadow or ""),
        sealed=sha256(kept.body).hexdigest(),
        shadow_usage=usage if any(usage.values()) else None,
    )
    # Not before: where the store was away, the hold is prepared again.
    forget_judge(hold.terms.shadow or "")
    return msgspec.structs.replace(hold, terms=terms)


async def _answer(store: Store, judges: Judges, hold: NewHold, facts: HoldFacts) -> dict[str, Any]:
    given = hold.terms.shadow or ""
    name = shown_name(given)
    # The salt keeps a short answer from being guessed by its digest.
    answer: dict[str, Any] = {"judge": name, "at": store.now(), "salt": secrets.token_hex(16)}
    judge = judges.get(given) or shadow_judge(given)
    if judge is None:
        return {**answer, "error": f"the judge {name!r} is not loaded in the process that asked"}
    try:
        return {**answer, **await _ask(judge, hold, facts)}
    except StoreError:
        raise
    except TimeoutError:
        error = f"it took longer than {TIMEOUT:g} s"
    except Exception as wrong:
        # Not in the log: it may quote the answer.
        error = clean_text(redactor.redact_operator(f"{type(wrong).__name__}: {wrong}"), 500)
    log.info("the shadow judge %r of hold %s gave no answer", name, hold.id)
    return {**answer, "error": error}


async def _ask(judge: JudgeLike, hold: NewHold, facts: HoldFacts) -> dict[str, Any]:
    shown = facts_of(
        hold,
        flow=facts.flow,
        tenant=facts.tenant,
        started_by=facts.started_by,
        deployment=facts.deployment,
        instance_key=facts.instance_key,
    )
    async with asyncio.timeout(TIMEOUT):
        found = await ask_judge(judge, shown)
    return {
        "decision": _option(hold.options, found.decision),
        "confidence": found.confidence,
        "reasoning": clean_text(found.reasoning, _LONGEST),
        "tokens": found.tokens,
        "cost": found.cost,
        "digests": judge_digests(judge),
    }


def _option(options: tuple[Option, ...] | None, word: str) -> str:
    """The id of the option that is meant by `approve` or `reject`. Raises ValueError if there is none."""
    if not options or any(option.id == word for option in options):
        return word
    meant = None
    if word.casefold() in YES:
        meant = approving_answer(options)
    elif word.casefold() in NO:
        meant = refusing_answer(options)
    if meant is None:
        raise ValueError(f"{clean_text(word, 80)!r} is not one of the options")
    return meant


async def shadow_of(store: Store, row: HoldRow) -> ShadowAnswer | None:
    """None: nobody was asked beside the people. The answer is shown once the hold is decided or expired."""
    terms = row.terms
    if terms.shadow is None or terms.sealed is None:
        return None
    closed = ShadowAnswer(judge=terms.shadow, sealed=terms.sealed)
    # A hold that was withdrawn may be asked again, by a run that was rewound.
    if row.status in (HoldStatus.pending, HoldStatus.cancelled):
        return closed
    kept = await store.document(row.tenant, KIND, _name(row.run, row.id))
    if kept is None:
        return msgspec.structs.replace(closed, intact=False, error="the answer is not in this store")
    found = msgspec.json.decode(kept.body)
    decided = None if row.resolution is None else msgspec.json.decode(row.resolution).get("decision")
    decision = found.get("decision")
    return ShadowAnswer(
        judge=terms.shadow,
        sealed=terms.sealed,
        decision=decision,
        confidence=found.get("confidence"),
        reasoning=found.get("reasoning", ""),
        error=found.get("error", ""),
        at=iso(found["at"]),
        agrees=None if decision is None or decided is None else decision == decided,
        intact=sha256(kept.body).hexdigest() == terms.sealed,
        digests=found.get("digests", {}),
    )


async def delete_shadows(store: Store, tenant: str, run: str) -> None:
    """Of a run that is deleted."""
    while found := await store.documents(tenant, KIND, prefix=f"{run}/"):
        for each in found:
            await store.drop_document(tenant, KIND, each.name)


def _name(run: str, hold: HoldId) -> str:
    return f"{run}/{hold}"
