"""The three kinds of questions to people. They lower to the same node; `hitl_review` also has a queue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, cast

import msgspec
from msgspec import Meta

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import QUEUE_NAME, Json
from holdfast.frontends.document.node_type import (
    ERROR,
    OTHERWISE_FIX,
    OUT,
    RESERVED,
    DocumentEdge,
    DocumentNode,
    Duration,
    FieldName,
    NodeConfig,
    NodeReport,
    NodeType,
    Template,
    TemplateValue,
    base_node,
    plain_edge,
)
from holdfast.frontends.python.holds import FormOptions, hold_spec
from holdfast.frontends.python.policies import DeclarationReader
from holdfast.model.diagnostics import GraphProblem
from holdfast.model.graph import Edge, EdgeKind, HoldSpec, Node, NodeKind
from holdfast.model.hold_declaration import BRANCH
from holdfast.types.hold import MACHINE_WAITS
from holdfast.types.queue_message import OWN_SCOPES
from holdfast.types.status import Effect
from holdfast.types.terms import HitlTarget

TIMEOUT: Final = "timeout"
_SECTION: Final = re.compile(r"(sections(?:\[\d+\]|\.\w+)*): (.*)", re.DOTALL)
_FIELDS: Final = {
    "duration": "timeout", "hold-options": "options", "hold-option": "options", "event-name": "event",
}  # fmt: skip

_DURATIONS: Final = ("reminder", "ladder")

Queue = Annotated[str, Meta(pattern=QUEUE_NAME, description="Lower-case letters, digits and dashes.")]


class OptionConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    label: Template = ""
    variant: str = "secondary"
    default: bool | msgspec.UnsetType = msgspec.UNSET
    requires_comment: bool | msgspec.UnsetType = msgspec.UNSET


class TimeoutConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Literal["cancel", "default", "default_option", "fail", "escalate", "branch"]
    target: Template | None = None


class ApprovalConfig(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """`mode`: one approval (`any`), `need` of those in `of` (`quorum`), or one of each in `of` in this order
    (`sequential`). `veto`: whose no ends it. `exclude`: `initiator`, `earlier_approvers`, `last_editor`, or
    a person, group or role that cannot decide."""

    mode: Literal["any", "quorum", "sequential"] = "any"
    need: Annotated[int, Meta(ge=1, le=1000)] = 1
    of: tuple[str, ...] = ()
    veto: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    distinct_people: bool = True


class RungConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`after`: how long the hold waits before it goes to `to`."""

    to: str
    after: Duration = ""


class DecisionConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`timeout`: how long the hold stays open. `decision_bind`: the variable that gets the decision; the
    whole answer is in that name with `_result`. `strict_assignee`: only the assignee decides, and no name
    that a broker brings is taken for theirs. `approval`: how many people it takes, and who cannot.
    `reminder`: how often the assignee is reminded. `ladder`: to whom it goes without an answer. `calendar`:
    of its business time."""

    type: str = "approval"
    options: tuple[str | OptionConfig, ...] | None = None
    assignee: Template | None = None
    priority: Literal["low", "normal", "high", "critical"] = "normal"
    timeout: Annotated[Duration | None, Meta(extra={"language": "template"})] = None
    on_timeout: Template | TimeoutConfig | None = None
    strict_assignee: bool = False
    approval: ApprovalConfig | None = None
    reminder: Duration | None = None
    max_reminders: Annotated[int, Meta(ge=1)] | None = None
    ladder: tuple[RungConfig, ...] = ()
    calendar: str | None = None
    decision_bind: FieldName = "decision"
    context: dict[str, TemplateValue] = msgspec.field(default_factory=dict[str, Any])


class CheckpointConfig(DecisionConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    prompt: Template = ""


class ReviewConfig(CheckpointConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`scope`: of the queue; without it the flow's. `sections`: the form."""

    queue: Queue
    scope: str | None = None
    sections: Annotated[tuple[Json, ...], Meta(extra={"language": "template"})] = ()


class HoldType(NodeType):
    kind = NodeKind.hold
    effect = Effect.human
    rules: ClassVar[tuple[str, ...]] = (
        "hold-effect", "option-id", "edge-mixed", "port-open", "timeout-edges", "default-option",
        "duration", "hold-options", "no-timeout", "assignee", "on-timeout", "variable-name", "hold-approval",
        "hold-ladder", "hold-reminder", "strict-assignee", "hold-type",
    )  # fmt: skip
    port_fields = ("options", "sections")

    def ports(self, node: DocumentNode) -> tuple[str, ...]:
        return (OUT, *option_ids(node), TIMEOUT)

    def implied_edges(self, node: DocumentNode) -> tuple[tuple[str, str], ...]:
        action = action_of(node.config) or ""
        return ((TIMEOUT, action.removeprefix(BRANCH)),) if action.startswith(BRANCH) else ()

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        bind = node.config.decision_bind
        return (bind, f"{bind}_result", *([node.bind] if _form_of(node) and node.bind else []))

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: DecisionConfig = node.config
        if config.decision_bind in RESERVED:
            message = f"{config.decision_bind!r} is reserved"
            found.error(("decision_bind",), "variable-name", message, "choose another name")
        if config.effect is not None:
            found.error(("effect",), "hold-effect", "a hold has no effect to declare", "remove it")
        if config.type in MACHINE_WAITS:
            message = f"the type {config.type!r} is of waits for a machine: no person would be asked"
            fix = "choose another type, or use a node of type queue_consume, event or callback"
            found.error(("type",), "hold-type", message, fix)
        for option in option_ids(node):
            if option in (OUT, ERROR, TIMEOUT):
                message = f"the option {option!r} has the name of a port of every hold"
                found.error(("options",), "option-id", message, "give it another id, and this text as label")
        if config.strict_assignee and not config.assignee:
            message = "only its assignee may decide, but it has none: anyone could"
            found.error(
                ("strict_assignee",), "strict-assignee", message, "add assignee", rests_on=("assignee",)
            )
        self._check_edges(node, found)
        self._check_timeout(node, found)
        self._check_variable(node, found, site)

    def _check_edges(self, node: DocumentNode, found: NodeReport) -> None:
        options = option_ids(node)
        by_option = [edge for edge in node.leaving if edge.port in options]
        conditional = [edge for edge in node.from_port(OUT) if not edge.edge.is_free]
        if by_option and conditional:
            message = "its edges leave by option ports and by conditions"
            found.error((), "edge-mixed", message, "use one of the two", rests_on=self.port_fields)
            return
        for edge in node.from_port(OUT) if by_option or conditional else ():
            if edge.edge.is_free:
                # It may be meant for the other decisions, and would be taken after a refusal too.
                found.report.error(
                    edge.path, "edge-mixed", *_taken_anyway(node, edge, by_option), edge=edge.id
                )
        if node.is_connected(OUT) or node.node.parent is not None:
            # Inside of a map or loop, what is not connected ends the item or the turn.
            return
        for option in options:
            if not node.is_connected(option):
                message = f"no edge leaves its option {option!r}: a run that is answered so would end here"
                fix = f"connect the port {option!r}, or the port 'out'"
                found.error((), "port-open", message, fix, rests_on=self.port_fields)

    def _check_timeout(self, node: DocumentNode, found: NodeReport) -> None:
        edges, action = node.from_port(TIMEOUT), action_of(node.config)
        if len(edges) > 1:
            message = "more than one edge leaves its port 'timeout'"
            found.error((), "timeout-edges", message, "lead to one node, which may lead on to several")
        elif edges and action is not None and action != f"{BRANCH}{edges[0].edge.target}":
            message = f"on_timeout is {action!r}, but its port 'timeout' leads to {edges[0].edge.target!r}"
            found.error(("on_timeout",), "timeout-edges", message, "remove one of them")

    def _check_variable(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        """Its ports follow the variable, so that has to become what was decided."""
        bind, options = node.config.decision_bind, option_ids(node)
        for name in self.writes(node)[1:]:
            check_answer(node, name, found)
        declared = node.flow.variables.get(bind)
        if declared is None:
            return
        path, rule = ("variables", bind), "decision-variable"
        other = f"give {node.id!r} another decision_bind"
        if declared.reducer not in (None, "last") and any(node.from_port(each) for each in options):
            message = (
                f"the ports of {node.id!r} follow {bind!r}, which with a reducer need not be the decision"
            )
            found.report.error((*path, "reducer"), rule, message, f"remove the reducer, or {other}")
        elif declared.reducer is None and declared.type not in ("any", "string"):
            message = (
                f"{bind!r} gets the decision of {node.id!r}, which is text, and has the type {declared.type}"
            )
            found.report.error((*path, "type"), rule, message, f"declare it as string, or {other}")
        elif declared.reducer is None and declared.schema is not None and site.validate is not None:
            wrong = [each for each in options if site.validate(declared.schema, each)]
            if wrong:
                message = f"its schema refuses {wrong[0]!r}, which {node.id!r} may decide"
                found.report.error((*path, "schema"), rule, message, f"allow it, or {other}")

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        return base_node(node, found, timeout=None, effect=Effect.human, hold=self._hold(node, found))

    def _hold(self, node: DocumentNode, found: NodeReport) -> HoldSpec:
        config: Any = node.config
        made = hold_spec(
            hold_reader(node, found),
            prompt=getattr(config, "prompt", ""),
            options=options_of(config),
            assignee=config.assignee,
            timeout=config.timeout,
            on_timeout=timeout_action(node),
            priority=config.priority,
            type=config.type,
            bind=config.decision_bind,
            context=config.context or None,
            schema=None,
            form=FormOptions(
                None, _form_of(node) or None, False, node.bind if _form_of(node) else None, None
            ),
            terms=_terms_of(config),
        )
        target = self.target(node, found)
        return made if target is None else msgspec.structs.replace(made, target=target)

    def target(self, node: DocumentNode, found: NodeReport) -> HitlTarget | None:
        """The queue that it is published to."""
        return None

    def graph_edges(self, node: DocumentNode, found: NodeReport) -> list[Edge]:
        edges = [self._edge(node, edge) for edge in node.leaving]
        action = timeout_action(node) or ""
        if action.startswith(BRANCH) and not node.from_port(TIMEOUT):
            target = action.removeprefix(BRANCH)
            name = f"{node.id}:{TIMEOUT}->{target}"
            edges.append(Edge(id=name, source=node.id, target=target, kind=EdgeKind.chosen))
        return edges

    def _edge(self, node: DocumentNode, edge: DocumentEdge) -> Edge:
        if edge.port == TIMEOUT:
            return plain_edge(node, edge, kind=EdgeKind.chosen)
        if edge.port in (OUT, ERROR):
            return plain_edge(node, edge)
        when = f"{node.config.decision_bind} == {_quoted(edge.port)}"
        return plain_edge(node, edge, kind=EdgeKind.when, when=when)


class CheckpointType(HoldType):
    name = "checkpoint"
    summary = "Pauses the run until a person, or another system, decides."
    config = CheckpointConfig
    example: ClassVar[Json] = {"prompt": "Go?", "options": ["yes", "no"]}


class DecisionType(HoldType):
    name = "hitl_decision"
    summary = "As `checkpoint`, without a text of its own: the question was asked elsewhere."
    config = DecisionConfig
    example: ClassVar[Json] = {"options": ["ok", "no"]}


class ReviewType(HoldType):
    name = "hitl_review"
    summary = "A review with a form, published to a queue."
    config = ReviewConfig
    rules: ClassVar[tuple[str, ...]] = (
        *HoldType.rules,
        "hold-form",
        "hold-into",
        "queue-name",
        "scope-missing",
    )
    example: ClassVar[Json] = {
        "queue": "reviews",
        "sections": [{"type": "decision", "options": ["approve", "reject"]}],
    }

    def target(self, node: DocumentNode, found: NodeReport) -> HitlTarget | None:
        config: ReviewConfig = node.config
        scope = queue_scope(config.scope, node, found)
        spec: Json = {"sections": list(config.sections)} if config.sections else {}
        return None if scope is None else HitlTarget(scope=scope, queue=config.queue, hitl_spec=spec)


def check_answer(node: DocumentNode, name: str, found: NodeReport, kind: str = "object") -> None:
    """Of a variable that gets something of this kind when the hold ends: the run would fail then."""
    declared = node.flow.variables.get(name)
    if declared is not None and declared.reducer is None and declared.type not in ("any", kind):
        what = "a mapping" if kind == "object" else "text"
        message = f"{name!r} gets {what} of {node.id!r}, and has the type {declared.type}"
        fix = f"declare it as {kind}, or give {node.id!r} another bind or decision_bind"
        found.report.error(("variables", name, "type"), "decision-variable", message, fix)


def _taken_anyway(
    node: DocumentNode, edge: DocumentEdge, by_option: Sequence[DocumentEdge]
) -> tuple[str, str]:
    """What is wrong with an edge for every decision beside those for some, and how to write it."""
    message = f"it is taken whatever is decided, beside the edges of {node.id!r} for certain decisions"
    if not by_option:
        return message, OTHERWISE_FIX
    taken = {each.port for each in by_option}
    left = [each for each in option_ids(node) if each not in taken] or list(option_ids(node))
    ports = " and ".join(repr(each) for each in left)
    return message, f"lead to {edge.edge.target!r} from {ports} instead, once for each decision that is meant"


def queue_scope(own: str | None, node: DocumentNode, found: NodeReport) -> str | None:
    """The node's scope, else the flow's (SC-1, SC-2); a problem where there is none (SC-5)."""
    scope = (own or "").strip() or (node.flow.scope or "").strip()
    if not scope:
        found.error(
            ("scope",), "scope-missing", "no scope is known for its queue",
            "give scope, or config.scaiqueue.scope of the flow",
        )  # fmt: skip
        return None
    if scope in OWN_SCOPES:
        message = f"the scope {scope!r} is for messages that Holdfast makes"
        found.error(("scope",), "queue-name", message, "use another scope, or a node of type event")
        return None
    if re.fullmatch(QUEUE_NAME, scope) is None:
        found.error(
            ("scope",),
            "queue-name",
            f"the scope {scope!r} is no name of lower-case letters, digits and dashes",
            "write a name such as support",
        )
        return None
    return scope


def _terms_of(config: DecisionConfig) -> Json:
    """As `flow.hold` takes them."""
    given = {
        "strict_assignee": config.strict_assignee or None,
        "approval": None if config.approval is None else msgspec.to_builtins(config.approval),
        "reminder": config.reminder,
        "max_reminders": config.max_reminders,
        "ladder": [{"to": rung.to, "after": rung.after} for rung in config.ladder] or None,
        "calendar": config.calendar,
    }
    return {name: value for name, value in given.items() if value is not None}


def options_of(config: DecisionConfig) -> Sequence[Any] | None:
    if config.options is None:
        return None
    return [
        each if isinstance(each, str) else {**msgspec.to_builtins(each), "label": each.label or each.id}
        for each in config.options
    ]


def option_ids(node: DocumentNode) -> tuple[str, ...]:
    """Those that are written down: of `options`, else of the first decision section."""
    config: DecisionConfig = node.config
    if config.options is not None:
        return tuple(dict.fromkeys(each if isinstance(each, str) else each.id for each in config.options))
    sections = _form_of(node)
    for section in sections:
        if section.get("type") == "decision":
            return tuple(dict.fromkeys(_ids(section.get("options"))))
    return ("submit",) if sections else ()


def _ids(options: Any) -> list[str]:
    listed = cast("list[Any]", options) if isinstance(options, list) else []
    found = [cast("Json", each).get("id") if isinstance(each, dict) else each for each in listed]
    return [each for each in found if isinstance(each, str)]


def _form_of(node: DocumentNode) -> list[Json]:
    return list(getattr(node.config, "sections", ()))


def action_of(config: DecisionConfig) -> str | None:
    """As one text."""
    given = config.on_timeout
    if given is None or isinstance(given, str):
        return given
    return f"{given.action}:{given.target}" if given.target else given.action


def timeout_action(node: DocumentNode) -> str | None:
    """What its timeout does; an edge from its port `timeout` is a branch."""
    edges = node.from_port(TIMEOUT)
    return f"{BRANCH}{edges[0].target}" if edges else action_of(node.config)


def hold_reader(node: DocumentNode, found: NodeReport) -> DeclarationReader:
    """Problems of the declaration, at the field that they are about."""

    def add(problem: GraphProblem) -> None:
        message = problem.message
        named = problem.rule.removeprefix("hold-").replace("-", "_")
        field: tuple[str | int, ...] = (_FIELDS.get(problem.rule, named),)
        if problem.rule == "duration" and (of := message.partition(":")[0]) in _DURATIONS:
            field = (of,)
        section = _SECTION.match(message)
        if section is not None:
            steps = re.findall(r"\[(\d+)\]|\.(\w+)", section[1])
            field = ("sections", *(int(number) if number else name for number, name in steps))
            message = section[2]
        elif problem.rule == "hold-form":
            field = ("options",) if "options" in node.given else ("sections",)
        found.error(
            field, problem.rule, message, problem.fix or "docs/reference/forms.md lists what it may be"
        )

    return DeclarationReader(add, node=node.id)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


NODE_TYPES = (CheckpointType(), DecisionType(), ReviewType())
