"""What somebody was told to be durable of a run: held against a store that may have lost it."""

from __future__ import annotations

import msgspec

from holdfast.types.ids import HoldId, RunId


class AcknowledgedState(msgspec.Struct, frozen=True, kw_only=True):
    """The newest that a process knows of a run. `term` and `at` are those of record `head`: together they
    tell it from another record that has its number by now."""

    run: RunId
    head: int
    term: int
    at: int
    worker: str = ""  # who was told
    events: int = 0  # the number of the last event that was told
    mail: int = 0  # how many messages to the run were taken
    hold: HoldId | None = None  # a question of the run that was changed or decided
    version: int = 0  # and the version that it had then
