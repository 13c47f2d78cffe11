"""What a move of a store tells: how far it is, what was compared, what it would do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from holdfast.store.copy import Held


class Step(msgspec.Struct, frozen=True):
    """How far it is: `done` of `total` rows; while workers are waited for, who they are."""

    phase: str
    table: str = ""
    done: int = 0
    total: int = 0
    held: Sequence[Held] = ()


Tell = Callable[[Step], None]


class Compared(msgspec.Struct, frozen=True):
    """One table: rows and hash, there and here."""

    table: str
    rows: int
    sha256: str
    arrived: int
    arrived_sha256: str

    @property
    def same(self) -> bool:
        return (self.rows, self.sha256) == (self.arrived, self.arrived_sha256)


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """What a move did. `already`: it was done before. `anew`: readers of the feed begin anew.
    `outside`: blobs whose bytes are in a blob store of the user's own, which both stores need."""

    source: str
    target: str
    tables: list[Compared] = []
    copied: int = 0
    seconds: float = 0.0
    already: bool = False
    anew: bool = False
    outside: int = 0


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What a move would do."""

    source: str
    target: str
    tables: dict[str, int]
    held: list[Held]
    state: str | None
