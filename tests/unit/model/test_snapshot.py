"""The snapshot of a position."""

from __future__ import annotations

from holdfast.model.position import Exec, Position, new_scope
from holdfast.model.snapshot import dump_position
from tests.operations import operations

ITEMS = 1_000


def test_plain_values_cost_one_call_each() -> None:
    """Each test of a type costs microseconds in the workflow of a cluster, which must be quick."""
    pos = Position(run="r")
    pos.scopes[""] = new_scope("", "", {"input": {}, "scratch": {}})
    pos.execs["", 0] = Exec(scope="", node=0, frame=0, visit=1, seq=0, items=[None] * ITEMS)
    assert operations(lambda: dump_position(pos)) < ITEMS + 500
