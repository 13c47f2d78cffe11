"""Old envelopes, converted one version at a time.

A change that only adds fields with defaults at the end of a body needs no new version. Any other change adds
one: raise `VERSION`, add the step from the previous version to `UPCASTS`, and write its golden files
(`tools/golden.py`). A released entry is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

VERSION: Final = 1

Upcast = Callable[[str, Any], Any]
"""(name of the body's type, the body of version n as plain data) -> the same of version n + 1."""

UPCASTS: Final[Mapping[int, Upcast]] = {}


def upcast(
    body: str, raw: Any, version: int, table: Mapping[int, Upcast] = UPCASTS, goal: int = VERSION
) -> Any:
    """`raw`, as it was written under `version`, in the form of `goal`."""
    for step in range(version, goal):
        raw = table[step](body, raw)
    return raw
