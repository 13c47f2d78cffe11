"""Flows as ordinary Python: functions become nodes, and edges are said one by one.

A builder only collects. What is wrong is kept and reported together by `problems()` and `compile()`, so
that a flow with five mistakes shows five.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from holdfast.frontends.python.code import code_fingerprint
from holdfast.frontends.python.functions import SignatureProblem, is_coroutine, takes_of
from holdfast.frontends.python.handle import NodeHandle, node_id
from holdfast.frontends.python.holds import hold_spec
from holdfast.frontends.python.lower import lower
from holdfast.frontends.python.policies import Duration, Join, Reader, Retry, retry_classes
from holdfast.model.diagnostics import Problem, demand_valid
from holdfast.model.graph import (
    END,
    START,
    Edge,
    EdgeKind,
    GuardSpec,
    InDoubt,
    MapSpec,
    Node,
    NodeKind,
    SubflowSpec,
    TimerSpec,
    WalkSpec,
)
from holdfast.model.program import Handler, Program, Router
from holdfast.model.reducers import ReducerMark, as_mark
from holdfast.types.hold import Option
from holdfast.types.status import Effect

P = ParamSpec("P")
R = TypeVar("R")
Condition = str | Callable[..., Any]


class FlowBuilder:
    """Builds a graph; running it is the business of `holdfast.Flow`."""

    def __init__(
        self,
        name: str,
        state: Any = None,
        *,
        effect: str = "external",
        in_doubt: str = "ask",
        checkpoints: str = "every_node",
        checkpoint_when: str = "after",
        mode: str = "barrier",
        lane: str = "default",
        priority: int = 0,
        memory: str = "live",
        types: Iterable[type] = (),
        reducers: Mapping[str, ReducerMark | str | Callable[[Any, Any], Any]] | None = None,
        code_change: str = "allow",
        allow_uncheckpointed: bool = False,
        traversal: str = "dataflow",
        max_visits: int = 0,
        max_goal_jumps: int = 10,
        retry_target: str | None = None,
        fallback_retry_target: str | None = None,
    ) -> None:
        self.name = name
        self.state = state
        self.found: list[Problem] = []
        read = Reader(self.found.append)
        self.default_effect = read.choice(Effect, effect, "effect", Effect.external)
        self.settings: dict[str, Any] = {
            "in_doubt": read.choice(InDoubt, in_doubt, "in-doubt policy", InDoubt.ask),
            "checkpoints": checkpoints,
            "checkpoint_when": checkpoint_when,
            "mode": mode,
            "lane": lane,
            "priority": priority,
            "memory": memory,
            "code_change": code_change,
            "allow_uncheckpointed": allow_uncheckpointed,
            "traversal": traversal,
            "max_visits": max_visits,
            "max_goal_jumps": max_goal_jumps,
            "retry_target": None if retry_target is None else node_id(retry_target),
            "fallback_retry_target": None if fallback_retry_target is None else node_id(fallback_retry_target),
        }
        self.types = tuple(types)
        self.reducers = {name: as_mark(given) for name, given in (reducers or {}).items()}
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.handlers: dict[str, Handler] = {}
        self.routers: dict[str, list[Router]] = {}
        self.children: dict[str, FlowBuilder] = {}
        self.first: list[str] | None = None
        self.undeclared: list[str] = []
        self._edge_ids: set[str] = set()
        self._compiled: Program | None = None

    # Nodes

    @overload
    def node(self, fn: Callable[P, R], /) -> NodeHandle[P, R]: ...
    @overload
    def node(
        self,
        *,
        id: str | None = None,
        effect: str | None = None,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        on_failure: str = "abort",
        idempotency_key: str | None = None,
        in_doubt: str | None = None,
        probe: Callable[..., Any] | None = None,
        join: Join | str = "all",
        checkpoint: str | None = None,
        output_as: str | None = None,
        version: str | None = None,
        memory: str | None = None,
        breakpoint: bool = False,
        walk: WalkSpec | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Callable[[Callable[P, R]], NodeHandle[P, R]]: ...
    def node(self, fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a function a node. Without `effect` it has the flow's default class, `external`.

        The function takes the state, the context, both or neither, and returns a dict of changes (or any
        other value, which is its output).
        """
        return self._decorate(fn, options, script=False)

    @overload
    def script(self, fn: Callable[P, R], /) -> NodeHandle[P, R]: ...
    @overload
    def script(
        self,
        *,
        id: str | None = None,
        effect: str = "read",
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        on_failure: str = "abort",
        join: Join | str = "all",
        checkpoint: str | None = None,
        output_as: str | None = None,
        version: str | None = None,
        memory: str | None = None,
        breakpoint: bool = False,
        walk: WalkSpec | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Callable[[Callable[P, R]], NodeHandle[P, R]]: ...
    def script(self, fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a function a node of sub-steps (`ctx.step`) and questions (`ctx.ask`).

        The code around them runs again after a crash, so it is `read` (the default) or `pure`; what
        touches the outside stands in a sub-step with a class of its own.
        """
        return self._decorate(fn, options, script=True)

    def _decorate(self, fn: Callable[..., Any] | None, options: dict[str, Any], *, script: bool) -> Any:
        if fn is not None:
            return self._task(fn, options, script=script)
        return lambda inner: self._task(inner, options, script=script)

    def _task(self, fn: Callable[..., Any], options: dict[str, Any], *, script: bool, first: str = "state") -> Any:
        name = options.pop("id", None) or getattr(fn, "__name__", type(fn).__name__)
        effect = options.pop("effect", None) or (Effect.read if script else None)
        if effect is None:
            self.undeclared.append(name)
        policies = self._policies(name, options)
        self._add(Node(id=name, effect=self._effect(name, effect), script=script, **policies), fn, options, first)
        return NodeHandle(name, fn)

    def _effect(self, name: str, effect: str | None) -> Effect:
        if effect is None:
            return self.default_effect
        return Reader(self.found.append, node=name).choice(Effect, effect, "effect", Effect.external)

    def _policies(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
        """Fields that nodes of all kinds share."""
        read = Reader(self.found.append, node=name)
        doubt = options.get("in_doubt") or ("probe" if options.get("probe") is not None else None)
        return {
            "retry": read.retry(options.get("retry")),
            "timeout": read.duration(options.get("timeout"), "timeout"),
            "on_failure": options.get("on_failure", "abort"),
            "join": read.join(options.get("join", "all")),
            "idempotency_key": options.get("idempotency_key"),
            "in_doubt": None if doubt is None else read.choice(InDoubt, doubt, "in-doubt policy", InDoubt.ask),
            "checkpoint": options.get("checkpoint"),
            "output_as": options.get("output_as"),
            "version": options.get("version"),
            "memory": options.get("memory"),
            "breakpoint": options.get("breakpoint", False),
            "walk": options.get("walk"),
            "metadata": dict(options.get("metadata") or {}),
        }

    def _add(self, node: Node, fn: Callable[..., Any] | None, options: Mapping[str, Any], first: str = "state") -> None:
        unknown = sorted(options.keys() - _OPTIONS)
        if unknown:
            self._wrong("option", f"unknown options {', '.join(unknown)}", node=node.id)
        self._compiled = None
        self.nodes.append(node)
        if fn is not None:
            self.handlers.setdefault(
                node.id,
                Handler(
                    fn=fn,
                    is_async=is_coroutine(fn),
                    takes=self._takes(node.id, fn, first),
                    retry_on=retry_classes(options.get("retry")),
                    probe=options.get("probe"),
                    code=code_fingerprint(fn, node.version),
                ),
            )

    def _takes(self, name: str, fn: Callable[..., Any], first: str = "state") -> tuple[str, ...]:
        try:
            return takes_of(fn, first)
        except SignatureProblem as problem:
            self._wrong("signature", f"{getattr(fn, '__name__', fn)!r} cannot be called: {problem}", node=name)
            return (first,)

    def _wrong(self, rule: str, message: str, *, node: str | None = None, fix: str | None = None) -> None:
        self.found.append(Problem(rule=rule, message=message, node=node, fix=fix))

    def hold(
        self,
        id: str,
        *,
        prompt: str,
        options: Sequence[str | Option | Mapping[str, str]] | None = None,
        assignee: str | None = None,
        timeout: Duration | None = None,
        on_timeout: str | Mapping[str, str] | None = None,
        priority: str = "normal",
        type: str = "approval",
        bind: str = "decision",
        context: Mapping[str, str] | None = None,
        schema: Any = None,
        **policies: Any,
    ) -> NodeHandle[..., Any]:
        """A node at which a person decides. The decision is put into the state's field `bind`."""
        asked = hold_spec(
            Reader(self.found.append, node=id),
            prompt=prompt, options=options, assignee=assignee, timeout=timeout, on_timeout=on_timeout,
            priority=priority, type=type, bind=bind, context=context, schema=schema,
        )  # fmt: skip
        return self._plain(Node(id=id, kind=NodeKind.hold, effect=Effect.human, hold=asked, **self._policies(id, policies)), policies)

    def _plain(self, node: Node, policies: Mapping[str, Any]) -> NodeHandle[..., Any]:
        self._add(node, None, policies)
        return NodeHandle(node.id)

    def timer(
        self, id: str, duration: Duration | None = None, *, until: str | None = None, **policies: Any
    ) -> NodeHandle[..., Any]:
        """Wait for a fixed time, or until what an expression gives: seconds or an instant."""
        length = Reader(self.found.append, node=id).duration(duration, "duration", zero=True)
        spec = TimerSpec(duration=length, until=until)
        node = Node(id=id, kind=NodeKind.timer, effect=Effect.pure, timer=spec, **self._policies(id, policies))
        return self._plain(node, policies)

    def map(
        self,
        id: str,
        *,
        over: str,
        body: Callable[..., Any] | FlowBuilder,
        into: str,
        concurrency: int = 0,
        effect: str | None = None,
        on_item_failure: str = "fail",
        join: Join | str = "all",
        on_failure: str = "abort",
        checkpoint: str | None = None,
        **item: Any,
    ) -> NodeHandle[..., Any]:
        """Run `body` for each item of the list at `over`, at most `concurrency` at once (0: all).

        A function gets the item first (`fn(item)`, `fn(item, ctx)`), and what it returns is the item's
        result; the results, in the order of the items, are put into the field `into`. Further options
        (`retry`, `timeout`, `idempotency_key`, ...) are those of the item's node.
        """
        child = body if isinstance(body, FlowBuilder) else self._item_flow(id, body, effect, item)
        if isinstance(body, FlowBuilder) and (item or effect):
            self._wrong("option", "a map over a flow takes no options for its items", node=id)
        spec = MapSpec(
            over=over, body=child.name, into=into, concurrency=concurrency, on_item_failure=on_item_failure
        )
        options = {"join": join, "on_failure": on_failure, "checkpoint": checkpoint}
        node = Node(id=id, kind=NodeKind.map, effect=Effect.pure, map=spec, **self._policies(id, options))
        self._adopt(id, child)
        return self._plain(node, options)

    def _item_flow(
        self, id: str, body: Callable[..., Any], effect: str | None, options: dict[str, Any]
    ) -> FlowBuilder:
        fn = body.fn if isinstance(body, NodeHandle) and body.fn is not None else body
        child = FlowBuilder(f"{id}.item", effect=self.default_effect, types=self.types)
        child._task(fn, {**options, "effect": effect}, script=False, first="item")
        return child

    def subflow(
        self,
        id: str,
        flow: FlowBuilder,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        **policies: Any,
    ) -> NodeHandle[..., Any]:
        """Run another flow as one node.

        `inputs`: the child's field -> an expression over this flow's state (default: the whole state).
        `outputs`: a field of this flow -> a path into the child's `state`, `artifacts` or `output`.
        """
        spec = SubflowSpec(
            body=flow.name,
            inputs=None if inputs is None else dict(inputs),
            outputs=None if outputs is None else dict(outputs),
        )
        node = Node(id=id, kind=NodeKind.subflow, effect=Effect.pure, subflow=spec, **self._policies(id, policies))
        self._adopt(id, flow)
        return self._plain(node, policies)

    def _adopt(self, id: str, child: FlowBuilder) -> None:
        known = self.children.setdefault(child.name, child)
        if known is not child:
            self._wrong(
                "subflow-name",
                f"two different sub-flows are called {child.name!r}",
                node=id,
                fix="give each flow a name of its own",
            )

    def guardrail(
        self,
        id: str | Callable[..., Any] | None = None,
        *,
        on_violation: str = "block",
        reroute: str | None = None,
        effect: str = "pure",
        **policies: Any,
    ) -> Any:
        """Make a function a check of the state: None or True passes, a `Violation` does not."""

        def decorate(fn: Callable[P, R]) -> NodeHandle[P, R]:
            name = id if isinstance(id, str) else fn.__name__
            guard = GuardSpec(on_violation=on_violation, reroute=None if reroute is None else node_id(reroute))
            node = Node(
                id=name,
                kind=NodeKind.guardrail,
                effect=self._effect(name, effect),
                guard=guard,
                **self._policies(name, policies),
            )
            self._add(node, fn, policies)
            return NodeHandle(name, fn)

        return decorate(id) if callable(id) and not isinstance(id, str) else decorate

    # Edges

    def start(self, *nodes: str) -> None:
        """Where the flow begins. Never called, every node without an incoming edge is a start."""
        self._compiled = None
        self.first = (self.first or []) + [node_id(node) for node in nodes]

    def edge(
        self,
        source: str,
        target: str,
        *,
        when: Condition | None = None,
        otherwise: bool = False,
        id: str | None = None,
        label: str = "",
        weight: int = 0,
    ) -> None:
        """Lead from one node to the next.

        `when`: an expression over the state, or a function of it. `otherwise`: taken when no conditional
        edge of `source` is.
        """
        if source == START:
            if when is not None or otherwise:
                self._wrong("start-condition", f"the edge to {target!r} from the start has a condition",
                            fix="begin with a node and put the condition on its edges")  # fmt: skip
            self.start(target)
            return
        edge = self._edge(source, target, when, otherwise=otherwise, id=id)
        self._connect(edge, when, label=label, weight=weight)

    def loop(
        self,
        source: str,
        target: str,
        *,
        when: Condition | None = None,
        max: int = 10,
        on_limit: str = "fail",
        id: str | None = None,
    ) -> None:
        """Lead back to an earlier node, at most `max` times; then fail, or `continue` past the loop."""
        edge = self._edge(source, target, when, otherwise=False, id=id)
        self._connect(edge, when, loop=max, on_limit=on_limit)

    def _edge(self, source: str, target: str, when: Condition | None, *, otherwise: bool, id: str | None) -> Edge:
        kind = EdgeKind.otherwise if otherwise else EdgeKind.always
        if when is not None:
            kind = EdgeKind.when if isinstance(when, str) else EdgeKind.chosen
        edge = Edge(id=id or self.free_id(source, target), source=node_id(source), target=node_id(target), kind=kind)
        if when is not None and otherwise:
            self.found.append(
                Problem(rule="otherwise", message="it has both `when` and `otherwise`", edge=edge.id)
            )
        return edge

    def free_id(self, source: str, target: str, what: str = "") -> str:
        base = f"{node_id(source)}->{node_id(target)}{what}"
        name, count = base, 1
        while name in self._edge_ids:
            count += 1
            name = f"{base}#{count}"
        return name

    def _connect(self, edge: Edge, when: Condition | None, **more: Any) -> None:
        self._compiled = None
        values = {field: getattr(edge, field) for field in edge.__struct_fields__} | more
        values["when"] = when if isinstance(when, str) else None
        self._edge_ids.add(edge.id)
        self.edges.append(Edge(**values))
        if when is not None and not isinstance(when, str):
            self._route(edge.source, when, {True: (edge.id,), False: ()}, boolean=True)

    def _route(self, source: str, fn: Callable[..., Any], choices: dict[Any, tuple[str, ...]], *, boolean: bool) -> None:
        router = Router(
            fn=fn, is_async=is_coroutine(fn), takes=self._takes(source, fn), choices=choices, boolean=boolean
        )
        self.routers.setdefault(source, []).append(router)

    def router(self, source: str, fn: Callable[..., Any], targets: Iterable[str]) -> None:
        """`fn` names what follows: a node of `targets`, several in a list, or None for nothing."""
        choices: dict[Any, tuple[str, ...]] = {None: ()}
        for target in targets:
            choices[node_id(target)] = (self._chosen(source, target),)
        self._route(node_id(source), fn, choices, boolean=False)

    def branch(self, source: str, fn: Callable[..., Any], arms: Mapping[Any, str]) -> None:
        """Exactly the arm of the key that `fn` returns; a key without an arm fails the run."""
        edges = {target: self._chosen(source, target) for target in dict.fromkeys(map(node_id, arms.values()))}
        choices = {key: (edges[node_id(target)],) for key, target in arms.items()}
        self._route(node_id(source), fn, choices, boolean=False)

    def _chosen(self, source: str, target: str) -> str:
        edge = Edge(
            id=self.free_id(source, target), source=node_id(source), target=node_id(target), kind=EdgeKind.chosen
        )
        self._connect(edge, None)
        return edge.id

    def chain(self, *nodes: str) -> None:
        """One after the other."""
        for source, target in zip(nodes, nodes[1:], strict=False):
            self.edge(source, target)

    # Outcome

    def problems(self) -> list[Problem]:
        """Everything that validation says, warnings and hints included."""
        return lower(self).problems

    def compile(self) -> Program:
        """Raises FlowInvalidError that lists every error."""
        if self._compiled is None or self.children:
            lowered = lower(self)
            demand_valid(self.name, lowered.problems)
            self._compiled = lowered.program()
        return self._compiled


_OPTIONS = frozenset(
    {
        "retry", "timeout", "on_failure", "join", "idempotency_key", "in_doubt", "checkpoint", "output_as",
        "version", "memory", "breakpoint", "walk", "metadata", "probe",
    }
)  # fmt: skip

__all__ = ["END", "START", "FlowBuilder"]
