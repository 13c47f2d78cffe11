"""A checkpoint as a database shows it to whoever asks in SQL."""

from __future__ import annotations

import msgspec

from holdfast.types.ids import RunId


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """`completed` is a list of node ids; it and the others are JSON. `output`: of the end of a run."""

    run: RunId
    seq: int
    checkpoint: str
    completed: str
    node_states: str | None = None
    original_input: str | None = None
    output: str | None = None
