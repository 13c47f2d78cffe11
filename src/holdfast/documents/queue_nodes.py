"""The code of nodes that publish messages and move them. Doing one twice has one effect."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, cast

import msgspec

from holdfast.errors import ConflictError, InputError, MessageDiffersError, NotDone
from holdfast.frontends.document.node_type import DocumentNode
from holdfast.frontends.document.node_types.queues import QueueEscalationConfig, QueuePublishConfig
from holdfast.frontends.document.render import compile_value, resolver_for
from holdfast.model.hold_declaration import assignee_fault
from holdfast.model.program import NodeHandler
from holdfast.model.template import as_text
from holdfast.queues.escalate_review import escalate_review
from holdfast.queues.service import QueueService
from holdfast.runs.store_identity import store_identity
from holdfast.store.protocols import Store
from holdfast.types.duration import parse_duration
from holdfast.types.hold import HoldFilter, HoldOrder
from holdfast.types.ids import derived_id
from holdfast.types.outcome import FAIL, Outcome
from holdfast.types.queue_message import MESSAGE_ID, MessageRow
from holdfast.types.status import HoldStatus

_MICRO: Final = timedelta(microseconds=1)


def publish_handler(node: DocumentNode) -> NodeHandler:
    config: QueuePublishConfig = node.config
    scope = config.scope or node.flow.scope or ""
    payload, group = compile_value(config.payload), compile_value(config.group)

    async def publish(state: Mapping[str, Any], ctx: Any) -> Any:
        queues: QueueService = ctx.queues
        resolve, now = resolver_for(state, ctx), queues.store.now()
        message, found = await _own_message(queues.store, scope, config.queue, ctx)
        if not found:
            given = group(resolve)
            try:
                await queues.publish(
                    scope,
                    config.queue,
                    payload(resolve),
                    id=message,
                    type=config.type,
                    priority=config.priority,
                    visible_at=0 if config.delay is None else now + _micros(config.delay),
                    expires_at=None if config.expires is None else now + _micros(config.expires),
                    group_key=None if given is None else as_text(given),
                    run=ctx.run_id,
                    node=ctx.node,
                    tenant=ctx.tenant,
                )
            except MessageDiffersError:
                # Another attempt was first, whose times differ; or a caller, in between, who chose this id.
                if not await _is_own(queues.store, message, ctx):
                    raise NotDone("another message has taken its id.", hint="Retry it.") from None
            except InputError as error:
                # Nothing was published: an unlisted queue, or a payload that is too large.
                return Outcome(FAIL, reason=error.message, final=True)
        return {node.bind: {"message_id": message}} if node.bind else None

    return NodeHandler(fn=publish, is_async=True, takes=("state", "ctx"), code="canvas-queue/1", waits=False)


async def _own_message(store: Store, scope: str, queue: str, ctx: Any) -> tuple[str, bool]:
    """Its id, and whether it is published. Derived from the key of the visit: a repeat after a crash finds
    it. A caller may choose that id for a message of theirs; then it is derived from what callers do not
    know."""
    key = ("queue_publish", scope, queue, ctx.idempotency_key)
    message = derived_id(*key)
    if await store.queue_message(ctx.tenant, message) is None:
        return message, False
    if await _is_own(store, message, ctx):
        return message, True
    message = derived_id(*key, await store_identity(store))
    return message, await _is_own(store, message, ctx)


async def _is_own(store: Store, message: str, ctx: Any) -> bool:
    row = await store.queue_message(ctx.tenant, message)
    return row is not None and (row.run, row.node) == (ctx.run_id, ctx.node)


def escalation_handler(node: DocumentNode) -> NodeHandler:
    config: QueueEscalationConfig = node.config
    render = compile_value({"message": config.message, "assignee": config.assignee, "note": config.note})

    async def escalate(state: Mapping[str, Any], ctx: Any) -> Any:
        queues: QueueService = ctx.queues
        given = render(resolver_for(state, ctx))
        row = await _target(queues.store, node, config, given["message"], state, ctx)
        try:
            moved = row is not None and await _moved(queues, row, node, config, given, ctx.run_id)
        except (InputError, ConflictError) as error:
            # Nothing was moved: an unlisted queue, a payload that is too large, a review of another run.
            return Outcome(FAIL, reason=error.message, final=True)
        result = {"escalated": moved, "message_id": row.id if row is not None else None}
        return {node.bind: result} if node.bind else None

    return NodeHandler(fn=escalate, is_async=True, takes=("state", "ctx"), code="canvas-queue/1", waits=False)


async def _target(
    store: Store,
    node: DocumentNode,
    config: QueueEscalationConfig,
    message: Any,
    state: Mapping[str, Any],
    ctx: Any,
) -> MessageRow | None:
    """The message to move; None: there is none any more. Raises NotDone for one that is not published yet."""
    if config.of is not None and node.flow.types.get(config.of) == "hitl_review":
        where = HoldFilter(tenant=ctx.tenant, run=(ctx.run_id,), status=(HoldStatus.pending,))
        page = await store.list_holds(where, order=HoldOrder.newest, limit=100)
        [*holds] = [hold for hold, _ in page if hold.node == config.of and hold.scope == ctx.scope]
        if not holds:
            return None
        if holds[0].message_id is None:
            raise NotDone(
                f"the review {config.of!r} is not in its queue yet: a worker publishes it.",
                hint="Start one with `holdfast worker`; `holdfast run` and `resume` publish no reviews. With "
                "a worker, `retry: {attempts: 5}` of this node covers the moment until it is published.",
            )
        message = holds[0].message_id
    elif config.of is not None:
        published: Any = state.get(node.flow.binds.get(config.of) or "")
        message = published["message_id"] if published else None
    text = "" if message is None else as_text(message)
    return await store.queue_message(ctx.tenant, text) if MESSAGE_ID.fullmatch(text) else None


async def _moved(
    queues: QueueService,
    row: MessageRow,
    node: DocumentNode,
    config: QueueEscalationConfig,
    given: dict[str, Any],
    run: str,
) -> bool:
    to = None if config.queue is None else f"{config.scope or node.flow.scope}/{config.queue}"
    if config.assignee is not None:
        _require_assignee(given["assignee"])
    added = {name: given[name] for name in ("assignee", "note") if given[name] is not None}
    if row.hold is None:
        return await queues.move(row, to, priority=config.priority, payload=_noted(row, added))
    if row.run != run:
        raise InputError(f"the message {row.id} is a review of another run.", hint="Escalate it there.")
    if "{{" in (config.assignee or ""):
        # A value of the run could name the person who started it.
        raise InputError("the assignee of a review must be written in the document, without placeholders.")
    note = None if given["note"] is None else as_text(given["note"])
    return await escalate_review(
        queues, row, to, priority=config.priority, assignee=config.assignee, note=note
    )


def _require_assignee(given: Any) -> None:
    """Raises InputError for a value that names no assignee."""
    fault = assignee_fault(given) if isinstance(given, str) and given.strip() else "it is no name"
    if fault is not None:
        raise InputError(f"the assignee of the escalation: {fault}.", hint="Check its values.")


def _noted(row: MessageRow, added: dict[str, Any]) -> Any:
    """The payload with `escalation` beside its own fields; what is no object, or has a field of that name, is
    in `payload`. None: nothing is added."""
    content: Any = msgspec.json.decode(row.payload)
    if not added:
        return None
    fields: dict[str, Any] = (
        cast("dict[str, Any]", content) if isinstance(content, dict) else {"payload": content}
    )
    before = fields.get("escalation", {})
    if not isinstance(before, dict) or not {*cast("dict[str, Any]", before)} <= {"assignee", "note"}:
        fields = {"payload": content}
    return {**fields, "escalation": added}


def _micros(length: str | float) -> int:
    return parse_duration(length, allow_zero=True) // _MICRO
