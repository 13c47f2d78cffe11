"""How a command prints its result."""

from __future__ import annotations

import msgspec


class OutputOptions(msgspec.Struct, frozen=True):
    """How a command prints progress and result; `engine`: of the instance that it opens."""

    store: str | None
    watch: bool
    json: bool
    engine: str | None = None
