"""Questions to people: a hold is opened by a record of its own, and closed when nobody needs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.engine import failures, holds__opening
from holdfast.engine.decision import Decision, node_of
from holdfast.errors import ExpressionError
from holdfast.model.apply import apply_record
from holdfast.model.graph import HoldSpec, Node
from holdfast.model.paths import hiding, resolver
from holdfast.model.pinned_skills import with_pins
from holdfast.model.position import Exec, Position
from holdfast.model.record_bodies import ErrorInfo
from holdfast.types.hold import HoldClosed, Option
from holdfast.types.ids import HoldId, derived_id
from holdfast.types.record import Kind, Side
from holdfast.types.status import HoldStatus

DOUBT_OPTIONS = (
    Option("happened", "It happened", "primary"),
    Option("not_happened", "It did not happen: run it again", "secondary"),
    Option("fail", "Give up: fail the node", "danger"),
)
# What a person may say of an effect that happened: the update of its node, or the value of its step.
DOUBT_SCHEMA = {
    "type": ["object", "null"],
    "properties": {"update": {"type": ["object", "null"]}, "value": {}},
    "additionalProperties": False,
}
# Doubts and repeated questions take places of their own beside the questions of a node.
DOUBT = 1_000_000
AGAIN = 2_000_000


def ask(
    decision: Decision,
    execution: Exec | None,
    node: str,
    spec: HoldSpec,
    *,
    why: str,
    ordinal: int,
    prompt: str,
    context: dict[str, Any],
    code: str = "",
    warnings: Sequence[str] = (),
) -> None:
    """Open a hold by an `asked` record of its own; asking again finds the same id (D-28)."""
    scope, visit = (execution.scope, execution.visit) if execution else ("", 0)
    hold = HoldId(derived_id(decision.pos.run, scope, node, visit, why, ordinal))
    context = with_pins(context, decision.pos.skills)
    row = holds__opening.row_of(
        decision, execution, hold, node, spec, ordinal=ordinal, prompt=prompt, context=context
    )
    if warnings:
        # Of the row alone: the journal says what was asked, and that is the same without them.
        terms = msgspec.structs.replace(row.terms, warnings=tuple(warnings))
        row = msgspec.structs.replace(row, terms=terms)
    body = holds__opening.body_of(row, spec, context, why, code)
    record = decision.draft(
        Kind.asked, body, node=node, execution=execution, effect="human", listed=True, side=Side(holds=[row])
    )
    apply_record(decision.graph, decision.pos, record, body)


def ask_node(decision: Decision, execution: Exec, node: Node) -> None:
    """A hold node asks as soon as it starts: the question is stored before anybody waits (R-23)."""
    spec = node.hold or HoldSpec()
    resolve = resolver(decision.pos.scopes[execution.scope].tree, execution.frame)
    if decision.graph.secrets:
        resolve = hiding(resolve, decision.graph.secrets)
    try:
        shown = holds__opening.shown(spec, resolve)
        spec = holds__opening.filled_in(spec, resolve)
    except holds__opening.UnaskableError as fault:
        said = f"hold {node.id!r} cannot be asked: {fault}"
        error = ErrorInfo(ExpressionError.code, ExpressionError.__name__, said)
        failures.give_up(decision, execution, error)
        return
    ask(
        decision,
        execution,
        node.id,
        spec,
        why="node:",
        ordinal=execution.attempt - 1,
        prompt=shown.prompt,
        context=shown.context,
        warnings=[*shown.warnings, *holds__opening.warnings_of(spec)],
    )


def ask_inside(
    decision: Decision,
    execution: Exec,
    key: str,
    ordinal: int,
    spec: HoldSpec,
    context: dict[str, Any],
    code: str,
) -> None:
    """A question in the middle of a node (`ctx.ask`). One whose hold was closed unanswered is asked anew."""
    node = node_of(decision.graph, decision.pos, execution)
    if key in execution.subs or (decision.graph.dialect and execution.attempt > 1):
        ordinal = AGAIN + decision.pos.head
    ask(
        decision,
        execution,
        node.id,
        spec,
        why=f"ask:{key}",
        ordinal=ordinal,
        prompt=spec.prompt,
        context=context,
        code=code,
    )


def ask_doubt(decision: Decision, execution: Exec, error: ErrorInfo | None, *, substep: str = "") -> None:
    """Did it happen? Only a person can know; the intent's facts are shown with the question."""
    pos = decision.pos
    node = node_of(decision.graph, pos, execution)
    step = execution.step_names.get(substep, substep)
    what = f"step {step!r} of node {node.id!r}" if substep else f"node {node.id!r}"
    said = f" It reported: {error.type}: {error.message}" if error is not None else ""
    prompt = f"Did {what} take effect? It started, and how it ended is not known.{said}"
    context = {
        "node": node.id,
        "step": step or None,
        "effect": str(node.effect),
        "visit": execution.visit,
        "attempt": execution.attempt,
        "intent": execution.step_intents.get(substep, -1) if substep else execution.intent,
        "error": None if error is None else {"type": error.type, "message": error.message},
    }
    spec = HoldSpec(
        type="in_doubt", prompt=prompt, options=DOUBT_OPTIONS, priority="high", schema=DOUBT_SCHEMA
    )
    why = f"doubt_step:{substep}" if substep else "doubt:"
    ask(decision, execution, node.id, spec, why=why, ordinal=DOUBT + pos.head, prompt=prompt, context=context)


def close_holds(pos: Position, execution: Exec, side: Side, reason: str) -> None:
    for hold, waiting in pos.holds.items():
        if waiting.node == execution.node and waiting.scope == execution.scope:
            side.close_holds.append(HoldClosed(HoldId(hold), HoldStatus.cancelled, reason))
