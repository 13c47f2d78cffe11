"""The service of queues: publish, list, claim, complete, release, requeue and withdraw messages.

Every method raises InputError for a wrong name, and MessageNotFoundError if the tenant's queue has no such
message.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any, Final, cast

import msgspec

from holdfast.app.extensions import QUEUES
from holdfast.errors import (
    ClaimLostError,
    HoldfastError,
    InputError,
    MessageDiffersError,
    MessageEndedError,
    MessageNotFoundError,
    StoreError,
    ValueTooLargeError,
)
from holdfast.holds.actions import resolve
from holdfast.holds.actions.resolve import ResolveConditions
from holdfast.holds.service import HoldService, read_submission
from holdfast.queues.bridge import QueueBridge, ReconcileCounts
from holdfast.queues.completions import Completions
from holdfast.queues.settings import QueueSettings, queue_settings, require_queue_name
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.audit import canonical
from holdfast.types.clock import MICROS, Clock
from holdfast.types.ids import DEFAULT_TENANT, new_id
from holdfast.types.queue_message import (
    HITL_REQUEST,
    MESSAGE_ID,
    MessageAct,
    MessageChange,
    MessageClaim,
    MessageFilter,
    MessageRefusal,
    MessageRow,
    MessageState,
    NewMessage,
    QueueCounts,
)
from holdfast.types.terms import PRIORITIES, Actor

MAX_PAYLOAD: Final = 256 * 1024
"""Bytes of a message's content, as JSON."""
MAX_CLAIMED: Final = 100
MAX_WAIT: Final = 30.0
MAX_CLAIM_TTL: Final = 12 * 3600 * MICROS
MAX_ERROR: Final = 2000
_EVERY: Final = 1.0  # seconds between two rounds of a worker
_BATCH: Final = 500
_RECONCILE: Final = 300 * MICROS
_LOOK: Final = 0.25  # seconds between two looks at an empty queue
_REQUEST_FIELDS: Final = (
    "scope", "queue", "type", "correlation_id", "priority", "group_key", "expires_at",
)  # fmt: skip


class QueueService:
    def __init__(
        self,
        store: Store,
        people: HoldService,
        clock: Clock,
        settings: QueueSettings,
        *,
        base_url: str = "",
    ) -> None:
        self.store = store
        self.people = people
        self.clock = clock
        self.settings = settings
        self.completions = Completions(people)
        self.bridge = QueueBridge(store, settings, self.completions, base_url)
        self._reconciled = store.now()

    async def publish(
        self,
        scope: str,
        queue: str,
        payload: Any,
        *,
        id: str | None = None,  # noqa: A002
        type: str = "message",  # noqa: A002
        correlation_id: str | None = None,
        priority: str = "normal",
        visible_at: int = 0,
        expires_at: int | None = None,
        group_key: str | None = None,
        run: str | None = None,
        node: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> MessageRow:
        """Publish a message, once for each id. `visible_at` and `expires_at`: microseconds.

        Raises MessageDiffersError if the id belongs to a message with other content, ValueTooLargeError."""
        spec = self.settings.of(scope, queue)
        if type == HITL_REQUEST:
            raise InputError(
                f"{HITL_REQUEST!r} is the type of messages that holds publish.", hint="Use another type."
            )
        new = NewMessage(
            id=_require_id(id) if id is not None else new_id(),
            tenant=tenant,
            scope=scope,
            queue=queue,
            type=_require_text(type, "the type", 100),
            correlation_id=_optional(correlation_id, "the correlation id"),
            priority=_require_priority(priority),
            payload=encode_payload(payload),
            digest="",
            visible_at=visible_at,
            expires_at=expires_at,
            group_key=_optional(group_key, "the group key"),
            run=run,
            node=node,
            max_attempts=spec.max_attempts,
            retention=spec.retention_micros,
        )
        return await self._published(msgspec.structs.replace(new, digest=content_digest(new)))

    async def _published(self, new: NewMessage) -> MessageRow:
        found = await self.store.publish_message(new)
        assert found is not None
        row, fresh = found
        if not fresh and row.digest != new.digest:
            raise MessageDiffersError(
                f"a message with the id {new.id} exists with other content.",
                hint="Use a new id for other content; repeat the same content to publish it again.",
                message_id=new.id,
            )
        return row

    async def get(self, scope: str, queue: str, message: str, *, tenant: str = DEFAULT_TENANT) -> MessageRow:
        row = await self.store.queue_message(tenant, message) if MESSAGE_ID.fullmatch(message) else None
        if row is None or (row.scope, row.queue) != (scope, queue):
            raise MessageNotFoundError(
                f"the queue {scope}/{queue} has no message {message}.",
                hint="List its messages; a message may have been moved to another queue.",
                message_id=message,
            )
        return row

    async def list(
        self,
        scope: str,
        queue: str,
        *,
        states: tuple[MessageState, ...] = (),
        type: str | None = None,  # noqa: A002
        correlation_id: str | None = None,
        after: int | None = None,
        limit: int = 50,
        tenant: str = DEFAULT_TENANT,
    ) -> list[MessageRow]:
        """Newest first; `after`: the number of the last row seen."""
        require_queue_name(scope, "scope")
        require_queue_name(queue, "queue")
        where = MessageFilter(
            tenant=tenant, scope=scope, queue=queue, states=states, type=type, correlation_id=correlation_id
        )
        return await self.store.list_messages(where, after=after, limit=limit)

    async def counts(self, tenant: str | None = DEFAULT_TENANT) -> list[QueueCounts]:
        return await self.store.queue_counts(tenant)

    # ------------------------------------------------------------------ duties of a worker
    async def serve(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.work()
            except StoreError as error:
                log.warning("queues could not be served: %s", error)
            await self.clock.sleep(_EVERY)

    async def work(self) -> None:
        """Publish the messages of holds, sweep claims that have lapsed and messages whose time has passed."""
        await self.bridge.work()
        while (await self.store.sweep_messages(limit=_BATCH)).total >= _BATCH:
            pass
        if self.store.now() - self._reconciled >= _RECONCILE:
            self._reconciled = self.store.now()
            await self.bridge.reconcile()

    async def reconcile(self) -> ReconcileCounts:
        """Compare open holds with their messages, and repair what was missed."""
        await self.bridge.work()
        return await self.bridge.reconcile()

    # ------------------------------------------------------------------ working
    async def claim(
        self,
        scope: str,
        queue: str,
        *,
        by: str,
        limit: int = 1,
        wait: float = 0.0,
        ttl: int | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> list[MessageRow]:
        """Claim up to `limit` messages for `ttl` microseconds; `wait`: seconds to wait for a first one."""
        spec = self.settings.of(scope, queue)
        want = MessageClaim(
            tenant=tenant,
            scope=scope,
            queue=queue,
            by=by,
            ttl=_require_ttl(ttl if ttl is not None else spec.claim_micros),
            limit=max(1, min(limit, MAX_CLAIMED)),
        )
        until = self.clock.monotonic() + min(wait, MAX_WAIT)
        while not (found := await self.store.claim_messages(want)):
            left = until - self.clock.monotonic()
            if left <= 0:
                break
            await asyncio.sleep(min(_LOOK, left))
        return found

    async def claim_one(
        self,
        scope: str,
        queue: str,
        message: str,
        *,
        by: str,
        ttl: int | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> MessageRow:
        """Raises ClaimLostError if another worker has it, MessageEndedError if it is not open."""
        row = await self.get(scope, queue, message, tenant=tenant)
        length = _require_ttl(ttl if ttl is not None else self.settings.of(scope, queue).claim_micros)
        want = MessageClaim(tenant=tenant, scope=scope, queue=queue, by=by, ttl=length, id=message)
        found = await self.store.claim_messages(want)
        if found:
            return found[0]
        now = await self.get(scope, queue, message, tenant=tenant)
        if not now.is_open:
            raise _ended(now)
        raise ClaimLostError(
            f"the message {message} cannot be claimed now: {_why_not(now, self.store.now())}.",
            hint="Try again later.",
            message_id=row.id,
            state=str(now.state),
        )

    async def extend(
        self,
        scope: str,
        queue: str,
        message: str,
        token: int,
        *,
        ttl: int | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> MessageRow:
        """Raises ClaimLostError, as `complete` and `release` do."""
        length = _require_ttl(ttl if ttl is not None else self.settings.of(scope, queue).claim_micros)
        return await self._act(scope, queue, message, tenant, MessageAct.extend, token=token, ttl=length)

    async def complete(
        self,
        actor: Actor,
        scope: str,
        queue: str,
        message: str,
        token: int,
        result: Any = None,
    ) -> MessageRow:
        """Complete a claimed message with a result. Completing a review request decides its hold, under the
        actor's rights and in one transaction: `result` is the answer, `{decision, response_data, comment}`.

        Raises ClaimLostError, and for a review request what `HoldService.resolve` raises; then neither the
        hold nor the message has changed."""
        row = await self.get(scope, queue, message, tenant=actor.tenant)
        if row.hold is not None:
            return await self._decide(actor, row, token, result)
        return await self._act(
            scope,
            queue,
            message,
            actor.tenant,
            MessageAct.complete,
            token=token,
            by=actor.id,
            result=encode_payload(result, "the result"),
        )

    async def _decide(self, actor: Actor, row: MessageRow, token: int, result: Any) -> MessageRow:
        if row.claim_token != token or row.state not in (MessageState.claimed, MessageState.completed):
            raise refused(MessageRefusal.claim_lost, row)
        answer = cast("dict[str, Any] | str", result if isinstance(result, (dict, str)) else {})
        change = MessageChange(
            tenant=row.tenant,
            id=row.id,
            act=MessageAct.complete,
            token=token,
            by=actor.id,
            result=encode_payload(answer, "the result"),
        )
        terms = ResolveConditions(message=change)
        actor = msgspec.structs.replace(actor, channel="queue") if actor.channel == "api" else actor
        await resolve.resolve(self.people.ctx, actor, row.hold or "", read_submission(answer), terms)
        return await self.get(row.scope, row.queue, row.id, tenant=row.tenant)

    async def release(
        self,
        scope: str,
        queue: str,
        message: str,
        token: int,
        *,
        delay: int | None = None,
        error: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> MessageRow:
        """Give it back; it can be claimed again after `delay` (microseconds), or after a back-off. After its
        last attempt it is dead."""
        return await self._act(
            scope, queue, message, tenant, MessageAct.release, token=token, delay=delay, error=_cut(error)
        )

    # ------------------------------------------------------------------ operating
    async def dead(
        self,
        scope: str,
        queue: str,
        message: str,
        *,
        token: int | None = None,
        error: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> MessageRow:
        """Give it up: a dead letter is kept until it is requeued or withdrawn."""
        return await self._act(scope, queue, message, tenant, MessageAct.dead, token=token, error=_cut(error))

    async def requeue(
        self, scope: str, queue: str, message: str, *, tenant: str = DEFAULT_TENANT
    ) -> MessageRow:
        """Make a dead message ready again, with all its attempts."""
        return await self._act(scope, queue, message, tenant, MessageAct.requeue)

    async def withdraw(
        self, scope: str, queue: str, message: str, *, tenant: str = DEFAULT_TENANT
    ) -> MessageRow:
        """Take an open or dead message back."""
        return await self._act(scope, queue, message, tenant, MessageAct.withdraw)

    async def _act(
        self,
        scope: str,
        queue: str,
        message: str,
        tenant: str,
        act: MessageAct,
        **given: Any,
    ) -> MessageRow:
        row = await self.get(scope, queue, message, tenant=tenant)
        done = await self.store.change_message(MessageChange(tenant=tenant, id=message, act=act, **given))
        if isinstance(done, MessageRow):
            return done
        raise refused(done, row)


def refused(why: MessageRefusal, row: MessageRow) -> HoldfastError:
    """The error for an act that the store refused."""
    if why is MessageRefusal.unknown:
        return MessageNotFoundError(f"the message {row.id} was deleted.", message_id=row.id)
    if why is MessageRefusal.claim_lost:
        return ClaimLostError(
            f"the claim on the message {row.id} has ended.",
            hint="Claim it again; another worker may be working on it.",
            message_id=row.id,
            state=str(row.state),
        )
    if why is MessageRefusal.not_dead:
        return MessageEndedError(
            f"the message {row.id} is {row.state}; only a dead one can be requeued.",
            hint="Publish a new message instead.",
            message_id=row.id,
            state=str(row.state),
        )
    return _ended(row)


def _ended(row: MessageRow) -> MessageEndedError:
    return MessageEndedError(
        f"the message {row.id} is {row.state}.",
        hint="It cannot change any more.",
        message_id=row.id,
        state=str(row.state),
    )


def _why_not(row: MessageRow, now: int) -> str:
    if row.state is MessageState.claimed:
        return f"{row.claimed_by} has claimed it"
    if row.visible_at > now:
        return "its delay has not passed"
    return "an earlier message of its group is not done"


def encode_payload(value: Any, what: str = "the payload") -> bytes:
    """Raises ValueTooLargeError, InputError."""
    try:
        data = msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} is not JSON: {error}.") from error
    if len(data) > MAX_PAYLOAD:
        raise ValueTooLargeError(
            f"{what} has {len(data)} bytes; at most {MAX_PAYLOAD} are allowed.",
            hint="Store large data elsewhere, and send its address.",
        )
    return data


def content_digest(new: NewMessage) -> str:
    """The same content gives the same digest, whatever the order of the fields in the payload."""
    content = {name: getattr(new, name) for name in _REQUEST_FIELDS}
    whole = canonical({**content, "payload": msgspec.json.decode(new.payload)})
    return sha256(whole).hexdigest()


def _require_id(given: str) -> str:
    if not MESSAGE_ID.fullmatch(given):
        raise InputError(
            f"{given!r} is not an id of a message.",
            hint="Use 1 to 64 letters, digits, hyphens and underscores.",
        )
    return given


def _require_priority(given: str) -> str:
    if given not in PRIORITIES:
        raise InputError(f"{given!r} is not a priority.", hint=f"Choose from: {', '.join(PRIORITIES)}.")
    return given


def _require_text(given: str, what: str, longest: int) -> str:
    if not 0 < len(given) <= longest or "\0" in given:
        raise InputError(f"{what} must have 1 to {longest} characters.")
    return given


def _optional(given: str | None, what: str) -> str | None:
    return None if given is None else _require_text(given, what, 200)


def _require_ttl(ttl: int) -> int:
    if not 0 < ttl <= MAX_CLAIM_TTL:
        raise InputError("a claim lasts from a moment to 12 hours.", hint="Extend it while you work.")
    return ttl


def _cut(error: str | None) -> str | None:
    return None if error is None else error[:MAX_ERROR]


def open_queues(
    store: Store, people: HoldService, clock: Clock, settings: Any, *, base_url: str = ""
) -> QueueService:
    """Raises SettingsError."""
    return QueueService(store, people, clock, queue_settings(settings), base_url=base_url)


QUEUES.register(open_queues)
