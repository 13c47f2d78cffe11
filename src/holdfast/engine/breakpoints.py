"""Breakpoints: the run pauses before a node, at each visit, until a person answers `continue`.

One mechanism for `breakpoint=True` in the graph and for breakpoints that were set when a run was started or
resumed: the node has started but does nothing before its `debug_breakpoint` hold is decided (ADR 11).
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.engine import end, holds, settle
from holdfast.engine.decision import Decision, node_of
from holdfast.engine.messages import BreakpointsSet, HoldAnswered
from holdfast.model.apply import apply_record
from holdfast.model.breakpoints import SUFFIX, TYPE, place_of
from holdfast.model.graph import HoldSpec
from holdfast.model.position import Exec
from holdfast.model.record_bodies import AttemptBody
from holdfast.types.hold import Option
from holdfast.types.record import Kind, Side

# A replay compares recorded questions with these: the labels stay as they are.
OPTIONS = (
    Option("continue", "Go on", "primary"),
    Option("abort", "Cancel the run", "danger"),
)


def is_at_breakpoint(decision: Decision, execution: Exec) -> bool:
    """Whether this execution has a breakpoint that was not continued yet."""
    pos = decision.pos
    if execution.passed or pos.breaks_off:
        return False
    node = node_of(decision.graph, pos, execution)
    return node.breakpoint or (bool(pos.breaks) and place_of(execution.scope, node.id) in pos.breaks)


def is_untouched(execution: Exec) -> bool:
    """Whether it has done nothing yet, so that it can still stop at a breakpoint."""
    return execution.intent < 0 and not (
        execution.subs or execution.step_intents or execution.emitted or execution.opened or execution.results
    )


def pause(decision: Decision, execution: Exec) -> None:
    node = node_of(decision.graph, decision.pos, execution)
    decision.starts = [started for started in decision.starts if started is not execution]
    again = f" (visit {execution.visit})" if execution.visit > 1 else ""
    prompt = f"Breakpoint before {place_of(execution.scope, node.id)}{again}"
    holds.ask(
        decision,
        execution,
        node.id + SUFFIX,
        HoldSpec(type=TYPE, prompt=prompt, options=OPTIONS, priority="low"),
        why=f"break:{node.id}",
        ordinal=execution.attempt - 1,
        prompt=prompt,
        context={"node": node.id, "scope": execution.scope, "visit": execution.visit},
    )


def apply_breakpoint_answer(decision: Decision, execution: Exec, message: HoldAnswered) -> None:
    """The answer is not written to the state (BP-7)."""
    node = node_of(decision.graph, decision.pos, execution)
    if message.resolution.get("decision") != "continue":
        end.cancel_run(decision, f"aborted at the breakpoint before {node.id!r}", message.inbox)
        return
    body = AttemptBody("continued", token=message.hold)
    side = Side(inbox_done=[message.inbox] if message.inbox else [])
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, side=side
    )
    apply_record(decision.graph, decision.pos, record, body)
    settle.start_exec(decision, execution)


def on_breakpoints_set(decision: Decision, message: BreakpointsSet) -> None:
    set_breaks(decision, message.breaks, off=message.off)


def set_breaks(decision: Decision, more: list[str], *, off: bool) -> None:
    """Add breakpoints; `off`: ignore all of them, also the flow's, until new ones are added."""
    pos = decision.pos
    breaks = [*pos.breaks, *(place for place in more if place not in pos.breaks)]
    off = off or (pos.breaks_off and not more)
    if (breaks, off) == (pos.breaks, pos.breaks_off):
        return
    kept: dict[str, Any] = {"breaks": breaks, "off": off}
    body = AttemptBody("breaks", token=msgspec.json.encode(kept).decode())
    record = decision.draft(Kind.attempt, body)
    apply_record(decision.graph, pos, record, body)
