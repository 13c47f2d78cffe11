"""Input keys that a request may not set: how a pipeline is run is the operator's choice.

A pipeline's input sets where its files go, which gates are passed without asking and where its commands run.
The command line and programs may set that; a request may not, or a caller with the right to start runs could
write anywhere and pass every gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.errors import InputError

OURS: Final = "internal."


def require_outside(given: Mapping[str, Any] | None) -> None:
    """Raises InputError for an input with reserved keys."""
    named = [key for key in given or () if key.startswith(OURS)]
    if named:
        raise InputError(
            f"the input has the key {named[0]!r}: keys that start with {OURS} are reserved.",
            hint="Rename it, or start the run on its machine with `holdfast run`.",
        )
