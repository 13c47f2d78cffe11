"""A lease: the right of one worker to advance one run, until it expires or another has a newer term."""

from __future__ import annotations

import msgspec

from holdfast.types.ids import RunId


class Lease(msgspec.Struct, frozen=True):
    """The right of one worker to advance one run. `key` is the store's internal number of the run."""

    run: RunId
    key: int
    term: int
    worker: str
