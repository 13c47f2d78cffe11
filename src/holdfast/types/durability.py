"""How durable acknowledged writes are: settings that weaken durability, and the servers that have a copy."""

from __future__ import annotations

import msgspec


class Standby(msgspec.Struct, frozen=True, kw_only=True):
    """A replica of the database server. What the database user may not see is None."""

    name: str
    state: str | None
    sync: str | None  # async, potential, sync, quorum
    lag_bytes: int | None
    lag: int | None  # microseconds until its last flush


class Durability(msgspec.Struct, frozen=True, kw_only=True):
    weak: list[str] = []  # settings that weaken the promise, each with what can be lost
    standbys: list[Standby] | None = None  # None: the store has no servers
    waits_for: str = ""  # the standbys that a commit waits for, as configured on the server
    hidden: bool = False  # the database user may not see the state of the standbys
