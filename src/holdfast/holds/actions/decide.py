"""Deciding a hold, once: checks permission, the content shown, and the answer (RS-1 to RS-10)."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec

from holdfast.errors import InputError, KeyReusedError
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.change import change
from holdfast.holds.actions.close import resolved
from holdfast.holds.actions.context import HoldContext, Permit
from holdfast.holds.actions.lapsed_votes import without_lapsed_votes
from holdfast.holds.actions.submission import Submission, check, encoded, fitted, require_name
from holdfast.holds.actions.vote import voted
from holdfast.holds.permissions.actor import snapshot
from holdfast.holds.permissions.assignees import parse_assignee, same_person
from holdfast.holds.permissions.participants import names_behind
from holdfast.holds.policies.final_check import apply_guardrails
from holdfast.telemetry import crashpoint
from holdfast.types.audit import canonical
from holdfast.types.hold import CALLBACK, CONSUME, HoldChange, HoldKey, HoldRow
from holdfast.types.queue_message import MessageAct, MessageChange
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor, operator
from holdfast.types.text import require_text

MAX_KEY: Final = 255


class ResolveConditions(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions of a decision. `if_match`: the version that the actor read. `link`: the jti of the link that
    they used, which is used up with the decision; `epoch`: the assignment that it was made for. `reason`: why
    they override. `message`: the message of a queue that is completed with the decision. `callback`: the
    actor has shown the token of the hold. `recorded`: further data to store with the decision of a policy."""

    if_match: int | None = None
    idempotency_key: str | None = None
    link: str | None = None
    epoch: int | None = None
    reason: str | None = None
    message: MessageChange | None = None
    callback: bool = False
    recorded: dict[str, Any] = {}


class ResolveResult(msgspec.Struct, frozen=True):
    """The hold as it is now. `replay`: the same actor made the same decision before; nothing was changed."""

    row: HoldRow
    replay: bool = False


async def answer(ctx: HoldContext, hold: str, submission: Submission, *, by: str, channel: str) -> HoldRow:
    """`resolve` for operators with access to the store, in any tenant."""
    row = await ctx.find(hold)
    # The tenant of the hold: access to the store itself is access to all tenants.
    actor = operator(require_name(by), tenant=row.tenant, channel=channel)
    return (await resolve(ctx, actor, hold, submission, ResolveConditions(), found=row)).row


async def resolve(
    ctx: HoldContext,
    actor: Actor,
    hold: str,
    submission: Submission,
    terms: ResolveConditions,
    *,
    found: HoldRow | None = None,
) -> ResolveResult:
    """Decide the hold; only the first decision counts. If several people have to agree, this is one vote, and
    the hold may stay open. An invalid answer does not change the hold and is stored as the sender's draft.

    Raises HoldNotFoundError, ForbiddenError, AnswerInvalidError, HoldDecidedError (which names who decided)
    and the other conflicts, RunReadOnlyError for imported history."""
    replayed: list[bool] = []

    async def decide(row: HoldRow, now: int) -> HoldChange | None:
        # First of all: a repeated request gets its first result, even if the hold is decided by now.
        if await is_replay(ctx, actor, row, submission, terms):
            replayed.append(True)
            return None
        row = await without_lapsed_votes(ctx, row, now)
        return _with_message(await consider(ctx, actor, row, now, submission, terms), terms)

    row = await change(
        ctx, actor, hold, "resolve", decide, submission=submission, found=found, link=terms.link
    )
    if not replayed:
        # Not after a replay, which has written nothing.
        crashpoint("after_answer")
    return ResolveResult(row, bool(replayed))


async def require_resolvable(
    ctx: HoldContext, actor: Actor, hold: str, submission: Submission, terms: ResolveConditions
) -> None:
    """Raises as `resolve` does; the hold is not decided. A refusal is audited as that of a decision."""

    async def decide(row: HoldRow, now: int) -> None:
        if not await is_replay(ctx, actor, row, submission, terms):
            row = await without_lapsed_votes(ctx, row, now)
            await consider(ctx, actor, row, now, submission, terms)

    await change(ctx, actor, hold, "resolve", decide, submission=submission)


async def consider(
    ctx: HoldContext, actor: Actor, row: HoldRow, now: int, submission: Submission, terms: ResolveConditions
) -> HoldChange:
    """The change that this decision would make. Writes nothing; raises as `resolve` does."""
    # The permission is checked before the content, so that errors about the content reveal nothing.
    permit = await ctx.permit(
        actor, "resolve", row, now, reason=terms.reason, decision=_text(submission.decision)
    )
    if row.type == CONSUME and terms.message is None:
        raise InputError(
            f"{row.node!r} waits for a message of {row.terms.queue or 'a queue'}, not for an answer.",
            hint="Publish the message, or cancel the run.",
        )
    if row.type == CALLBACK and not terms.callback:
        raise InputError(
            f"{row.node!r} waits for a callback, not for an answer.",
            hint="Complete it with its token, or cancel the run.",
        )
    resolution = await fitted(row, _checked_resolution(row, actor, permit, now, submission, terms))
    await _with_files(ctx, row, resolution)
    if row.terms.approval.mode == "any":
        made = resolved(row, resolution, by=actor.id, at=now)
    else:
        made = await voted(ctx, actor, row, permit, resolution, now)
    # Link and key are used up in the same transaction as the decision, or not at all.
    made = msgspec.structs.replace(made, link=terms.link, key=_key(actor, submission, terms))
    return await apply_guardrails(ctx.guardrails, row, made, actor.id)


def _with_message(made: HoldChange, terms: ResolveConditions) -> HoldChange:
    """The message is completed with the hold. After one of several votes the next voter can claim it."""
    message = terms.message
    if message is None:
        return made
    if made.fields.get("status") is None:
        if message.token is None:
            return made
        message = msgspec.structs.replace(
            message, act=MessageAct.release, result=None, by=None, delay=0, counted=False
        )
    return msgspec.structs.replace(made, message=message)


def _checked_resolution(
    row: HoldRow, actor: Actor, permit: Permit, now: int, submission: Submission, terms: ResolveConditions
) -> dict[str, Any]:
    """The resolution, if all checks pass but that of its data."""
    # This order is the order of the errors. A decided hold is reported as decided also to a caller with an
    # old version: who decided is worth more than the number. Invalid content comes last.
    conflicts.require_open(row)
    conflicts.require_epoch(row, terms.epoch)
    conflicts.require_free(row, actor.id, now)
    conflicts.require_version(row, terms.if_match)
    conflicts.require_content(row, submission.request_hash)
    conflicts.require_in_time(row, now)
    checked = check(row, submission)
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
        **({} if row.terms.shadow_usage is None else {"usage": row.terms.shadow_usage}),
        **terms.recorded,
    }
    if not actor.is_system:
        # Stored, because the directory may say something else by the time of an audit.
        resolution["members"] = snapshot(permit.standing, verdict.matched, now)
    if actor.chain or not actor.is_system:
        resolution["chain"] = msgspec.to_builtins(actor.chain)
        resolution["took_part"] = list(_took_part(permit))
    if verdict.flagged:
        resolution["override_reason"] = terms.reason
    return resolution


def _took_part(permit: Permit) -> tuple[str, ...]:
    """Everybody behind the actor in this decision."""
    matched = permit.verdict.matched
    return names_behind(permit.standing, permit.past, [parse_assignee(matched)] if matched else [])


async def _with_files(ctx: HoldContext, row: HoldRow, resolution: dict[str, Any]) -> None:
    """Raises FormInvalidError for a file that is not attached."""
    if row.schema is not None:
        from holdfast.holds.forms import attachments

        await attachments.require_attached(ctx, row, resolution)


# ---------------------------------------------------------------------- repeated requests


async def is_replay(
    ctx: HoldContext, actor: Actor, row: HoldRow, submission: Submission, terms: ResolveConditions
) -> bool:
    """Whether the same request was accepted before (RS-6). Raises KeyReusedError if the key was used for
    another request, InputError if it is not a key."""
    if terms.idempotency_key is not None:
        _require_key(terms.idempotency_key)
        known = await ctx.store.hold_key(row.id, actor.id, terms.idempotency_key)
        if known is not None:
            # The content is compared too: a client that reuses a
            # key for another answer must not get the old result.
            if known.digest == _digest(submission):
                return True
            raise KeyReusedError(
                f"the idempotency key {terms.idempotency_key!r} was used for another request on this hold.",
                hint="Use a new key for a new request.",
                hold=row.id,
            )
    return row.status is HoldStatus.resolved and await _says_the_same(row, actor, submission)


def _require_key(key: str) -> None:
    if not 0 < len(require_text(key, "an idempotency key")) <= MAX_KEY:
        raise InputError(f"an idempotency key must have 1 to {MAX_KEY} characters.", hint="Use a random one.")


async def _says_the_same(row: HoldRow, actor: Actor, submission: Submission) -> bool:
    kept = conflicts.resolution_of(row)
    # The resolution of a vote is the outcome of all ballots,
    # which cannot be compared with one person's answer.
    if kept.get("votes") or not same_person(row.resolved_by or "", actor.id):
        return False
    if submission.request_hash not in (None, row.request_hash):
        return False
    # A form gives values their types: the repeated answer is filled in again and compared as it is stored.
    try:
        checked = check(row, submission)
        again = await fitted(row, {**kept, "response_data": checked.response_data})
    except InputError:
        return False
    if (checked.decision, checked.comment) != (kept.get("decision"), kept.get("comment")):
        return False
    return bool(encoded(again["response_data"]) == encoded(kept.get("response_data")))


def _key(actor: Actor, submission: Submission, terms: ResolveConditions) -> HoldKey | None:
    if terms.idempotency_key is None:
        return None
    return HoldKey(actor.id, terms.idempotency_key, _digest(submission))


def _digest(submission: Submission) -> str:
    return sha256(canonical(msgspec.json.decode(encoded(submission)))).hexdigest()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
