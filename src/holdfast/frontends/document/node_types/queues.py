"""Nodes that publish messages, move them to other queues, and wait for them."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    OUT,
    DocumentNode,
    Duration,
    Expression,
    NodeConfig,
    NodeReport,
    NodeType,
    Template,
    TemplateValue,
    base_node,
)
from holdfast.frontends.document.node_types.holds import (
    TIMEOUT,
    HoldType,
    Queue,
    TimeoutConfig,
    action_of,
    check_answer,
    hold_reader,
    queue_scope,
    timeout_action,
)
from holdfast.frontends.python.holds import FormOptions, hold_spec
from holdfast.frontends.python.machine_waits import EVENT, MESSAGE, RECEIVED, event_hold, match_condition
from holdfast.model.graph import HoldSpec, InDoubt, Node
from holdfast.model.hold_declaration import assignee_fault
from holdfast.types.hold import CONSUME
from holdfast.types.queue_message import HITL_REQUEST, REJECTED
from holdfast.types.status import Effect
from holdfast.types.terms import HitlTarget

_TYPE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOVABLE: Final = ("hitl_review", "queue_publish")

Priority = Literal["low", "normal", "high", "critical"]


class QueuePublishConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`scope`: of the queue; without it the flow's. `delay`: until it can be claimed. `expires`: after this
    time it is dropped. `group`: messages of one group are claimed one at a time, in order."""

    queue: Queue
    payload: TemplateValue
    scope: str | None = None
    type: Annotated[str, Meta(max_length=100)] = "task"
    priority: Priority = "normal"
    delay: Duration | None = None
    expires: Duration | None = None
    group: Template | None = None


class QueuePublishType(NodeType):
    name = "queue_publish"
    summary = "Publishes a message to a queue, once for each visit; binds `{message_id}`."
    config = QueuePublishConfig
    effect = Effect.write
    defaults = True
    rules = ("message-type", "scope-missing", "queue-name")
    example: ClassVar[Json] = {"queue": "work", "payload": {"order": "{{order}}"}}

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        return (node.bind,) if node.bind else ()

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: QueuePublishConfig = node.config
        queue_scope(config.scope, node, found)
        found.duration("delay", config.delay, zero=True)
        found.duration("expires", config.expires)
        if config.type in (HITL_REQUEST, REJECTED):
            message = f"{config.type!r} is a type of messages that Holdfast makes"
            found.error(("type",), "message-type", message, "use another type")
        elif _TYPE.fullmatch(config.type) is None:
            message = f"{config.type!r} cannot be the type of a message"
            found.error(("type",), "message-type", message, "use letters, digits, dots and dashes")

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        return repeatable_node(node, found)


class QueueEscalationConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`of`: the review or `queue_publish` whose message it moves; or `message`: its id. `assignee`, `note`:
    added to the payload as `escalation`. Of a review of the same run, the hold gets the assignee and the
    higher priority; the assignee must have no placeholders. Reviews of other runs, and messages that a run
    keeps, are left alone."""

    of: str | None = None
    message: Template | None = None
    queue: Queue | None = None
    scope: str | None = None
    priority: Priority | None = None
    assignee: Template | None = None
    note: Template | None = None


class QueueEscalationType(NodeType):
    name = "queue_escalation"
    summary = "Moves an open message, or raises its priority; binds `{escalated, message_id}`."
    config = QueueEscalationConfig
    effect = Effect.write
    defaults = True
    rules = ("escalation-change", "escalation-target", "scope-missing", "assignee")
    example: ClassVar[Json] = {"of": "ask", "queue": "leads", "priority": "high"}

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        return (node.bind,) if node.bind else ()

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: QueueEscalationConfig = node.config
        if config.scope is not None or config.queue is not None:
            queue_scope(config.scope, node, found)
        if (config.of is None) == (config.message is None):
            message = "it needs either of or message"
            fix = "name a node, or give the id of a message"
            found.error((), "escalation-target", message, fix, rests_on=("of", "message"))
            return
        fault = assignee_fault(config.assignee) if config.assignee else None
        if fault is not None:
            found.error(("assignee",), "assignee", f"its assignee: {fault}", "write it as user:NAME")
        if config.of is not None and node.flow.types.get(config.of) not in _MOVABLE:
            known = [name for name, kind in node.flow.types.items() if kind in _MOVABLE]
            message = f"{config.of!r} is no node that publishes a message"
            fix = f"use one of {', '.join(known)}" if known else "name a hitl_review or a queue_publish"
            found.error(("of",), "escalation-target", message, fix)
        if config.queue is None and config.priority is None and config.assignee is None:
            message = "it changes nothing"
            fields = ("queue", "priority", "assignee")
            found.error((), "escalation-change", message, "give queue, priority or assignee", rests_on=fields)

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        return repeatable_node(node, found)


def repeatable_node(node: DocumentNode, found: NodeReport) -> Node:
    """Doing it twice has one effect: after a crash it is done again, and nobody is asked."""
    again = {"in_doubt": InDoubt.retry} if node.config.in_doubt is None else {}
    return base_node(node, found, **again)


_OF_PEOPLE: Final = ("default", "default_option", "escalate")
"""What only a question to a person can do at its timeout: an escalation of a wait would never end."""


class QueueConsumeConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`match`: which message it takes, by `message.payload`, `message.type` and so on; without it, the next.
    `complete`: when the message is done: as it is taken, or when the run is completed; a run that ends
    otherwise gives it back. `timeout`: how long it waits."""

    queue: Queue
    scope: str | None = None
    match: Expression | None = None
    complete: Literal["take", "run_end"] = "take"
    timeout: Annotated[Duration | None, Meta(extra={"language": "template"})] = None
    on_timeout: Template | TimeoutConfig | None = None


class QueueConsumeType(HoldType):
    name = "queue_consume"
    summary = "Waits for a message of a queue; binds `{id, type, payload, ...}`. No inbox shows it."
    config = QueueConsumeConfig
    rules = ("hold-effect", "timeout-edges", "duration", "scope-missing", "on-timeout")
    port_fields = ()
    example: ClassVar[Json] = {"queue": "work", "match": "message.payload.order == order", "timeout": "1h"}

    def ports(self, node: DocumentNode) -> tuple[str, ...]:
        return (OUT, TIMEOUT)

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        name = _outcome(node)
        return (name, f"{name}_result", *([node.bind] if node.bind else []))

    def scope_names(self, node: DocumentNode) -> tuple[str, ...]:
        return (MESSAGE,)

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        if node.config.effect is not None:
            found.error(("effect",), "hold-effect", "a hold has no effect to declare", "remove it")
        self._check_timeout(node, found)
        if (action := _action(node)) in _OF_PEOPLE:
            message = f"on_timeout is {action!r}, but no person answers it: it has no options and no assignee"
            fix = "use cancel, fail or branch:<node>, or connect the port 'timeout'"
            found.error(("on_timeout",), "on-timeout", message, fix)
        outcome, *answers = self.writes(node)
        check_answer(node, outcome, found, "string")
        for name in answers:
            check_answer(node, name, found)

    def _hold(self, node: DocumentNode, found: NodeReport) -> HoldSpec:
        config: QueueConsumeConfig = node.config
        scope = queue_scope(config.scope, node, found) or "?"
        made = hold_spec(
            hold_reader(node, found),
            prompt=f"Waits for a message of {scope}/{config.queue}.",
            options=[RECEIVED],
            assignee=None,
            timeout=config.timeout,
            on_timeout=None if _action(node) in _OF_PEOPLE else timeout_action(node),
            priority="normal",
            type=CONSUME,
            bind=_outcome(node),
            context=_condition(config.match, config.complete) or None,
            schema=None,
            form=FormOptions(None, None, False, node.bind, None),
            terms={},
        )
        return msgspec.structs.replace(made, target=HitlTarget(scope=scope, queue=config.queue, hitl_spec={}))


def _action(node: DocumentNode) -> str:
    return (action_of(node.config) or "").partition(":")[0].strip()


def _outcome(node: DocumentNode) -> str:
    """The variable that says how the wait ended."""
    return f"{node.bind}_outcome" if node.bind else "outcome_of_wait"


def _condition(match: str | None, complete: str) -> Json:
    kept = {} if complete == "take" else {"complete": complete}
    return {**kept, **match_condition(match, (MESSAGE,))}


class EventConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`event`: its name. `key`: which of them; without it, events without a key. `match`: a condition on it,
    by `event.FIELD`. `timeout`: how long it waits."""

    event: Annotated[str, Meta(min_length=1, max_length=100)]
    key: Template | None = None
    match: Expression | None = None
    timeout: Annotated[Duration | None, Meta(extra={"language": "template"})] = None
    on_timeout: Template | TimeoutConfig | None = None


class EventType(QueueConsumeType):
    name = "event"
    summary = "Waits for an event from a machine; binds `{id, name, key, data, ...}`. No inbox shows it."
    config = EventConfig
    rules = ("hold-effect", "timeout-edges", "duration", "event-name", "on-timeout")
    example: ClassVar[Json] = {"event": "payment.received", "key": "{{order}}", "timeout": "2d"}

    def scope_names(self, node: DocumentNode) -> tuple[str, ...]:
        return (MESSAGE, EVENT)

    def _hold(self, node: DocumentNode, found: NodeReport) -> HoldSpec:
        config: EventConfig = node.config
        return event_hold(
            hold_reader(node, found),
            config.event,
            config.key,
            config.match,
            timeout=config.timeout,
            on_timeout=None if _action(node) in _OF_PEOPLE else timeout_action(node),
            into=node.bind,
            bind=_outcome(node),
        )


NODE_TYPES: tuple[Any, ...] = (QueuePublishType(), QueueConsumeType(), QueueEscalationType(), EventType())
