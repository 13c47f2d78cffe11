"""Guards: checks around a node or on an edge, as an author declares them."""

# ruff: noqa: A002  (`input` is what users call it)

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import msgspec

from holdfast.errors import GuardrailError
from holdfast.frontends.python.code import code_fingerprint
from holdfast.frontends.python.function_parameters import is_coroutine
from holdfast.frontends.python.handle import NodeHandle, node_id
from holdfast.frontends.python.policies import DeclarationReader
from holdfast.model.guardrails import Violation, to_violation
from holdfast.model.program import NodeHandler
from holdfast.model.user_code.boundary import call, call_plain
from holdfast.types.status import REPEATABLE, Effect

if TYPE_CHECKING:
    from holdfast.frontends.python.declarations import Collector

Check = Callable[..., Any]


class Guard:
    """Checks of the state: before a node (`input`), after it (`output`), or, as `Guard(check)`, on an edge.

    A check returns None or True to pass and a `Violation` to reject, like that of a guardrail node.
    """

    def __init__(
        self,
        *checks: Check,
        input: Iterable[Check] = (),
        output: Iterable[Check] = (),
        on_violation: str = "block",
        reroute: str | None = None,
        effect: str = "pure",
    ) -> None:
        self.checks = checks
        self.input = tuple(input)
        self.output = tuple(output)
        self.on_violation = on_violation
        self.reroute = None if reroute is None else node_id(reroute)
        self.effect = effect


class GuardPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed guard: each tuple has the code of guardrail nodes that follow one another."""

    before: tuple[NodeHandler, ...] = ()
    after: tuple[NodeHandler, ...] = ()
    between: tuple[NodeHandler, ...] = ()
    on_violation: str
    reroute: str | None
    effect: Effect


def guard_node(flow: Collector, node: str, guard: Any) -> None:
    """Add the guard of a node, and report what is wrong with it."""
    if not _is_guard(guard, flow, node):
        return
    if guard.checks:
        flow.wrong("guard", "its guard has checks that are neither input nor output", node=node,
                   fix="write Guard(input=[...]) or Guard(output=[...])")  # fmt: skip
    elif not (guard.input or guard.output):
        flow.wrong("guard", "its guard has no checks", node=node, fix="write Guard(input=[...])")
    before, after = _row(flow, node, guard, guard.input), _row(flow, node, guard, guard.output)
    flow.guards.setdefault(node, _plan(flow, node, guard, before=before, after=after))


def guard_edge(flow: Collector, edge: str, source: str, guard: Any) -> None:
    if not _is_guard(guard, flow, source):
        return
    if guard.input or guard.output:
        flow.wrong("guard", f"the guard of edge {edge!r} has input or output checks", node=source,
                   fix="an edge has one state: write Guard(check, ...)")  # fmt: skip
    elif not guard.checks:
        flow.wrong("guard", f"the guard of edge {edge!r} has no checks", node=source,
                   fix="write Guard(check, ...)")  # fmt: skip
    between = _row(flow, source, guard, guard.checks)
    flow.edge_guards.setdefault(edge, _plan(flow, source, guard, between=between))


def _is_guard(given: Any, flow: Collector, node: str) -> TypeGuard[Guard]:
    if isinstance(given, Guard):
        return True
    flow.wrong("guard", f"{given!r} is not a guard", node=node, fix="write guard=Guard(...)")
    return False


def _plan(flow: Collector, node: str, guard: Guard, **rows: tuple[NodeHandler, ...]) -> GuardPlan:
    effect = DeclarationReader(flow.found.append, node=node).choice(
        Effect, guard.effect, "effect", Effect.pure
    )
    if effect not in REPEATABLE:
        flow.wrong("guard", f"a check runs again after a crash, so its class cannot be {effect}", node=node,
                   fix='declare effect="pure" or effect="read"')  # fmt: skip
    return GuardPlan(on_violation=guard.on_violation, reroute=guard.reroute, effect=effect, **rows)


def _row(flow: Collector, node: str, guard: Guard, given: tuple[Check, ...]) -> tuple[NodeHandler, ...]:
    functions = [_function(flow, node, check) for check in given]
    checks = [_check(flow, node, fn) for fn in functions if fn is not None]
    if guard.on_violation == "sanitize":
        # One node for each check: the second must see what the first replaced, or its own replacement of
        # the same field would restore what the first removed.
        return tuple(_together([check], guard.on_violation) for check in checks)
    if any(c.is_async for c in checks) and any("ctx" in c.takes and not c.is_async for c in checks):
        flow.wrong("guard", "its guard mixes async checks with plain ones that take the context", node=node,
                   fix="make the checks that take ctx async")  # fmt: skip
    return (_together(checks, guard.on_violation),) if checks else ()


def _function(flow: Collector, node: str, check: Any) -> Check | None:
    """The function itself, or the function of a guardrail node."""
    fn = cast("NodeHandle[..., Any]", check).fn if isinstance(check, NodeHandle) else check
    if not callable(fn):
        flow.wrong("guard", f"the check {check!r} is not a function", node=node)
        return None
    return fn


def _check(flow: Collector, node: str, fn: Check) -> NodeHandler:
    return NodeHandler(
        fn=fn, is_async=is_coroutine(fn), takes=flow.takes_of(node, fn), code=code_fingerprint(fn)
    )


def _together(checks: list[NodeHandler], on_violation: str) -> NodeHandler:
    """One handler that runs the checks in order. With `warn` it reports all violations, else the first."""
    ask_all = on_violation == "warn"

    def ask(state: Any, ctx: Any = None) -> Any:
        found: list[Any] = []
        for check in checks:
            _note(found, call_plain(check.fn, *_args(check, state, ctx)))
            if found and not ask_all:
                break
        return _verdict(found, on_violation)

    async def ask_async(state: Any, ctx: Any = None) -> Any:
        found: list[Any] = []
        for check in checks:
            args = _args(check, state, ctx)
            _note(found, await call(check.fn, *args))
            if found and not ask_all:
                break
        return _verdict(found, on_violation)

    is_async = any(check.is_async for check in checks)
    with_context = any("ctx" in check.takes for check in checks)
    return NodeHandler(
        fn=ask_async if is_async else ask,
        is_async=is_async,
        takes=("state", "ctx") if with_context else ("state",),
        code=_code(checks),
    )


def _args(check: NodeHandler, state: Any, ctx: Any) -> list[Any]:
    return [ctx if name == "ctx" else state for name in check.takes]


def _note(found: list[Any], result: Any) -> None:
    if result is not None and result is not True:
        found.append(result)


def _verdict(found: list[Any], on_violation: str) -> Any:
    if not found:
        return None
    if len(found) > 1:
        return Violation("; ".join(to_violation(one).reason for one in found))
    violation = to_violation(found[0])
    if on_violation == "sanitize" and not violation.replace:
        # Continuing would let the rejected value pass.
        raise GuardrailError(f"{violation.reason}; the check gives no replacement")
    return violation


def _code(checks: list[NodeHandler]) -> str:
    if len(checks) == 1:
        return checks[0].code
    return "k1-" + sha256("\n".join(check.code for check in checks).encode()).hexdigest()[:24]
