"""The compiled form of a flow version: nodes, edges, policies. Every front end lowers to it.

A graph is data: it can be stored, fingerprinted and shown without the code of its handlers.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import FlowInvalidError
from holdfast.model.expressions import Expr, compile_expr
from holdfast.model.failure_tolerance import Tolerance
from holdfast.model.secrets import Paths, parsed
from holdfast.types.backoff import BackoffKind
from holdfast.types.hold import Option
from holdfast.types.status import REPEATABLE, Effect
from holdfast.types.terms import HitlTarget, HoldTerms

if TYPE_CHECKING:
    from holdfast.model.pipeline_conditions import Clauses

START = "__START__"
END = "__END__"
GATE = "wait.human"
"""The handler of a pipeline's gates."""


class NodeKind(StrEnum):
    task = "task"
    hold = "hold"
    timer = "timer"
    map = "map"
    parallel = "parallel"
    subflow = "subflow"
    guardrail = "guardrail"


class EdgeKind(StrEnum):
    always = "always"
    when = "when"  # an expression that the engine evaluates
    chosen = "chosen"  # Python code of the source node chooses; its choice is recorded
    otherwise = "otherwise"  # fires when no other conditional edge of the source does
    failure = "failure"  # fires when the source fails


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`attempts` counts the first one too; times are microseconds."""

    attempts: int = 1
    backoff: BackoffKind = BackoffKind.exponential
    delay: int = 1_000_000
    cap: int | None = 60_000_000
    jitter: float = 0.0
    retry_on: tuple[str, ...] = ()
    factor: float | msgspec.UnsetType = msgspec.UNSET
    """The factor of an exponential back-off (unset: 2)."""
    spread: float | msgspec.UnsetType = msgspec.UNSET
    """Relative jitter: 0.5 makes a wait between 0.5 and 1.5 times its length."""


class JoinKind(StrEnum):
    all = "all"
    any = "any"
    quorum = "quorum"


class JoinPolicy(msgspec.Struct, frozen=True, kw_only=True):
    kind: JoinKind = JoinKind.all
    count: int = 1
    timeout: int | None = None
    cancel_losers: bool = False


class InDoubt(StrEnum):
    ask = "ask"
    retry = "retry"
    fail = "fail"
    probe = "probe"


class HoldSpec(msgspec.Struct, frozen=True, kw_only=True):
    type: str = "approval"
    prompt: str = ""
    options: tuple[Option, ...] | None = None
    assignee: str | None = None
    priority: str = "normal"
    timeout: int | None = None
    on_timeout: str | None = None
    bind: str = "decision"
    context: dict[str, Any] = {}
    schema: dict[str, Any] | None = None
    form: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """Sections as `model.forms` compiles them. Unset rather than none: older graphs keep their identity."""
    into: str | msgspec.UnsetType = msgspec.UNSET
    """The state's field that receives the form's data."""
    wait: str | msgspec.UnsetType = msgspec.UNSET
    """A timeout that is computed when the question is asked: with placeholders, or in business time."""
    reminder: int | msgspec.UnsetType = msgspec.UNSET
    """Minutes."""
    tags: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    terms: HoldTerms | msgspec.UnsetType = msgspec.UNSET
    modifies: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """`arguments`, `output`, `instructions` -> the state's field that an approver may change."""
    target: HitlTarget | msgspec.UnsetType = msgspec.UNSET
    """The queue in which the question is published, too. Unset rather than none: older graphs keep their
    identity."""


class TimerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Either a fixed time or an expression that gives seconds or an instant."""

    duration: int | None = None
    until: str | None = None


class MapSpec(msgspec.Struct, frozen=True, kw_only=True):
    over: str
    body: str
    into: str
    concurrency: int = 0
    on_item_failure: str = "fail"
    # Of maps in documents. Unset rather than none: older graphs keep their identity.
    item: str | msgspec.UnsetType = msgspec.UNSET
    """The name by which the body reads its item. Unset: an item that is a mapping is the body's input."""
    shares: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """The fields of the state around it that the body reads too."""
    gives: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """The fields of the body's state that are the result of an item. Unset: all of them."""
    tolerance: Tolerance | msgspec.UnsetType = msgspec.UNSET
    """How many items may fail: those are among the results. Unset: as `on_item_failure` says."""
    key: str | msgspec.UnsetType = msgspec.UNSET
    """An expression over an item: the key that its function gets."""


class ParallelSpec(msgspec.Struct, frozen=True, kw_only=True):
    """In a walk: one scope per branch, each a walk through the sub-graph `body` from its first node."""

    body: str
    starts: tuple[str, ...]
    """The first node of each branch, in order."""
    edges: tuple[str, ...] = ()
    """The labels of the edges into those nodes in the pipeline."""
    into: str
    """The scratch key that receives the results of the branches, before the join is evaluated."""
    join: str = "wait_all"
    """wait_all, first_success, k_of_n (`count` of them); any other: the join always succeeds."""
    count: int = 1
    concurrency: int = 4
    on_branch_failure: str = "continue"
    """continue, fail_fast (the others are dropped), ignore (as if there were no such branch)."""


class SubflowSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`inputs`: child input field -> expression over the parent; `outputs`: parent field -> child path."""

    body: str
    inputs: dict[str, str] | None = None
    outputs: dict[str, str] | None = None


class GuardSpec(msgspec.Struct, frozen=True, kw_only=True):
    on_violation: str = "block"
    reroute: str | None = None


class WalkSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What only the walk traversal reads."""

    goal_gate: bool = False
    retry_target: str | None = None
    fallback_retry_target: str | None = None
    max_visits: int = 0
    terminal: bool = False
    routing: bool = False
    allow_partial: bool | msgspec.UnsetType = msgspec.UNSET
    """If it asks for a retry and no attempt is left, its outcome is partial_success instead of fail."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    kind: NodeKind = NodeKind.task
    effect: Effect = Effect.external
    script: bool = False
    retry: RetryPolicy = RetryPolicy()
    timeout: int | None = None
    on_failure: str = "abort"
    join: JoinPolicy = JoinPolicy()
    idempotency_key: str | None = None
    in_doubt: InDoubt | None = None
    checkpoint: str | None = None
    output_as: str | None = None
    memory: str | None = None
    breakpoint: bool = False
    hold: HoldSpec | None = None
    timer: TimerSpec | None = None
    map: MapSpec | None = None
    subflow: SubflowSpec | None = None
    guard: GuardSpec | None = None
    walk: WalkSpec | None = None
    version: str | None = None
    metadata: dict[str, Any] = {}
    # Unset rather than none, here and below: older graphs keep their identity.
    parallel: ParallelSpec | msgspec.UnsetType = msgspec.UNSET
    error_as: str | msgspec.UnsetType = msgspec.UNSET
    """The field that gets its error where its failure has a route."""

    @property
    def is_gate(self) -> bool:
        """A gate of a pipeline: its edges without a condition are the answers of a person."""
        return self.metadata.get("handler") == GATE

    @property
    def body(self) -> str:
        """The name of the sub-graph that its children go through."""
        inside = self.map or self.subflow or self.parallel
        return inside.body if inside else ""


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    source: str
    target: str
    kind: EdgeKind = EdgeKind.always
    when: str | None = None
    loop: int | None = None  # a loop edge, with the number of times that it may be taken
    on_limit: str = "fail"
    label: str = ""
    weight: int = 0
    language: str | msgspec.UnsetType = msgspec.UNSET
    """Language of its condition: `clauses` (see `model.pipeline_conditions`); unset: `model.expressions`."""
    leads: str | msgspec.UnsetType = msgspec.UNSET
    """For an edge that ends a branch: the node after it, by whose name it is chosen."""
    restart: bool | msgspec.UnsetType = msgspec.UNSET
    """Taking it restarts the walk at its target: state, gates and counters are reset."""

    @property
    def towards(self) -> str:
        """The target by which a walk chooses."""
        return self.leads or self.target


class GraphSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored and fingerprinted."""

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    traversal: str = "dataflow"
    start: tuple[str, ...] = ()
    reducers: dict[str, str] = {}
    fields: dict[str, Any] | None = None
    defaults: dict[str, Any] = {}
    in_doubt: InDoubt = InDoubt.ask
    checkpoints: str = "every_node"
    checkpoint_when: str = "after"
    memory: str = "live"
    mode: str = "barrier"
    lane: str = "default"
    priority: int = 0
    max_visits: int = 0
    max_goal_jumps: int = 10
    retry_target: str | None = None
    fallback_retry_target: str | None = None
    code_change: str = "allow"
    allow_uncheckpointed: bool = False
    subgraphs: tuple[GraphSpec, ...] = ()
    # Secret fields (`model.secrets`). Unset if there are none, so that graphs without secrets keep the
    # fingerprints that they had before secrets existed.
    secrets: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    # The version's label. Omitted if there is none, so that the fingerprints of older versions do not change.
    label: str | msgspec.UnsetType = msgspec.UNSET
    document: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """The document that the graph was made from: its `dialect`, which every worker can run, and its
    `source`."""
    mirrors: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether the walk writes its progress into scratch: outcome, preferred_label, current_node, retry
    counts."""
    own_targets: bool | msgspec.UnsetType = msgspec.UNSET
    """A failed node uses its own retry targets only; those of the graph are for goal gates."""
    max_restarts: int | msgspec.UnsetType = msgspec.UNSET
    """Maximum number of restarts of the walk (unset: 10)."""


def _condition(edge: Edge) -> Expr | Clauses | None:
    if edge.when is None:
        return None
    if edge.language == "clauses":
        # Only pipelines have them.
        from holdfast.model.pipeline_conditions import compile_clauses

        return compile_clauses(edge.when)
    return compile_expr(edge.when)


class Loop(msgspec.Struct, frozen=True):
    """A header with the loop edges that lead back to it and the nodes between."""

    header: int
    edges: tuple[int, ...]
    body: frozenset[int]
    exits: frozenset[int]


class Graph:
    """A spec with its topology computed once: successors, predecessors, loop bodies."""

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        self.name = spec.name
        self.nodes = spec.nodes
        self.edges = spec.edges
        self.index = {node.id: i for i, node in enumerate(spec.nodes)}
        self.walk = spec.traversal == "walk"
        try:
            self.source = tuple(self.index[e.source] for e in spec.edges)
            self.target = tuple(-1 if e.target == END else self.index[e.target] for e in spec.edges)
        except KeyError as missing:
            raise FlowInvalidError(
                f"flow {spec.name!r}: an edge names the node {missing}, which does not exist"
            ) from None
        self.out: tuple[tuple[int, ...], ...] = self._out_edges()
        self.indegree = self._indegree()
        self.starts = tuple(self.index[name] for name in spec.start)
        # The common node has exactly one unconditional out-edge. Stored separately to make such a step fast.
        self.only = tuple(self._only_edge(edges) for edges in self.out)

    @cached_property
    def secrets(self) -> Paths:
        """The secret paths of this graph and of its sub-graphs."""
        found = list(parsed(self.spec.secrets or ()))
        for inner in self.spec.subgraphs:
            found += Graph(inner).secrets
        return tuple(dict.fromkeys(found))

    def _out_edges(self) -> tuple[tuple[int, ...], ...]:
        out: list[list[int]] = [[] for _ in self.nodes]
        for e, source in enumerate(self.source):
            out[source].append(e)
        return tuple(tuple(edges) for edges in out)

    def _only_edge(self, edges: tuple[int, ...]) -> int:
        if len(edges) != 1 or self.walk:
            return -1
        edge = self.edges[edges[0]]
        target = self.target[edges[0]]
        if edge.kind is not EdgeKind.always or edge.loop is not None or target < 0:
            return -1
        if self.indegree[target] != 1 or target in self.loops or edges[0] in self.loop_exits:
            return -1
        if self.nodes[target].kind not in (NodeKind.task, NodeKind.guardrail):
            return -1
        return edges[0]

    def _indegree(self) -> tuple[int, ...]:
        """Forward edges only: a node does not wait for a loop edge. Being a start counts as one edge."""
        counts = [0] * len(self.nodes)
        for e, target in enumerate(self.target):
            if target >= 0 and self.edges[e].loop is None:
                counts[target] += 1
        return tuple(counts)

    @cached_property
    def into(self) -> tuple[tuple[int, ...], ...]:
        """Forward edges into each node; in a walk all of them, since its loops are ordinary edges."""
        into: list[list[int]] = [[] for _ in self.nodes]
        for e, target in enumerate(self.target):
            if target >= 0 and (self.walk or self.edges[e].loop is None):
                into[target].append(e)
        return tuple(tuple(edges) for edges in into)

    @cached_property
    def loops(self) -> dict[int, Loop]:
        """By header."""
        by_header: dict[int, list[int]] = {}
        for e, edge in enumerate(self.edges):
            if edge.loop is not None and not self.walk:
                by_header.setdefault(self.target[e], []).append(e)
        return {header: self._loop(header, edges) for header, edges in by_header.items()}

    def _loop(self, header: int, edges: list[int]) -> Loop:
        after = self._reach({header}, forward=True)
        before = self._reach({self.source[e] for e in edges}, forward=False)
        body = frozenset((after & before) | {header})
        exits = frozenset(
            e
            for e, source in enumerate(self.source)
            if source in body and self.target[e] not in body and self.edges[e].loop is None
        )
        return Loop(header, tuple(edges), body, exits)

    def _reach(self, start: set[int], *, forward: bool) -> set[int]:
        near, far = (self.source, self.target) if forward else (self.target, self.source)
        steps: dict[int, list[int]] = {}
        for e in range(len(self.edges)):
            if self.edges[e].loop is None and self.target[e] >= 0:
                steps.setdefault(near[e], []).append(far[e])
        seen, todo = set(start), list(start)
        while todo:
            for following in steps.get(todo.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return seen

    @cached_property
    def inner_loops(self) -> dict[int, tuple[int, ...]]:
        """In a walk: for each loop edge, the loop edges inside its loop."""
        loops = [e for e, edge in enumerate(self.edges) if edge.loop is not None]
        bodies = {e: self._loop(self.target[e], [e]).body for e in loops}
        return {
            e: tuple(
                f for f in loops if f != e and self._within(f, bodies[e]) and not self._within(e, bodies[f])
            )
            for e in loops
        }

    def _within(self, edge: int, body: frozenset[int]) -> bool:
        return self.source[edge] in body and self.target[edge] in body

    @cached_property
    def loop_exits(self) -> dict[int, tuple[int, ...]]:
        """For each edge that leaves a loop's body: the headers of those loops, innermost first."""
        exits: dict[int, list[Loop]] = {}
        for loop in self.loops.values():
            for e in loop.exits:
                exits.setdefault(e, []).append(loop)
        return {
            e: tuple(loop.header for loop in sorted(loops, key=lambda loop: len(loop.body)))
            for e, loops in exits.items()
        }

    @cached_property
    def needs_opening(self) -> tuple[bool, ...]:
        """Nodes whose start is itself listed as a checkpoint, or has a breakpoint before it."""
        default = self.spec.checkpoint_when if self.spec.checkpoints == "every_node" else "none"
        return tuple(
            node.breakpoint or (node.checkpoint or default) in ("before", "both") for node in self.nodes
        )

    @cached_property
    def back(self) -> tuple[tuple[int, ...], ...]:
        """The loop edges that leave each node."""
        return tuple(tuple(e for e in edges if self.edges[e].loop is not None) for edges in self.out)

    @cached_property
    def opens(self) -> tuple[bool, ...]:
        """Nodes whose start takes more than calling a handler: a hold, a timer, children, a breakpoint."""
        works = (NodeKind.task, NodeKind.guardrail)
        return tuple(
            node.kind not in works or node.breakpoint or listed
            for node, listed in zip(self.nodes, self.needs_opening, strict=True)
        )

    @cached_property
    def lists_after(self) -> tuple[bool, ...]:
        """Nodes whose settled step is listed as a checkpoint: their own setting, else the flow's (D-10)."""
        default = self.spec.checkpoint_when if self.spec.checkpoints == "every_node" else "none"
        return tuple((node.checkpoint or default) in ("after", "both") for node in self.nodes)

    @cached_property
    def repeatable(self) -> tuple[bool, ...]:
        """Nodes without outside effects, which need no intent record."""
        return tuple(node.effect in REPEATABLE for node in self.nodes)

    @cached_property
    def chooses(self) -> tuple[bool, ...]:
        """Nodes with edges that Python code chooses among."""
        return tuple(any(self.edges[e].kind is EdgeKind.chosen for e in edges) for edges in self.out)

    def upstream(self, node: int) -> set[int]:
        """Every node from which this one can be reached, without itself."""
        return self._reach({node}, forward=False) - {node}

    @cached_property
    def conditions(self) -> tuple[Expr | Clauses | None, ...]:
        return tuple(_condition(e) for e in self.edges)

    @property
    def dialect(self) -> str:
        """The dialect of the document that it was made from; empty for a graph made from code."""
        return self.spec.document.get("dialect", "") if self.spec.document else ""

    @property
    def label(self) -> str:
        return self.spec.label if isinstance(self.spec.label, str) else ""

    @cached_property
    def subgraphs(self) -> dict[str, Graph]:
        return {spec.name: Graph(spec) for spec in self.spec.subgraphs}

    def node_named(self, name: str) -> Node:
        return self.nodes[self.node_index(name)]

    def node_index(self, name: str) -> int:
        if name not in self.index:
            raise FlowInvalidError(f"flow {self.name!r} has no node {name!r}")
        return self.index[name]
