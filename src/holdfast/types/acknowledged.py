"""What the store has acknowledged as durable for a run, to compare with a store that may have lost it."""

from __future__ import annotations

import msgspec

from holdfast.types.ids import HoldId, RunId


class AcknowledgedState(msgspec.Struct, frozen=True, kw_only=True):
    """The newest state of a run that a process knows. `term` and `at` are those of record `head`: together
    they distinguish it from another record that has the same number by now."""

    run: RunId
    head: int
    term: int
    at: int
    worker: str = ""  # that received the acknowledgement
    events: int = 0  # the number of the last acknowledged event
    mail: int = 0  # how many messages to the run were accepted
    hold: HoldId | None = None  # a question of the run that was changed or decided
    version: int = 0  # the version that the hold had then
