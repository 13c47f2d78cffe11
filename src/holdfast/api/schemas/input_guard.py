"""Input keys that a request may not set: how a pipeline is run is the operator's choice.

A run's input says where its files go, which gates are passed without asking and where its commands run. The
command line and programs may say so; a request may not, or a caller who may start runs could write anywhere
and decide everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.errors import InputError

OURS: Final = "internal."


def require_outside(given: Mapping[str, Any] | None) -> None:
    """Raises InputError for an input that names what only the engine may."""
    named = [key for key in given or () if key.startswith(OURS)]
    if named:
        raise InputError(
            f"the input names {named[0]!r}: keys that begin with {OURS} are the engine's own.",
            hint="Call it otherwise, or start the run where it is to run, with `holdfast run`.",
        )
