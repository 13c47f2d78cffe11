"""Gates: how many runs may be under way at once, and how many may start in a while."""

from __future__ import annotations

import msgspec


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A run stands at one gate at most, and a gate may stand inside a wider one (`within`): a flow's gate
    inside nothing, the gate of one key inside its flow's. A run is taken only where every gate is open."""

    name: str
    concurrency: int | None = None  # runs with a lease
    rate: int | None = None  # runs that start within `per`
    per: int = 0  # microseconds
    within: str | None = None
    fixed: bool = False  # by an operator: what flows declare does not change it
    updated_at: int = 0
