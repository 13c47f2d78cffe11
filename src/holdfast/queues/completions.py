"""Completions that come from outside: a foreign queue says that a message was answered (QU-4, QB-3 to QB-8).

The answer decides the hold as any other answer does. A completion for a hold that does not exist yet is kept
for a week and applied when the hold is opened (QU-25).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, Final, cast

import msgspec

from holdfast.errors import (
    ConflictError,
    ForbiddenError,
    HoldDecidedError,
    HoldNotFoundError,
    InputError,
    NotAssignedError,
    NotFoundError,
)
from holdfast.holds.actions import decide
from holdfast.holds.actions.audit_entries import entry
from holdfast.holds.actions.decide import ResolveConditions
from holdfast.holds.queries.audit import records_of
from holdfast.holds.service import HoldService, read_submission
from holdfast.telemetry import log
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.clock import MICROS
from holdfast.types.document import Document
from holdfast.types.hold import HoldChange, HoldKey, HoldRow
from holdfast.types.ids import HoldId, is_id
from holdfast.types.queue_message import MessageAct, MessageChange
from holdfast.types.status import HoldStatus
from holdfast.types.terms import OPERATOR, RESOLVE, Actor, ChainLink

EARLY: Final = "early_completion"
KEPT_FOR: Final = 7 * 86_400 * MICROS
MOST_KEPT: Final = 1000
"""Of one tenant: a sender of wrong ids must not fill the store."""
MOST_OF_HOLD: Final = 20
"""Of one hold that does not exist yet, by one sender."""
SYSTEM: Final = "system:queue"
BROKER: Final = "broker"
"""How the sender of a completion is known that a broker brought: by the name in it, which proves nothing."""
BROKER_ACTOR: Final = "broker_actor"
"""The same, where the settings say who the clients of the broker are."""
REFUSALS: Final = (InputError, ForbiddenError, ConflictError, NotFoundError)
"""Errors of the content: the same again would not help."""
_PAGE: Final = 200
_ANSWER: Final = ("decision", "resolution", "response_data", "comment", "request_hash")


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """`key`: the sender's id of the event, so that a repeat has no second effect. `tenant`: what the event
    says; None: nothing. `backend`: the broker that brought it."""

    correlation_id: str | None
    answer: dict[str, Any]
    key: str
    tenant: str | None = None
    message_id: str | None = None
    completed_by: str | None = None
    backend: str | None = None


Unbound = Callable[[HoldRow, Completion], Awaitable[str]]
"""Why the broker that brought a completion may not decide the hold; "": it may."""


class CompletionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`outcome`: resolved, voted (more votes are needed), already_decided, late (the hold was cancelled or
    expired), kept (the hold does not exist yet) or ignored."""

    outcome: str
    hold: str | None = None
    status: str | None = None
    reason: str = ""  # why it was ignored


def _ignored(reason: str) -> CompletionOutcome:
    return CompletionOutcome(outcome="ignored", reason=reason)


class _Early(msgspec.Struct, frozen=True, kw_only=True):
    completion: Completion
    actor: Actor


def read_event(body: bytes) -> dict[str, Any]:
    """What a broker brought. Raises InputError."""
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"the message is not JSON that can be read: {error}.") from error
    if not isinstance(found, dict):
        raise InputError("the message is not a JSON object.")
    return cast("dict[str, Any]", found)


def queue_actor(tenant: str, completed_by: str | None) -> Actor:
    """The person who completed a message of the store, else the queue itself."""
    return _actor(tenant, _named(completed_by), "queue", OPERATOR)


def broker_actor(tenant: str, completed_by: str | None, backend: str, actor: str | None) -> Actor:
    """Who decides by a completion that a broker brought (ADR 84): the actor of its settings, else the person
    whom it names. Behind every such name stands the broker: for the count of people it is one. The operator
    bound the broker to the queue, so it may resolve the holds that ask there, and no others."""
    if actor is not None:
        return _actor(tenant, actor, BROKER_ACTOR, OPERATOR)
    return _actor(tenant, _named(completed_by), BROKER, f"service:queue-{backend}")


def _named(completed_by: str | None) -> str:
    kind, _, name = (completed_by or "").partition(":")
    return f"user:{name}" if kind == "user" and name.strip() else SYSTEM


def _actor(tenant: str, name: str, auth_method: str, behind: str) -> Actor:
    return Actor(
        id=name,
        tenant=tenant,
        rights=frozenset({RESOLVE}),
        channel="queue",
        auth_method=auth_method,
        chain=(ChainLink(kind="queue", by=behind, to=name),),
    )


def read_completion(body: dict[str, Any], backend: str | None = None) -> Completion:
    """A completion event: the answer in `data.result`, or directly in `data`. `backend`: the broker that
    brought it, if one did. Raises InputError."""
    data = _object(body.get("data"), "data")
    given: Any = data.get("result", data)
    result = {"decision": given} if isinstance(given, str) else _object(given, "data.result")
    answer = {name: result[name] for name in _ANSWER if result.get(name) is not None}
    texts = {
        name: _text(data, name) for name in ("correlation_id", "checkpoint_id", "message_id", "completed_by")
    }
    correlation = texts["correlation_id"] or texts["checkpoint_id"]
    key = body.get("id") or texts["message_id"] or correlation or ""
    return Completion(
        correlation_id=correlation,
        answer=answer,
        key=str(key),
        tenant=_text(body, "tenant"),
        message_id=texts["message_id"],
        completed_by=texts["completed_by"],
        backend=backend,
    )


def _object(given: Any, what: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InputError(
            f"{what} of the event is not an object.",
            hint="Send {type, tenant, data: {correlation_id, result: {decision, ...}}}.",
        )
    return cast("dict[str, Any]", given)


def _text(data: dict[str, Any], name: str) -> str | None:
    value: Any = data.get(name)
    if value is not None and (not isinstance(value, str) or "\0" in value or len(value) > 500):
        raise InputError(f"{name} is not text of at most 500 characters.")
    return value or None


class Completions:
    """`apply` raises what `resolve` raises for an invalid answer, which leaves the hold open (QB-8), and
    StoreError, so that the sender repeats it (QB-10)."""

    def __init__(self, people: HoldService, unbound: Unbound | None = None) -> None:
        self.people = people
        self.store = people.store
        self._unbound = unbound

    async def apply(self, completion: Completion, actor: Actor) -> CompletionOutcome:
        """`actor`: who decides, in the tenant to which the sender is bound."""
        hold = completion.correlation_id
        if hold is None or not is_id(hold):
            return _ignored("it names no hold: correlation_id is not an id")
        if completion.tenant not in (None, actor.tenant):
            await self._foreign(completion, actor, str(completion.tenant))
            return _ignored("it names another tenant")
        row = await self.store.hold(HoldId(hold))
        if row is not None and row.tenant != actor.tenant:
            await self._foreign(completion, actor, row.tenant)
            return _ignored(f"there is no hold {hold} in this tenant")
        if row is None:
            return await self._keep(completion, actor, hold)
        if actor.auth_method in (BROKER, BROKER_ACTOR):
            reason = await self._unbound(row, completion) if self._unbound else "there are no brokers here"
            if reason:
                await self._audit_once(row, completion, actor, "unbound_completion")
                log.warning("a broker may not complete hold %s: %s", row.id, reason)
                return _ignored(reason)
        if row.status in (HoldStatus.cancelled, HoldStatus.expired):
            await self._late(row, completion, actor)
            return CompletionOutcome(outcome="late", hold=hold, status=str(row.status))
        if row.status is HoldStatus.pending:
            await self._require_proven(row, completion, actor)
        return await self._resolve(row, completion, actor)

    async def _require_proven(self, row: HoldRow, completion: Completion, actor: Actor) -> None:
        """Who may publish at the broker may write any name there. A name decides only what it need not
        prove: holds that nobody in particular has to decide. Raises NotAssignedError."""
        if actor.auth_method != BROKER or not row.terms.binds_everybody:
            return
        await self._audit_once(row, completion, actor, "unproven_completion")
        raise NotAssignedError(
            f"certain people have to decide hold {row.id}, and the broker does not prove who completed it.",
            hint="Decide it in the inbox or over the API; or name the actor of the backend in the settings.",
            hold=row.id,
        )

    async def _resolve(self, row: HoldRow, completion: Completion, actor: Actor) -> CompletionOutcome:
        if completion.message_id is not None and row.message_id not in (None, completion.message_id):
            log.warning(
                "hold %s is completed by message %s; its own is %s",
                row.id, completion.message_id, row.message_id,
            )  # fmt: skip
        submission = read_submission(completion.answer)
        terms = ResolveConditions(
            # 255: the maximum length of an idempotency key; the sender chooses the length of its ids.
            idempotency_key=f"queue:{completion.key}"[:255],
            message=_settled(row, completion, actor),
        )
        try:
            done = await decide.resolve(self.people.ctx, actor, row.id, submission, terms)
        except HoldNotFoundError as error:
            return _ignored(error.message)
        except HoldDecidedError as error:
            # A success for the sender: a retry could not change anything.
            return CompletionOutcome(
                outcome="already_decided", hold=row.id, status=str(error.facts.get("status"))
            )
        outcome = "resolved" if done.row.resolution is not None else "voted"
        return CompletionOutcome(outcome=outcome, hold=row.id, status=str(done.row.status))

    async def _foreign(self, completion: Completion, actor: Actor, tenant: str) -> None:
        """A security event of the tenant to which the sender is bound; the other tenant is not touched."""
        data = canonical({"claimed_tenant": tenant, "message_id": completion.message_id})
        made = NewAudit(
            at=self.store.now(), actor=actor.id, action="foreign_completion", hold=None, run=None, data=data
        )
        await self.store.append_audit(actor.tenant, [made])
        log.warning("a completion bound to tenant %s named a hold of another tenant", actor.tenant)

    async def _audit_once(self, row: HoldRow, completion: Completion, actor: Actor, action: str) -> None:
        """Once for each hold: the reconciler finds a completion again for as long as the broker keeps it."""
        known = await records_of(self.store, row.tenant, hold=row.id)
        if all(each.action != action for each in known):
            made = entry(row, actor.id, action, self.store.now(), message_id=completion.message_id)
            await self.store.append_audit(row.tenant, [made])

    async def _late(self, row: HoldRow, completion: Completion, actor: Actor) -> None:
        """Audited once, however often it is delivered."""
        now = self.store.now()
        made = entry(row, actor.id, "late_completion", now, status=str(row.status))
        once = HoldKey(SYSTEM, f"late:{completion.key}"[:255], "")
        await self.store.change_hold(
            HoldChange(hold=row.id, version=row.version, at=now, audit=(made,), key=once)
        )

    # ------------------------------------------------------------------ before the hold
    async def _keep(self, completion: Completion, actor: Actor, hold: str) -> CompletionOutcome:
        kept = await self.store.documents(actor.tenant, EARLY, limit=MOST_KEPT)
        if len(kept) >= MOST_KEPT:
            log.warning("%d completions without a hold are kept; another one is ignored", len(kept))
            return _ignored(f"its hold does not exist, and {len(kept)} such completions are kept already")
        body = msgspec.json.encode(_Early(completion=completion, actor=actor))
        # Each event of each sender once, for several may vote; none takes the place of another's.
        sender = f"{hold}:{_short_digest(completion.backend or '')}"
        name = f"{sender}:{_short_digest(completion.key)}"
        own = [each for each in kept if each.name.startswith(sender) and each.name != name]
        if len(own) >= MOST_OF_HOLD:
            return _ignored(f"its hold does not exist, and {len(own)} completions of it are kept already")
        kept_now = Document(tenant=actor.tenant, kind=EARLY, name=name, body=body)
        await self.store.put_document(kept_now, expect=0)
        return CompletionOutcome(outcome="kept", hold=hold)

    async def apply_early(self, row: HoldRow) -> bool:
        """The completions that came before this hold was opened. An invalid one is dropped: the hold stays
        open, and the refusal is in its history."""
        kept = await self.store.documents(row.tenant, EARLY, prefix=row.id, limit=_PAGE)
        for each in sorted(kept, key=lambda each: each.updated_at):
            try:
                early = msgspec.json.decode(each.body, type=_Early)
                await self.apply(early.completion, _sender(early.actor))
            except (*REFUSALS, msgspec.DecodeError) as error:
                log.warning("the early completion of hold %s is invalid: %s", row.id, error)
            await self.store.drop_document(row.tenant, EARLY, each.name)
        return bool(kept)

    async def sweep_early(self, tenant: str) -> int:
        """Apply those whose hold exists by now, and delete those that are older than a week."""
        applied, after = 0, ""
        while page := await self.store.documents(tenant, EARLY, after=after, limit=_PAGE):
            for each in page:
                row = await self.store.hold(_hold_of(each))
                if row is not None and await self.apply_early(row):
                    applied += 1
                elif row is None and each.updated_at + KEPT_FOR < self.store.now():
                    await self.store.drop_document(tenant, EARLY, each.name)
            after = page[-1].name
        return applied


def _sender(actor: Actor) -> Actor:
    """Before ADR 84, a completion that a broker brought was kept as if the queue itself had sent it: it
    proves no more than any other of a broker, which one is not known, so it decides nothing."""
    return msgspec.structs.replace(actor, auth_method=BROKER) if actor.auth_method == "queue" else actor


def _short_digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def _hold_of(kept: Document) -> HoldId:
    return HoldId(kept.name.partition(":")[0])


def _settled(row: HoldRow, completion: Completion, actor: Actor) -> MessageChange | None:
    """The hold's own message ends as completed, with the answer as its result."""
    if row.message_id is None:
        return None
    return MessageChange(
        tenant=row.tenant,
        id=row.message_id,
        act=MessageAct.settle,
        by=actor.id,
        result=msgspec.json.encode(completion.answer),
    )
