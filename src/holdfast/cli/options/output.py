"""How a command prints its result."""

from __future__ import annotations

import msgspec


class OutputOptions(msgspec.Struct, frozen=True):
    """How a command shows what happens."""

    store: str | None
    watch: bool
    json: bool
