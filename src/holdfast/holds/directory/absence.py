"""Absence: while a person is away, another one acts as the substitute."""

from __future__ import annotations

import msgspec


class Away(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Away from `since` to before `until` (microseconds; none: open). `substitute` acts then. `made_by`:
    who set it through a server, with everyone in the chain of their credential; empty: an operator with the
    store."""

    substitute: str
    since: int | None = None
    until: int | None = None
    made_by: tuple[str, ...] = ()

    def is_active(self, now: int) -> bool:
        return (self.since is None or self.since <= now) and (self.until is None or now < self.until)
