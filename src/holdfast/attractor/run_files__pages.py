"""The files of a run directory, one by one: what a stage's status is, how a checkpoint is put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.attractor.context import copied
from holdfast.attractor.outcome import Outcome
from holdfast.checkpoint.fold import Execution
from holdfast.model.events import graph_at
from holdfast.model.graph import Graph, WalkSpec
from holdfast.model.record_bodies import StepBody
from holdfast.types.outcome import FAIL
from holdfast.types.record import Record

TOLD = frozenset({"outcome", "preferred_label", "current_node", "failure_reason", "failure_class"})
"""Context keys that the walk itself keeps, and no stage's own updates."""
_INTERNAL = "internal."
PLAIN = WalkSpec()
encode = msgspec.json.encode


def own_updates(update: Mapping[str, Any]) -> dict[str, Any]:
    """What a stage changed in the context, as its status file has it."""
    return {k: copied(v) for k, v in update.items() if k not in TOLD and not k.startswith(_INTERNAL)}


class Page(msgspec.Struct, frozen=True):
    """A file. `by_stage`: whoever performs the stage writes it, before its record is made."""

    text: str
    by_stage: bool = False


def stage_outcome(graph: Graph, record: Record, body: StepBody) -> Outcome:
    """What a stage came to, as its handler said it."""
    node = graph_at(graph, record.scope).node_named(record.node)
    walk: Mapping[str, Any] = body.walk or {}
    passes_on = bool((node.walk or PLAIN).routing) or record.outcome == "skipped"
    notes: Any = body.notes or {}
    failed = record.outcome == FAIL and body.error is not None
    return Outcome(
        status=str(record.outcome),
        preferred_label="" if passes_on else str(walk.get("label", "")),
        suggested_next_ids=tuple(walk.get("suggested", ())),
        context_updates=own_updates({k: v for p, k, op, v in body.ops if p == "scratch" and op == "set"}),
        notes=str(notes.get("notes", "")),
        failure_reason=body.error.message if failed and body.error is not None else "",
    )


def brought_outcome(execution: Execution) -> Outcome | None:
    """Of a stage whose record is gone: as much as was kept of it; None where that is nothing."""
    output: Any = execution.output
    if not isinstance(output, Mapping) and execution.error is None:
        return None
    updates: Mapping[str, Any] = output if isinstance(output, Mapping) else {}  # type: ignore[assignment]
    reason = "" if execution.error is None else execution.error["message"]
    return Outcome(status=execution.outcome, context_updates=own_updates(updates), failure_reason=reason)


def listed(parts: list[bytes]) -> bytes:
    return b"[" + b", ".join(parts) + b"]"


def mapped(parts: Mapping[str, bytes], indent: str = "  ") -> bytes:
    """One key a line: a person can read it, and nothing is encoded twice."""
    if not parts:
        return b"{}"
    inner = (indent + "  ").encode()
    lines = (inner + encode(key) + b": " + text for key, text in parts.items())
    return b"{\n" + b",\n".join(lines) + b"\n" + indent.encode() + b"}"
