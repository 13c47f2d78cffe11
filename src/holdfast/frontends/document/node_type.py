"""What a node type is: a config, ports, rules, and how it becomes a node of the graph with its code.

To add a type, write a module in `node_types` with a subclass of `NodeType` and list it in `registry`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Literal, cast, get_args

import msgspec
from msgspec import Meta

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import FlowEdge, FlowNode, Json, Variable
from holdfast.frontends.document.problem import Path, ProblemReport
from holdfast.frontends.python.policies import DeclarationReader
from holdfast.model.diagnostics import GraphProblem
from holdfast.model.expressions import PARTITIONS, ExprSyntaxError, compile_expr
from holdfast.model.graph import Edge, EdgeKind, GraphSpec, InDoubt, Node, NodeKind, RetryPolicy
from holdfast.model.program import NodeHandler, Router
from holdfast.types.backoff import BackoffKind
from holdfast.types.status import Effect

OUT: Final = "out"
ERROR: Final = "error"
OTHERWISE: Final = "otherwise"
EDGE_MIXED: Final = "edge-mixed"
OTHERWISE_FIX: Final = "write otherwise: true if it is for the other cases, else give it a when"
RESERVED: Final = PARTITIONS | {"state", "run", "outcome", "output", "secret"}
"""Names that cannot be variables: expressions read something else by them."""

EXPRESSION: Final = "expression"
TEMPLATE: Final = "template"

Expression = Annotated[str, Meta(description="An expression.", extra={"language": EXPRESSION})]
Template = Annotated[str, Meta(description="Text with {{placeholders}}.", extra={"language": TEMPLATE})]
TemplateValue = Annotated[
    Any, Meta(description="Data; its texts may have {{placeholders}}.", extra={"language": TEMPLATE})
]
Duration = Annotated[str | int | float, Meta(description="Seconds, or text such as 30s, 2d, PT15M.")]
NOT_EMPTY: Final = r"\S"
FieldName = Annotated[
    str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Letters, digits and _, not a digit first.")
]


class RetryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`attempts` counts the first one too."""

    attempts: Annotated[int, Meta(ge=1, le=1000)] = 1
    backoff: BackoffKind = BackoffKind.exponential
    delay: Duration = "1s"
    cap: Duration = "60s"


class NodeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the config of every node may have."""

    breakpoint: Annotated[bool, Meta(description="Pause each run right before this node.")] = False
    timeout: Annotated[Duration | None, Meta(description="How long one attempt may take.")] = None
    retry: RetryConfig | None = None
    bind: Annotated[FieldName | None, Meta(description="The variable that gets its output.")] = None
    effect: Annotated[
        Literal["pure", "read", "write", "external"] | None, Meta(description="What it does outside.")
    ] = None
    idempotency_key: Template | None = None
    in_doubt: Annotated[
        Literal["ask", "retry", "fail"] | None, Meta(description="What follows a crash in it.")
    ] = None


class DocumentEdge(msgspec.Struct, frozen=True, kw_only=True):
    """An edge with its place. `id`: unique in the graph."""

    id: str
    edge: FlowEdge
    path: Path
    target: str

    @property
    def port(self) -> str:
        return self.edge.port


class FlowFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What nodes ask about their document. `input`, `output`: their JSON Schemas. `reads`:
    the first names of all paths that its texts read. `types`, `binds`: of its nodes by id.
    `errors`: by node, the variable that gets its error."""

    name: str
    scope: str | None = None
    secrets: frozenset[str] = frozenset()
    input: Json | None = None
    output: Json | None = None
    reads: frozenset[str] = frozenset()
    variables: Mapping[str, Variable] = {}
    types: dict[str, str] = {}
    binds: dict[str, str | None] = {}
    errors: dict[str, str] = {}


class DocumentNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node, with what could be read of its config. `given`: the config as data, with inherited values.
    `leaving`: its edges that lead to nodes. `inside`: the nodes whose parent it is. `shares`, `gives`: see
    `MapSpec`. `broken`: the paths, from the config on, of values that could not be read and of unknown keys;
    a problem that rests on one of them is not reported a second time. `cut`: the ports that an edge
    may leave by that has a problem of its own."""

    node: FlowNode
    type: NodeType
    config: Any
    given: Json
    path: Path
    flow: FlowFacts
    leaving: tuple[DocumentEdge, ...] = ()
    inside: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    broken: frozenset[Path] = frozenset()
    cut: frozenset[str] = frozenset()

    def rests_on_broken(self, fields: Iterable[str | int]) -> bool:
        """Whether one of these fields of its config could not be read."""
        return bool(self.broken) and not {each[0] for each in self.broken}.isdisjoint(fields)

    def is_broken(self, path: Path) -> bool:
        """Whether the value at this path, from the config on, is a stand-in."""
        return any(path[:size] in self.broken for size in range(1, len(path) + 1))

    @property
    def id(self) -> str:
        return self.node.id

    def from_port(self, port: str) -> tuple[DocumentEdge, ...]:
        return tuple(edge for edge in self.leaving if edge.port == port)

    def is_connected(self, port: str) -> bool:
        """Whether an edge leaves by this port, also one that is wrong."""
        return port in self.cut or any(edge.port == port for edge in self.leaving)

    @property
    def bind(self) -> str | None:
        """The variable that gets its output."""
        if self.config.bind is not None:
            return self.config.bind
        name = self.id
        return name if name.isidentifier() and name.isascii() and name not in RESERVED else None

    @property
    def error_name(self) -> str:
        """The variable that gets its error; empty where nothing reads it."""
        return self.flow.errors.get(self.id, "")

    @property
    def writes(self) -> tuple[str, ...]:
        """The variables that it sets, by whatever port the run leaves it."""
        return (*self.type.writes(self), *([self.error_name] if self.error_name else ()))

    def at(self, *steps: str | int) -> Path:
        """The path of something in its config."""
        return (*self.path, "config", *steps)


_FIX: Final = "docs/reference/node-types.md lists what it may be"


class NodeReport:
    """Reports problems of one node. `rests_on`: fields besides `field` that the verdict depends on."""

    def __init__(self, report: ProblemReport, node: DocumentNode) -> None:
        self.report, self._node = report, node

    def error(
        self, field: Sequence[str | int], rule: str, message: str, fix: str, *, rests_on: Iterable[str] = ()
    ) -> None:
        if not self._node.rests_on_broken((*field[:1], *rests_on)):
            self.report.error(self._node.at(*field), rule, message, fix, node=self._node.id)

    def warn(
        self, field: Sequence[str | int], rule: str, message: str, fix: str, *, rests_on: Iterable[str] = ()
    ) -> None:
        if not self._node.rests_on_broken((*field[:1], *rests_on)):
            self.report.warn(self._node.at(*field), rule, message, fix, node=self._node.id)

    def reader(self, *field: str | int) -> DeclarationReader:
        """For values that the Python front end reads in the same way."""

        def add(problem: GraphProblem) -> None:
            self.error(field, problem.rule, problem.message, problem.fix or _FIX)

        return DeclarationReader(add, node=self._node.id)

    def duration(self, field: str, value: str | float | None, *, zero: bool = False) -> int | None:
        """Microseconds."""
        return self.reader(field).duration(value, field, zero=zero)


class DoubleReport(NodeReport):
    """Of a second node with the same id: no edge and no node inside is known to be its own, so what is said
    of the node as a whole is not reported."""

    def error(
        self, field: Sequence[str | int], rule: str, message: str, fix: str, *, rests_on: Iterable[str] = ()
    ) -> None:
        if field:
            super().error(field, rule, message, fix, rests_on=rests_on)

    def warn(
        self, field: Sequence[str | int], rule: str, message: str, fix: str, *, rests_on: Iterable[str] = ()
    ) -> None:
        if field:
            super().warn(field, rule, message, fix, rests_on=rests_on)


class NodeType:
    """`name`: as documents write it. `summary` and `example` are for people. `defaults`: whether it takes the
    flow's `config.defaults`; a hold does not, whose timeout is a deadline for people."""

    name: ClassVar[str]
    summary: ClassVar[str]
    example: ClassVar[Json] = {}
    config: ClassVar[type[NodeConfig]] = NodeConfig
    kind: ClassVar[NodeKind] = NodeKind.task
    effect: ClassVar[Effect] = Effect.pure
    defaults: ClassVar[bool] = False
    is_parent: ClassVar[bool] = False
    rules: ClassVar[tuple[str, ...]] = ()
    """The problems of its own that it reports (CV-25); those of every node are not listed."""
    port_fields: ClassVar[tuple[str, ...]] = ()
    """The fields of its config that its ports come from."""

    def ports(self, node: DocumentNode) -> tuple[str, ...]:
        """Its ports beside `error`, in the order of the canvas."""
        return (OUT,)

    def implied_edges(self, node: DocumentNode) -> tuple[tuple[str, str], ...]:
        """(port, target) of edges that its config names instead of the document's edges."""
        return ()

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        """The variables that it sets."""
        return ()

    def scope_names(self, node: DocumentNode) -> tuple[str, ...]:
        """Further names that its own texts, or the nodes inside of it, may read."""
        return ()

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        """The rules of this type."""

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        return base_node(node, found)

    def graph_edges(self, node: DocumentNode, found: NodeReport) -> list[Edge]:
        return [plain_edge(node, edge) for edge in node.leaving]

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler | None:
        """Its code; None for a node that the engine itself performs. Raises VersionMismatchError where this
        process lacks what it names."""
        return site.handlers[self.name](node) if self.name in site.handlers else None

    def subgraph(self, node: DocumentNode, site: DocumentSite) -> GraphSpec | None:
        """The graph of another flow that it runs."""
        return None

    def routers(self, node: DocumentNode, site: DocumentSite) -> list[Router]:
        return []

    def conditions(self, node: DocumentNode) -> tuple[tuple[str, str], ...]:
        """Expressions that its code evaluates to decide, each after what it is called."""
        return ()

    def requires(self, node: DocumentNode) -> tuple[str, ...]:
        """What a worker needs to run it: `function:score`, `check:pii`."""
        return ()


def base_node(node: DocumentNode, found: NodeReport, **more: Any) -> Node:
    """With what every config may have; `more`: fields that the type sets."""
    config: NodeConfig = node.config
    failure = node.from_port(ERROR)
    values: dict[str, Any] = {
        "id": node.id,
        "kind": node.type.kind,
        "effect": Effect(config.effect) if config.effect is not None else node.type.effect,
        "retry": _retry(config.retry, found),
        "idempotency_key": config.idempotency_key,
        "in_doubt": InDoubt(config.in_doubt) if config.in_doubt is not None else None,
        "breakpoint": config.breakpoint,
        "on_failure": f"route:{failure[0].target}" if failure else "abort",
    }
    if failure and node.error_name:
        values["error_as"] = node.error_name
    if "timeout" not in more:
        values["timeout"] = found.duration("timeout", config.timeout)
    return Node(**{**values, **more})


def _retry(given: RetryConfig | None, found: NodeReport) -> RetryPolicy:
    if given is None:
        return RetryPolicy()
    reader = found.reader("retry")
    delay = reader.duration(given.delay, "delay", zero=True)
    return RetryPolicy(
        attempts=given.attempts,
        backoff=given.backoff,
        delay=1_000_000 if delay is None else delay,
        cap=reader.duration(given.cap, "cap"),
    )


def plain_edge(node: DocumentNode, edge: DocumentEdge, **more: Any) -> Edge:
    """Of the ports `out`, with its condition if there is one, and `error`."""
    values: dict[str, Any] = {"id": edge.id, "source": node.id, "target": edge.target}
    if edge.port == ERROR:
        values["kind"] = EdgeKind.failure
    elif edge.edge.when is not None:
        values["kind"], values["when"] = EdgeKind.when, edge.edge.when
    elif edge.edge.otherwise:
        values["kind"] = EdgeKind.otherwise
    return Edge(**{**values, **more})


def check_mixed_ports(node: DocumentNode, found: NodeReport, deciding: Sequence[str]) -> None:
    """Of edges from `out` beside edges from ports that depend on what the node decides."""
    if not any(node.from_port(port) for port in deciding):
        return
    fix = f"lead from the ports that are meant: {', '.join(map(repr, deciding))}"
    for edge in node.from_port(OUT):
        message = f"it is taken whatever {node.id!r} decides, beside the edges from its other ports"
        if not edge.edge.is_free:
            message = f"its condition is asked beside the ports of {node.id!r}, which decide by themselves"
        found.report.error(edge.path, EDGE_MIXED, message, fix, edge=edge.id)


def is_expression(text: str) -> bool:
    """Whether a placeholder is an expression too: one without filters, or with `default` only."""
    try:
        compile_expr(text)
    except ExprSyntaxError:
        return False
    return True


class ConfigText(msgspec.Struct, frozen=True, kw_only=True):
    """An expression or template in a config. `path`: from the config on."""

    path: Path
    language: str
    text: str


def texts_of(config: msgspec.Struct, path: Path = ()) -> Iterator[ConfigText]:
    """Every text of a config that is an expression or a template, by the types of its fields."""
    for name, shown, language in _text_fields(type(config)):
        value = getattr(config, name)
        if value is None or value is msgspec.UNSET:
            continue
        here = (*path, shown)
        if language:
            yield from _texts(value, here, language)
        else:
            yield from _inside(value, here)


@lru_cache(maxsize=256)
def _text_fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, str], ...]:
    """Name, name in documents, and language of the fields that may have texts or structs in them. Looked up
    once for each type: resolving annotations costs more than all else that is done with a node."""
    found = [(field.name, field.encode_name, _language(field.type)) for field in msgspec.structs.fields(kind)]
    plain = (bool, int, str, float)
    kinds = {field.name: field.type for field in msgspec.structs.fields(kind)}
    return tuple(each for each in found if each[2] or kinds[each[0]] not in plain)


def _inside(value: Any, path: Path) -> Iterator[ConfigText]:
    if isinstance(value, msgspec.Struct):
        yield from texts_of(value, path)
    elif isinstance(value, tuple):
        for index, each in enumerate(cast("tuple[Any, ...]", value)):
            yield from _inside(each, (*path, index))


def _texts(value: Any, path: Path, language: str) -> Iterator[ConfigText]:
    if isinstance(value, str):
        if language == EXPRESSION or "{{" in value:
            yield ConfigText(path=path, language=language, text=value)
    elif isinstance(value, dict):
        for key, each in cast("Json", value).items():
            yield from _texts(each, (*path, key), language)
    elif isinstance(value, (list, tuple)):
        for index, each in enumerate(cast("list[Any]", value)):
            yield from _texts(each, (*path, index), language)


def _language(kind: Any) -> str:
    for meta in getattr(kind, "__metadata__", ()):
        if isinstance(meta, Meta) and meta.extra and "language" in meta.extra:
            return str(meta.extra["language"])
    return next((found for each in get_args(kind) if (found := _language(each))), "")
