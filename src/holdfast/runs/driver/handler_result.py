"""Calls a handler and interprets its result."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, cast

from holdfast.engine.messages import HandlerFinished
from holdfast.errors import (
    GuardrailError,
    HoldfastError,
    InputError,
    RoutingError,
    StateError,
)
from holdfast.model.branch_deltas import Delta
from holdfast.model.frames import FrameTree
from holdfast.model.graph import Node
from holdfast.model.growing_lists import Segment
from holdfast.model.guardrails import to_violation
from holdfast.model.program import NodeHandler, Program, Router
from holdfast.model.record_bodies import HALTED, RETRY_ASKED, ErrorInfo
from holdfast.model.user_code.boundary import call_plain
from holdfast.model.user_code.threads import run_in_thread
from holdfast.runs.driver.flow_traceback import MAX_TRACEBACK, flow_traceback
from holdfast.types.outcome import FAIL, RETRY, Outcome
from holdfast.types.record import Op
from holdfast.types.text import clean_text, require_text
from holdfast.types.value import FrozenDict, freeze


def build_state(program: Program, tree: FrameTree, scratch: dict[str, Any]) -> Any:
    """The state of a loaded run: its long lists stay in the journal until the handler reads them."""
    absent = frozenset(key for key, value in scratch.items() if type(value) is Segment)
    if not absent:
        return program.schema.build(scratch)
    present = {key: value for key, value in scratch.items() if key not in absent}
    state = program.schema.build_lazily(present, absent, lambda key: tree.fill("scratch", key))
    if state is None:
        for key in absent:
            scratch[key] = tree.fill("scratch", key)
        state = program.schema.build(scratch)
    return state


def loaded_part(scratch: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in scratch.items() if type(value) is not Segment}


async def call(handler: NodeHandler | Router, given: dict[str, Any]) -> Any:
    args = [given[name] for name in handler.takes]
    if handler.is_async:
        # In the task of the node, whose boundary is `HandlerCall`.
        return await handler.fn(*args)
    return await run_in_thread(call_plain, handler.fn, *args)


def interpret_result(
    program: Program, node: Node, result: Any, scratch: dict[str, Any], artifacts: list[Op]
) -> tuple[list[Op], Any]:
    """What a handler returned: (changes of the state, output). A dict is an update; everything else is
    output. `artifacts`: what it has passed to `ctx.artifact`."""
    ops = artifacts
    if result is None:
        return ops, None
    if program.is_item and node.output_as is None:
        # The body of a map: what it returns is the item's result.
        return ops, freeze(result, program.adopt, f"the result of {node.id!r}")
    if isinstance(result, dict) and node.output_as is None:
        found = program.schema.ops(result, scratch)  # pyright: ignore[reportUnknownArgumentType]
        return found + ops if ops else found, None
    value = freeze(result, program.adopt, f"the output of {node.id!r}")
    if not ops:
        # An explicit artifact wins over the promotion of the output (G-12).
        name = node.output_as or node.id
        ops = [("artifacts", name, program.graph.spec.reducers.get(f"artifacts.{name}", "set"), value)]
        return ops, None
    return ops, value


def take_outcome(node: Node, outcome: Outcome, finished: HandlerFinished) -> Any:
    """Fill in what the handler's Outcome says; returns its update. It may report a failure itself."""
    where = f"of the Outcome of node {node.id!r}"
    # Declared types are the caller's promise; here they are checked.
    suggested, update = cast("Any", outcome.suggested), cast("Any", outcome.update)
    if isinstance(suggested, str) or not isinstance(suggested, Sequence):
        kind = type(outcome.suggested).__name__
        raise InputError(f"suggested {where} is a {kind}, not a list of node names.")
    if update is not None and not isinstance(update, Mapping):
        raise StateError(f"the update {where} is a {type(outcome.update).__name__}, not a mapping.")
    finished.outcome = require_text(outcome.status, f"the status {where}")
    finished.label = require_text(outcome.label, f"the label {where}")
    finished.suggested = tuple(require_text(name, f"a suggestion {where}") for name in outcome.suggested)
    if outcome.notes:
        finished.notes = FrozenDict({"notes": require_text(outcome.notes, f"the notes {where}")})
    if outcome.status == FAIL:
        reason = clean_text(outcome.reason) if outcome.reason else f"{node.id!r} reported a failure"
        code = HALTED if outcome.halts else "node_failed"
        finished.error = ErrorInfo(code, "NodeFailedError", reason)
        finished.retryable = node.retry.attempts > 1 and not (outcome.final or outcome.halts)
    elif outcome.status == RETRY:
        reason = clean_text(outcome.reason) if outcome.reason else f"{node.id!r} asks for another attempt"
        finished.error = ErrorInfo(RETRY_ASKED, "RetryAskedError", reason)
        finished.retryable = True
    return None if outcome.update is None else dict(outcome.update)


def fill_result(
    program: Program,
    node: Node,
    result: Any,
    finished: HandlerFinished,
    scratch: dict[str, Any],
    artifacts: list[Op],
) -> None:
    """What the handler of a node returned, as its end."""
    if node.guard is not None:
        judge_guardrail(program, node, result, finished, scratch)
        return
    if type(result) is Outcome:
        result = take_outcome(node, result, finished)
        if finished.error is not None and not program.graph.walk:
            return
        finished.reported = finished.error is not None
    finished.ops, finished.output = interpret_result(program, node, result, scratch, artifacts)


def judge_guardrail(
    program: Program, node: Node, result: Any, finished: HandlerFinished, scratch: dict[str, Any]
) -> None:
    """A guardrail passed, or was violated: block, reroute, warn or sanitize."""
    spec = node.guard
    assert spec is not None
    if result is None or result is True:
        finished.notes = FrozenDict({"guardrail": node.id, "passed": True})
        return
    violation = to_violation(result)
    reason, replace = clean_text(violation.reason), cast("Any", violation.replace)
    finished.notes = FrozenDict(
        {"guardrail": node.id, "passed": False, "action": spec.on_violation, "reason": reason}
    )
    if spec.on_violation == "block":
        finished.error = ErrorInfo(GuardrailError.code, "GuardrailError", reason)
        finished.outcome = "fail"
    elif spec.on_violation == "reroute":
        finished.reroute = spec.reroute
    elif spec.on_violation == "sanitize":
        if not replace:
            # Continuing with the rejected value would approve it without a decision.
            why = f"{reason} (and no replacement was given)"
            finished.error = ErrorInfo(GuardrailError.code, "GuardrailError", why)
            finished.outcome = "fail"
            return
        if not isinstance(replace, Mapping):
            raise StateError(
                f"the replacement of guardrail {node.id!r} is a {type(replace).__name__}, "
                "not a mapping of fields."
            )
        finished.ops = program.schema.ops(dict(cast("Mapping[str, Any]", replace)), scratch)


async def route(program: Program, node: Node, routers: list[Router], state: Any, ctx: Any) -> list[int]:
    """Let Python code choose among the node's edges; its choice is recorded (D-26)."""
    chosen: list[int] = []
    for router in routers:
        answer = await call(router, {"state": state, "ctx": ctx, "item": state})
        chosen += _edges(program, node, router, answer)
    return chosen


def _edges(program: Program, node: Node, router: Router, answer: Any) -> list[int]:
    if router.boolean:
        _require_boolean(node, router, answer)
        return [program.edge_index(e) for e in router.choices[True]] if answer else []
    many = isinstance(answer, (list, tuple, set, frozenset))
    answers = cast("Iterable[Any]", answer) if many else [answer]
    found: list[int] = []
    for one in answers:
        key = one if _known(router, one) else getattr(one, "id", one)
        if not _known(router, key):
            known = ", ".join(repr(choice) for choice in router.choices)
            raise RoutingError(
                f"the router of {node.id!r} chose {clean_text(repr(key), 200)}; it may choose {known}.",
                hint="Return one of them, or name it in `targets` of the router.",
            )
        found += [program.edge_index(e) for e in router.choices[key]]
    return sorted(set(found))


def _require_boolean(node: Node, router: Router, answer: Any) -> None:
    """Raises RoutingError. The text 'reject' is true, a coroutine is, and a function without `return` says
    no: none of these is an answer."""
    # Of numpy, too: `bool_`, and `bool` since its version 2.
    if type(answer).__name__ in ("bool", "bool_"):
        return
    shown = clean_text(repr(answer), 200)
    if isinstance(answer, Coroutine):
        cast("Coroutine[Any, Any, Any]", answer).close()
    raise RoutingError(
        f"the condition {' '.join(router.choices[True])!r} of {node.id!r} is a function that returned "
        f"{shown}, which is neither True nor False.",
        hint="Return the result of a comparison, such as s.decision == 'approve', or bool(...).",
    )


def _known(router: Router, choice: Any) -> bool:
    try:
        return choice in router.choices
    except TypeError:  # not hashable, so certainly not one of them
        return False


def preview(tree: FrameTree, frame: int, ops: list[Op]) -> dict[str, Any]:
    """Scratch as it will be after these operations; changes nothing."""
    seen = dict(tree.see(frame, "scratch"))
    trial = FrameTree.rooted({"scratch": seen, "aux": dict(tree.see(frame, "aux"))})
    # By the same code as the real settle: a router must see exactly what the next node will see.
    trial.settle(0, Delta(-1, 0, 0, 0, [op for op in ops if op[0] == "scratch"]))
    return trial.values["scratch"]


def describe(error: BaseException) -> ErrorInfo:
    code = error.code if isinstance(error, HoldfastError) else "node_failed"
    try:
        detail = flow_traceback(error)
    except Exception as broken:  # an error whose text cannot be read
        detail = f"no traceback: {type(broken).__name__}"
    return ErrorInfo(
        code, clean_text(type(error).__name__), clean_text(error), clean_text(detail, MAX_TRACEBACK)
    )
