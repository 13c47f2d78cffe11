"""How nodes are declared: decorators for functions, calls for holds and timers."""

# Options of a node have the names that users know, even if these hide built-ins: id, type.
# ruff: noqa: A002

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from holdfast.frontends.python.code import Compatible, code_fingerprint, compatible_marks
from holdfast.frontends.python.declarations import Collector
from holdfast.frontends.python.function_parameters import is_coroutine
from holdfast.frontends.python.guard import Guard, guard_node
from holdfast.frontends.python.handle import NodeHandle, node_id
from holdfast.frontends.python.holds import FormOptions, hold_spec
from holdfast.frontends.python.policies import DeclarationReader, Duration, Join, Retry, retry_classes
from holdfast.model.graph import GuardSpec, InDoubt, Node, NodeKind, TimerSpec, WalkSpec
from holdfast.model.hold_terms import NAMES, HoldTermsOptions
from holdfast.model.program import NodeHandler
from holdfast.types.hold import Option
from holdfast.types.status import Effect

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS = frozenset(
    {
        "retry", "timeout", "on_failure", "join", "idempotency_key", "in_doubt", "checkpoint", "output_as",
        "version", "compatible_with", "memory", "walk", "metadata", "probe", "guard", "breakpoint",
        "isolation",
    }
)  # fmt: skip


class HoldOptions(HoldTermsOptions, total=False):
    """What `flow.hold` takes besides its question: its terms, and the options of any node."""

    on_failure: str
    join: Join | str
    checkpoint: str | None
    output_as: str | None
    walk: WalkSpec | None
    metadata: Mapping[str, Any] | None
    guard: Guard | None
    breakpoint: bool


class Nodes(Collector):
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
        compatible_with: Compatible = (),
        memory: str | None = None,
        walk: WalkSpec | None = None,
        metadata: Mapping[str, Any] | None = None,
        guard: Guard | None = None,
        breakpoint: bool = False,
        isolation: str | None = None,
    ) -> Callable[[Callable[P, R]], NodeHandle[P, R]]: ...
    def node(self, fn: Callable[..., Any] | None = None, **options: Any) -> Any:
        """Make a function a node. Without `effect` it has the flow's default class, `external`.

        The function takes the state, the context, both or neither, and returns a dict of changes (or any
        other value, which is its output). `isolation="process"`: it runs in a child process, which is killed
        at its timeout and when its run is cancelled; there its context only says which attempt it is.
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
        compatible_with: Compatible = (),
        memory: str | None = None,
        walk: WalkSpec | None = None,
        metadata: Mapping[str, Any] | None = None,
        guard: Guard | None = None,
        breakpoint: bool = False,
    ) -> Callable[[Callable[P, R]], NodeHandle[P, R]]: ...
    def script(self, fn: Callable[..., Any] | None = None, **options: Any) -> Any:
        """Make a function a node of sub-steps (`ctx.step`) and questions (`ctx.ask`).

        The code around them runs again after a crash, so it is `read` (the default) or `pure`; an outside
        effect belongs in a sub-step with its own class.
        """
        return self._decorate(fn, options, script=True)

    def _decorate(self, fn: Callable[..., Any] | None, options: dict[str, Any], *, script: bool) -> Any:
        def decorate(inner: Callable[..., Any]) -> NodeHandle[..., Any]:
            return self.task(inner, dict(options), script=script)

        return decorate if fn is None else decorate(fn)

    def task(
        self, fn: Callable[..., Any], options: dict[str, Any], *, script: bool, first: str = "state"
    ) -> Any:
        name = options.pop("id", None) or getattr(fn, "__name__", type(fn).__name__)
        effect = options.pop("effect", None) or (Effect.read if script else None)
        if effect is None:
            self.undeclared.append(name)
        policies = self.policies(name, options)
        self._add(
            Node(id=name, effect=self._effect(name, effect), script=script, **policies), fn, options, first
        )
        return NodeHandle(name, fn)

    def _effect(self, name: str, effect: str | None) -> Effect:
        if effect is None:
            return self.default_effect
        return DeclarationReader(self.found.append, node=name).choice(
            Effect, effect, "effect", Effect.external
        )

    def policies(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
        """Fields that nodes of all kinds share."""
        read = DeclarationReader(self.found.append, node=name)
        doubt = options.get("in_doubt") or ("probe" if options.get("probe") is not None else None)
        return {
            "retry": read.retry(options.get("retry")),
            "timeout": read.duration(options.get("timeout"), "timeout"),
            "on_failure": options.get("on_failure", "abort"),
            "join": read.join(options.get("join", "all")),
            "idempotency_key": options.get("idempotency_key"),
            "in_doubt": None
            if doubt is None
            else read.choice(InDoubt, doubt, "in-doubt policy", InDoubt.ask),
            "checkpoint": options.get("checkpoint"),
            "output_as": options.get("output_as"),
            "version": options.get("version"),
            "memory": options.get("memory"),
            "walk": options.get("walk"),
            "breakpoint": read.flag(options.get("breakpoint", False), "breakpoint"),
            "metadata": dict(options.get("metadata") or {}),
        }

    def _add(
        self, node: Node, fn: Callable[..., Any] | None, options: Mapping[str, Any], first: str = "state"
    ) -> None:
        unknown = sorted(options.keys() - _OPTIONS)
        if unknown:
            fix = "correct the spelling, or remove them"
            self.wrong("option", f"unknown options {', '.join(unknown)}", node=node.id, fix=fix)
        self.revision += 1
        self.nodes.append(node)
        self.note_origin("node", node.id)
        if options.get("guard") is not None:
            guard_node(self, node.id, options["guard"])
        if fn is not None:
            isolation = self._isolation(node, options.get("isolation"))
            self.handlers.setdefault(
                node.id,
                NodeHandler(
                    fn=fn,
                    # For its worker a process is waited for like a thread.
                    is_async=is_coroutine(fn) and not isolation,
                    takes=self.takes_of(node.id, fn, first),
                    retry_on=retry_classes(options.get("retry")),
                    probe=options.get("probe"),
                    code=code_fingerprint(fn, node.version),
                    compatible=compatible_marks(options.get("compatible_with")),
                    isolation=isolation,
                ),
            )

    def _isolation(self, node: Node, given: Any) -> str:
        if given is None:
            return ""
        if given != "process":
            self.wrong("isolation", f"isolation={given!r} is not known", node=node.id,
                       fix='write isolation="process", or remove it')  # fmt: skip
        elif node.script:
            self.wrong("isolation", "a script cannot run in a process: its steps are recorded by its worker",
                       node=node.id, fix="make the part that needs a process a node of its own")  # fmt: skip
        return "process"

    def hold(
        self,
        id: str,
        *,
        prompt: str,
        options: Sequence[str | Option | Mapping[str, Any]] | None = None,
        assignee: str | None = None,
        timeout: Duration | None = None,
        on_timeout: str | Mapping[str, str] | None = None,
        priority: str = "normal",
        type: str = "approval",
        bind: str = "decision",
        context: Mapping[str, Any] | None = None,
        schema: Any = None,
        form: Any = None,
        sections: Sequence[Mapping[str, Any]] | None = None,
        allow_extra: bool = False,
        into: str | None = None,
        modifies: Mapping[str, str] | None = None,
        **more: Unpack[HoldOptions],
    ) -> NodeHandle[..., Any]:
        """A node at which a person decides. The decision is stored in the state's field `bind`.

        `sections` is the form to fill in, or `form` the type (Pydantic, msgspec, dataclass) or JSON Schema of
        its data; the data are stored in the field `into`. `modifies`: what the approver may change
        (`arguments`, `output`, `instructions`), and the field that has it; the change is sent as
        `modifications` in the data of the answer.

        `timeout` and `on_timeout` (cancel, default_option, fail, escalate:WHO, branch:NODE) set what happens
        without an answer in time; `ladder=[("4h", "role:lead"), ...]` escalates it step by step. `reminder`,
        `approval` (how many people must approve), `tags` and others are described in `HoldTermsOptions`; all
        further options are those of any node. `shadow`: a judge who answers before the people see the
        question; the answer is sealed, and shown after their decision."""
        terms: dict[str, Any] = {name: value for name, value in more.items() if name in NAMES}
        policies: dict[str, Any] = {name: value for name, value in more.items() if name not in NAMES}
        if terms.get("shadow") is not None:
            # Loaded by the first flow that has one.
            from holdfast.model.shadow_judges import shadow_name

            terms["shadow"] = shadow_name(self.name, id, terms["shadow"])
        asked = hold_spec(
            DeclarationReader(self.found.append, node=id),
            prompt=prompt, options=options, assignee=assignee, timeout=timeout, on_timeout=on_timeout,
            priority=priority, type=type, bind=bind, context=context, schema=schema,
            form=FormOptions(form, sections, allow_extra, into, modifies), terms=terms,
        )  # fmt: skip
        return self.plain(
            Node(id=id, kind=NodeKind.hold, effect=Effect.human, hold=asked, **self.policies(id, policies)),
            policies,
        )

    def plain(self, node: Node, policies: Mapping[str, Any]) -> NodeHandle[..., Any]:
        self._add(node, None, policies)
        return NodeHandle(node.id)

    def timer(
        self, id: str, duration: Duration | None = None, *, until: str | None = None, **policies: Any
    ) -> NodeHandle[..., Any]:
        """Wait for a fixed time, or until the result of an expression: seconds or an instant."""
        length = DeclarationReader(self.found.append, node=id).duration(duration, "duration", zero=True)
        if length is None and duration is not None:
            length = 0  # reported already
        spec = TimerSpec(duration=length, until=until)
        node = Node(id=id, kind=NodeKind.timer, effect=Effect.pure, timer=spec, **self.policies(id, policies))
        return self.plain(node, policies)

    def event(
        self,
        id: str,
        name: str,
        *,
        key: str | None = None,
        match: str | None = None,
        timeout: Duration | None = None,
        on_timeout: str | Mapping[str, str] | None = None,
        into: str | None = None,
        bind: str = "received",
        **policies: Any,
    ) -> NodeHandle[..., Any]:
        """Wait for an event from a machine, which has this name and key; no person is asked.

        `key` may have placeholders (`{{order}}`); without one the event has none. `match` is a condition on
        its data, such as `event.amount >= least`, with names of the state beside `event`. The event (`id`,
        `name`, `key`, `data`) is stored in the state's field `into`. `timeout` and `on_timeout` are as for
        `hold`; the field `bind` says how the wait ended."""
        from holdfast.frontends.python.machine_waits import event_hold

        read = DeclarationReader(self.found.append, node=id)
        spec = event_hold(
            read, name, key, match, timeout=timeout, on_timeout=on_timeout, into=into, bind=bind
        )
        node = Node(id=id, kind=NodeKind.hold, effect=Effect.human, hold=spec, **self.policies(id, policies))
        return self.plain(node, policies)

    def callback(
        self,
        id: str,
        *,
        timeout: Duration | None = None,
        heartbeat: Duration | None = None,
        into: str | None = None,
        effect: str = "external",
        idempotent: bool = False,
        retry: Retry | int | None = None,
        **policies: Any,
    ) -> Callable[[Callable[..., Any]], NodeHandle[..., Any]]:
        """Make a function a node that another system completes. The function hands `callback.url` (or
        `callback.token`) over to it, in a recorded step; then the run waits without a process. It takes
        `callback`, and the state if it has one more parameter.

        The result that the system sends is stored in the state's field `into`. `timeout` limits the whole
        wait, `heartbeat` the time without a heartbeat; after either, or a reported failure, the node fails.
        `effect`, `idempotent` and `retry` are those of the step (`ctx.step`)."""
        from holdfast.frontends.python.machine_waits import callback_script

        def decorate(fn: Callable[..., Any]) -> NodeHandle[..., Any]:
            step = {"effect": effect, "idempotent": idempotent, "retry": retry}
            run = callback_script(fn, id, timeout=timeout, heartbeat=heartbeat, into=into, step=step)
            return self.task(run, {**policies, "id": id, "effect": Effect.read}, script=True)

        return decorate

    @overload
    def guardrail(self, id: Callable[P, R], /) -> NodeHandle[P, R]: ...
    @overload
    def guardrail(
        self,
        id: str | None = None,
        *,
        on_violation: str = "block",
        reroute: str | None = None,
        effect: str = "pure",
        **policies: Any,
    ) -> Callable[[Callable[P, R]], NodeHandle[P, R]]: ...
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
            guard = GuardSpec(
                on_violation=on_violation, reroute=None if reroute is None else node_id(reroute)
            )
            node = Node(
                id=name,
                kind=NodeKind.guardrail,
                effect=self._effect(name, effect),
                guard=guard,
                **self.policies(name, policies),
            )
            self._add(node, fn, policies)
            return NodeHandle(name, fn)

        return decorate(id) if callable(id) and not isinstance(id, str) else decorate
