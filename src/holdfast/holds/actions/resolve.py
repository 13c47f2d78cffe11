"""Deciding a hold: who may, on what was shown, with an answer that fits, once (RS-1 to RS-10)."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec

from holdfast.errors import InputError, KeyReusedError
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.answers import Submission, check, encoded, fit_resolution, require_name
from holdfast.holds.actions.change import change
from holdfast.holds.actions.close import resolved
from holdfast.holds.actions.context import HoldContext, Permit
from holdfast.holds.actions.vote import voted
from holdfast.holds.permissions.actor import snapshot
from holdfast.holds.permissions.assignees import same_person
from holdfast.holds.policies.final_check import apply_guardrails
from holdfast.telemetry import crashpoint
from holdfast.types.audit import canonical
from holdfast.types.hold import HoldChange, HoldKey, HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor, operator
from holdfast.types.text import require_text

MAX_KEY: Final = 255


class ResolveConditions(msgspec.Struct, frozen=True, kw_only=True):
    """On what conditions somebody decides. `if_match`: the version that they have seen. `link`: the jti of
    the link that they came by, used up with the decision; `epoch`: the assignment that it was made for.
    `reason`: why they override. `recorded`: what else is kept with the decision, of a policy that decides."""

    if_match: int | None = None
    idempotency_key: str | None = None
    link: str | None = None
    epoch: int | None = None
    reason: str | None = None
    recorded: dict[str, Any] = {}


class ResolveResult(msgspec.Struct, frozen=True):
    """The hold as it is now. `replay`: it was decided so before, by the same actor; nothing was changed."""

    row: HoldRow
    replay: bool = False


async def answer(office: HoldContext, hold: str, said: Submission, *, by: str) -> HoldRow:
    """`resolve`, by whoever works on the store itself, in whichever tenant the hold is."""
    row = await office.find(hold)
    actor = operator(require_name(by), tenant=row.tenant)
    return (await resolve(office, actor, hold, said, ResolveConditions(), found=row)).row


async def resolve(
    office: HoldContext,
    actor: Actor,
    hold: str,
    said: Submission,
    terms: ResolveConditions,
    *,
    found: HoldRow | None = None,
) -> ResolveResult:
    """Once, whoever else tries. Where several people have to agree this is one vote, and the hold may stay
    open. Invalid: the hold stays as it is, and what was sent is the sender's draft.

    Raises HoldNotFoundError, ForbiddenError, AnswerInvalidError, HoldDecidedError (which names the winner)
    and the other conflicts, RunReadOnlyError for imported history."""
    replayed: list[bool] = []

    async def decide(row: HoldRow, now: int) -> HoldChange | None:
        if await is_replay(office, actor, row, said, terms):
            replayed.append(True)
            return None
        return await consider(office, actor, row, now, said, terms)

    row = await change(office, actor, hold, "resolve", decide, said=said, found=found, link=terms.link)
    if not replayed:
        crashpoint("after_answer")
    return ResolveResult(row, bool(replayed))


async def consider(
    office: HoldContext, actor: Actor, row: HoldRow, now: int, said: Submission, terms: ResolveConditions
) -> HoldChange:
    """What deciding it so would change. Writes nothing; raises as `resolve` does."""
    permit = await office.permit(
        actor, "resolve", row, now, reason=terms.reason, decision=_text(said.decision)
    )
    resolution = settled(row, actor, permit, now, said, terms)
    await _with_files(office, row, resolution)
    if row.terms.approval.mode == "any":
        made = resolved(row, resolution, by=actor.id, at=now)
    else:
        made = await voted(office, actor, row, permit, resolution, now)
    made = msgspec.structs.replace(made, link=terms.link, key=_key(actor, said, terms))
    return await apply_guardrails(office.guardrails, row, made, actor.id)


def settled(
    row: HoldRow, actor: Actor, permit: Permit, now: int, said: Submission, terms: ResolveConditions
) -> dict[str, Any]:
    """The resolution, where nothing stands against it."""
    conflicts.require_open(row)
    conflicts.require_epoch(row, terms.epoch)
    conflicts.require_free(row, actor.id, now)
    conflicts.require_version(row, terms.if_match)
    conflicts.require_content(row, said.request_hash)
    conflicts.require_in_time(row, now)
    checked = check(row, said)
    verdict = permit.verdict
    resolution: dict[str, Any] = {
        "decision": checked.decision,
        "response_data": checked.response_data,
        "comment": checked.comment,
        "auto_expired": False,
        "late": conflicts.is_late(row, now),
        "auth_method": actor.auth_method,
        "channel": actor.channel,
        "on_behalf_of": verdict.on_behalf_of or actor.on_behalf_of,
        "authority": verdict.authority,
        "request_hash": row.request_hash,
        **terms.recorded,
    }
    if not actor.is_system:
        resolution["members"] = snapshot(permit.standing, verdict.matched, now)
    if verdict.flagged:
        resolution["override_reason"] = terms.reason
    return fit_resolution(row, resolution)


async def _with_files(office: HoldContext, row: HoldRow, resolution: dict[str, Any]) -> None:
    """Raises FormInvalidError for a file that is not here."""
    if row.schema is not None:
        from holdfast.holds.forms import attachments

        await attachments.require_attached(office, row, resolution)


# ---------------------------------------------------------------------- the same again


async def is_replay(
    office: HoldContext, actor: Actor, row: HoldRow, said: Submission, terms: ResolveConditions
) -> bool:
    """Whether this very request was taken before (RS-6). Raises KeyReusedError for a key of another one, and
    InputError for one that is none."""
    if terms.idempotency_key is not None:
        _require_key(terms.idempotency_key)
        known = await office.store.hold_key(row.id, actor.id, terms.idempotency_key)
        if known is not None:
            if known.digest == _digest(said):
                return True
            raise KeyReusedError(
                f"the idempotency key {terms.idempotency_key!r} stands for another request on this hold.",
                hint="Use a new key for a new request.",
                hold=row.id,
            )
    return row.status is HoldStatus.resolved and _says_the_same(row, actor, said)


def _require_key(key: str) -> None:
    if not 0 < len(require_text(key, "an idempotency key")) <= MAX_KEY:
        raise InputError(f"an idempotency key has 1 to {MAX_KEY} characters.", hint="Use a random one.")


def _says_the_same(row: HoldRow, actor: Actor, said: Submission) -> bool:
    kept = conflicts.resolution_of(row)
    if kept.get("votes") or not same_person(row.resolved_by or "", actor.id):
        return False
    if said.request_hash not in (None, row.request_hash):
        return False
    # A form gives values their types: what is sent again is filled in again and compared as it is kept.
    try:
        checked = check(row, said)
        again = fit_resolution(row, {**kept, "response_data": checked.response_data})
    except InputError:
        return False
    if (checked.decision, checked.comment) != (kept.get("decision"), kept.get("comment")):
        return False
    return bool(encoded(again["response_data"]) == encoded(kept.get("response_data")))


def _key(actor: Actor, said: Submission, terms: ResolveConditions) -> HoldKey | None:
    if terms.idempotency_key is None:
        return None
    return HoldKey(actor.id, terms.idempotency_key, _digest(said))


def _digest(said: Submission) -> str:
    return sha256(canonical(msgspec.json.decode(encoded(said)))).hexdigest()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
