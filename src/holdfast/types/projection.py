"""A checkpoint as the SQL views of the store show it."""

from __future__ import annotations

import msgspec

from holdfast.types.ids import RunId


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """`completed` is a list of node ids; it and the other columns are JSON. `output`: the run's, at its
    end."""

    run: RunId
    seq: int
    checkpoint: str
    completed: str
    node_states: str | None = None
    original_input: str | None = None
    output: str | None = None
