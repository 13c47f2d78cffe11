"""Random valid graphs with scripted handlers: what a run must come to is known from the plan alone.

A plan is a graph and a script. The graph is made of blocks (a node, a loop) joined by the edges of a
DAG. The script says, for each node, what it changes, how often it fails, and which way it chooses; it
never depends on when something happens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

from holdfast.model.graph import (
    Edge,
    EdgeKind,
    Graph,
    GraphSpec,
    HoldSpec,
    InDoubt,
    JoinKind,
    JoinPolicy,
    MapSpec,
    Node,
    NodeKind,
    RetryPolicy,
    SubflowSpec,
    TimerSpec,
)
from holdfast.model.validate import validate
from holdfast.types.hold import Option
from holdfast.types.status import Effect

Draw = Callable[[st.SearchStrategy], object]

WRITES = (
    ("scratch", "plain", "set"),
    ("scratch", "other", "set"),
    ("scratch", "other", "delete"),
    ("scratch", "log", "append"),
    ("scratch", "text", "concat"),
    ("scratch", "total", "sum"),
    ("scratch", "mean", "avg"),
    ("scratch", "bag", "merge"),
    ("artifacts", "notes", "append"),
    ("artifacts", "plain", "set"),
)
DEFAULTS = {"total": 0, "plain": "", "rows": (1, 2, 3)}


@dataclass
class Script:
    """What the handlers of one graph do; keyed by node id."""

    writes: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    turns: dict[str, int] = field(default_factory=dict)
    outputs: set[str] = field(default_factory=set)


class Plan:
    def __init__(self, graph: Graph, script: Script) -> None:
        self.graph, self.script = graph, script

    def __repr__(self) -> str:
        return f"Plan({describe(self.graph.spec)}, {self.script})"


def describe(spec: GraphSpec) -> str:
    nodes = [f"{n.id}:{n.kind}{_extras(n)}" for n in spec.nodes]
    edges = [
        f"{e.source}->{e.target}:{e.kind}{'' if e.loop is None else f' loop {e.loop} {e.on_limit}'}"
        for e in spec.edges
    ]
    inside = [describe(s) for s in spec.subgraphs]
    return f"{spec.name}(start={spec.start}, nodes={nodes}, edges={edges}, inside={inside})"


def _extras(node: Node) -> str:
    said = []
    if node.join != JoinPolicy():
        said.append(f"{node.join.kind}{node.join.count} {'cancel' if node.join.cancel_losers else ''}")
    if node.on_failure != "abort" or node.retry.attempts > 1:
        said.append(f"{node.on_failure} x{node.retry.attempts}")
    if node.effect is not Effect.pure:
        said.append(str(node.effect))
    if node.map is not None:
        said.append(
            f"map {node.map.over} of {node.map.body} {node.map.concurrency} {node.map.on_item_failure}"
        )
    return f"<{', '.join(said)}>" if said else ""


@dataclass(frozen=True)
class Taste:
    """Which features a plan may have."""

    joins: bool = False  # any and quorum
    failures: bool = True
    aborts: bool = True
    waits: bool = True
    loops: bool = True
    depth: int = 1
    size: int = 5


class Maker:
    """Draws one graph."""

    def __init__(self, draw: Draw, taste: Taste, name: str, depth: int, script: Script) -> None:
        self.draw, self.taste, self.name, self.depth, self.script = draw, taste, name, depth, script
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.inner: list[GraphSpec] = []

    def one_in(self, n: int) -> bool:
        return self.draw(st.integers(0, n - 1)) == n - 1

    def spec(self) -> GraphSpec:
        count = self.draw(st.integers(1, self.taste.size if self.depth == self.taste.depth else 3))
        blocks: list[tuple[str, str]] = []
        sources: list[list[int]] = []
        for i in range(count):
            fanin = (
                self.draw(st.lists(st.integers(0, i - 1), min_size=1, max_size=3, unique=True)) if i else []
            )
            if i and self.one_in(8):
                fanin = []
            sources.append(sorted(fanin))
            blocks.append(self.block(len(fanin)))
        for i in range(count):
            self.connect(blocks[i][1], [blocks[j][0] for j in range(count) if i in sources[j]])
        starts = tuple(blocks[i][0] for i in range(count) if not sources[i])
        return GraphSpec(
            name=self.name,
            nodes=tuple(self.nodes),
            edges=tuple(self.edges),
            start=starts,
            subgraphs=tuple(self.inner),
            defaults=dict(DEFAULTS),
            in_doubt=InDoubt.ask,
            checkpoint_when=self.draw(st.sampled_from(["after", "after", "both"])),
        )

    def block(self, fanin: int) -> tuple[str, str]:
        """A node, or a loop: its entry and its exit."""
        if self.taste.loops and self.one_in(5):
            return self.loop(fanin)
        node = self.node(fanin)
        return node, node

    def loop(self, fanin: int) -> tuple[str, str]:
        header = self.node(fanin, plain=True)
        shape = self.draw(st.sampled_from(["self", "chain", "diamond", "either", "nested"]))
        tail = header
        if shape == "chain":
            tail = self.node(1, plain=True)
            self.edge(header, tail)
        elif shape in ("diamond", "either"):
            left, right = self.node(1), self.node(1)
            tail = self.node(2, plain=True)
            kind = EdgeKind.always if shape == "diamond" else EdgeKind.chosen
            for side in (left, right):
                self.edge(header, side, kind)
                self.edge(side, tail)
        elif shape == "nested":
            inner = self.node(1, plain=True)
            self.edge(header, inner)
            self.back(inner, inner)
            tail = self.node(1, plain=True)
            self.edge(inner, tail, EdgeKind.otherwise)
        self.back(tail, header)
        return header, tail

    def back(self, tail: str, header: str) -> None:
        turns = self.draw(st.integers(0, 2))
        cap = self.draw(st.sampled_from([6, 6, 6, 1]))
        limit = self.draw(st.sampled_from(["fail", "continue"]))
        self.script.turns[tail] = turns
        self.edge(tail, header, EdgeKind.chosen, loop=cap, on_limit=limit)

    def edge(self, source: str, target: str, kind: EdgeKind = EdgeKind.always, **more: object) -> None:
        self.edges.append(Edge(id=f"e{len(self.edges)}", source=source, target=target, kind=kind, **more))

    def connect(self, source: str, targets: list[str]) -> None:
        looping = source in self.script.turns
        style = (
            "otherwise"
            if looping
            else self.draw(st.sampled_from(["always", "always", "chosen", "when", "mixed"]))
        )
        for i, target in enumerate(targets):
            kind, when = EdgeKind.always, None
            if style == "otherwise":
                kind = EdgeKind.otherwise
            elif style == "chosen" or (style == "mixed" and i % 2):
                kind = EdgeKind.chosen
            elif style == "when":
                kind = EdgeKind.otherwise if i == len(targets) - 1 and i else EdgeKind.when
                when = None if kind is EdgeKind.otherwise else f"total > {self.draw(st.integers(0, 30))}"
            self.edge(source, target, kind, when=when)

    def node(self, fanin: int, *, plain: bool = False) -> str:
        name = f"{self.name}{len(self.nodes)}"
        kind = NodeKind.task if plain else self.kind()
        make = {NodeKind.task: self.task, NodeKind.map: self.fan, NodeKind.subflow: self.sub}.get(
            kind, self.wait
        )
        at = len(self.nodes)
        self.nodes.append(Node(id=name))
        self.nodes[at] = make(name, kind, self.join(fanin), plain)
        return name

    def kind(self) -> NodeKind:
        kinds = [NodeKind.task] * 6
        if self.depth:
            kinds += [NodeKind.map, NodeKind.subflow]
        if self.taste.waits:
            kinds += [NodeKind.hold, NodeKind.timer]
        return self.draw(st.sampled_from(kinds))

    def join(self, fanin: int) -> JoinPolicy:
        if not self.taste.joins or fanin < 2 or self.one_in(3):
            return JoinPolicy()
        return JoinPolicy(
            kind=self.draw(st.sampled_from(list(JoinKind))),
            count=self.draw(st.integers(1, fanin)),
            cancel_losers=self.one_in(3),
            timeout=60_000_000 if self.one_in(4) else None,
        )

    def task(self, name: str, _kind: NodeKind, join: JoinPolicy, plain: bool) -> Node:
        self.script.writes[name] = self.draw(st.lists(st.sampled_from(WRITES), max_size=3, unique=True))
        if self.one_in(4):
            self.script.outputs.add(name)
        effect = self.draw(
            st.sampled_from([Effect.pure, Effect.pure, Effect.read, Effect.write, Effect.external])
        )
        policy, attempts = "abort", 1
        if self.taste.failures and not plain and self.one_in(4):
            attempts = self.draw(st.integers(1, 3))
            policy = self.draw(st.sampled_from(["abort", "skip", "route"]))
            fails = self.draw(st.integers(1, 3))
            if policy == "abort" and not self.taste.aborts:
                fails = min(fails, attempts - 1)
            self.script.failures[name] = fails
        elif not plain and self.taste.waits and effect in (Effect.write, Effect.external) and self.one_in(4):
            self.script.unknown.add(name)
        if policy == "route":
            rescue = f"{self.name}{len(self.nodes)}"
            self.nodes.append(Node(id=rescue, effect=Effect.pure))
            self.script.writes[rescue] = [("scratch", "log", "append")]
            self.edge(name, rescue, EdgeKind.failure)
            policy = f"route:{rescue}"
        return Node(
            id=name,
            effect=effect,
            join=join,
            on_failure=policy,
            retry=RetryPolicy(attempts=attempts, retry_on=("Planned",) if attempts > 1 else ()),
        )

    def wait(self, name: str, kind: NodeKind, join: JoinPolicy, _plain: bool) -> Node:
        if kind is NodeKind.timer:
            return Node(
                id=name, kind=kind, effect=Effect.pure, join=join, timer=TimerSpec(duration=5_000_000)
            )
        hold = HoldSpec(prompt="{{total}}?", options=(Option("yes", "Yes"), Option("no", "No")))
        return Node(id=name, kind=kind, effect=Effect.human, join=join, hold=hold)

    def inside(self, name: str) -> str:
        body = f"{name}x"
        self.inner.append(Maker(self.draw, self.taste, body, self.depth - 1, self.script).spec())
        return body

    def coping(self) -> dict[str, object]:
        if not self.taste.failures or not self.one_in(3):
            return {}
        attempts = self.draw(st.integers(1, 2))
        return {
            "on_failure": self.draw(st.sampled_from(["abort", "skip"])),
            "retry": RetryPolicy(attempts=attempts),
        }

    def fan(self, name: str, kind: NodeKind, join: JoinPolicy, _plain: bool) -> Node:
        spec = MapSpec(
            over=self.draw(st.sampled_from(["rows", "rows", "none"])),
            body=self.inside(name),
            into=f"made_{name}",
            concurrency=self.draw(st.integers(0, 2)),
            on_item_failure=self.draw(st.sampled_from(["fail", "collect"])),
        )
        if spec.over == "none":
            spec = MapSpec(over="[]", body=spec.body, into=spec.into)
        return Node(id=name, kind=kind, effect=Effect.pure, join=join, map=spec, **self.coping())

    def sub(self, name: str, kind: NodeKind, join: JoinPolicy, _plain: bool) -> Node:
        outputs = self.draw(st.sampled_from([None, {"plain": "state.plain", "total": "state.total"}]))
        spec = SubflowSpec(body=self.inside(name), outputs=outputs)
        return Node(id=name, kind=kind, effect=Effect.pure, join=join, subflow=spec, **self.coping())


@st.composite
def plans(draw: Draw, taste: Taste) -> Plan:
    script = Script()
    spec = Maker(draw, taste, "n", taste.depth, script).spec()
    wrong = [p for p in validate(spec) if p.severity == "error"]
    assert not wrong, wrong
    return Plan(Graph(spec), script)
