"""Errors for invalid settings of a store."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import msgspec

_UNKNOWN = re.compile(r"Object contains unknown field (`[^`]*`)")


def settings_error(
    error: msgspec.ValidationError, where: str, known: Iterable[str], hint: str
) -> SettingsError:
    unknown = _UNKNOWN.match(str(error))
    if unknown is None:
        return SettingsError(f"Invalid setting for {where}: {error}.", hint=hint)
    names = ", ".join(known)
    return SettingsError(f"Unknown setting {unknown[1]} for {where}. Known: {names}.", hint=hint)
