"""What a settled step changed in the state, as its node saw it."""

from __future__ import annotations

from typing import Any

from holdfast.checkpoint.diff import MISSING, changes, some
from holdfast.errors import CheckpointCorruptError
from holdfast.model.frames import FrameTree
from holdfast.model.graph import Graph
from holdfast.model.position import Position, find_exec
from holdfast.model.values import MISSING as NOT_THERE
from holdfast.runs.history.story import Alteration
from holdfast.types.record import Op, Record

PARTS = 50
_NAMES = {"scratch": "state"}


def alterations(graph: Graph, pos: Position | None, record: Record, ops: list[Op]) -> list[Alteration]:
    """`pos` is where the run stood before the record; without it what was there before is not told."""
    tree, frame = _seen(graph, pos, record)
    return [_altered(*op, _before(tree, frame, op)) for op in ops]


def _seen(graph: Graph, pos: Position | None, record: Record) -> tuple[FrameTree | None, int]:
    if pos is None:
        return None, 0
    try:
        return pos.scopes[record.scope].tree, find_exec(graph, pos, record).frame
    except (CheckpointCorruptError, KeyError):
        return None, 0


def _before(tree: FrameTree | None, frame: int, op: Op) -> Any:
    old = NOT_THERE if tree is None else tree.read(frame, op[0], op[1])
    return MISSING if old is NOT_THERE else old


def _altered(partition: str, key: str, op: str, operand: Any, before: Any) -> Alteration:
    path = f"{_NAMES.get(partition, partition)}.{key}"
    if op == "delete":
        return Alteration(path=path, op=op, before=before)
    if op != "set" or before is MISSING:
        # A reducer's operand is what is stored, and what a reader wants: the two items that were added.
        return Alteration(path=path, op=op, after=operand)
    parts = some(changes(before, operand, path), PARTS).shown
    inner = tuple(parts) if any(part.path != path for part in parts) else ()
    return Alteration(path=path, op=op, before=before, after=operand, parts=inner)
