"""How safe what a store acknowledged is: settings that weaken it, and the servers that have a copy."""

from __future__ import annotations

import msgspec


class Standby(msgspec.Struct, frozen=True, kw_only=True):
    """A server that follows. What is not known (to a user without the right to see it) is None."""

    name: str
    state: str | None
    sync: str | None  # async, potential, sync, quorum
    lag_bytes: int | None
    lag: int | None  # microseconds that the last flush there took


class Durability(msgspec.Struct, frozen=True, kw_only=True):
    weak: list[str] = []  # settings that weaken the promise, each with what can be lost
    standbys: list[Standby] | None = None  # None: a store that has no servers
    waits_for: str = ""  # the standbys that a commit waits for, as the server is told
    hidden: bool = False  # this user may not see how the standbys are
