"""Values by partition and key, and the sentinel for a missing value."""

from __future__ import annotations

from typing import Any, Final

import msgspec


class _Sentinel(msgspec.Struct, frozen=True):
    name: str

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Sentinel("missing")
DELETED: Final = _Sentinel("deleted")

Values = dict[str, dict[str, Any]]
"""Partition -> key -> value."""
