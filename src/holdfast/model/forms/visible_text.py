"""Shows invisible characters, and those that reverse text, by their number: an approver must see exactly what
is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

_UNSEEN = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
    # Joiners are part of some scripts and of emoji; between plain letters they can only hide something.
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)


def show_invisible(value: Any) -> Any:
    """Applied to every text in a JSON value; other values are unchanged."""
    if isinstance(value, str):
        return value if value.isascii() else _UNSEEN.sub(_number, value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {
            show_invisible(name) if isinstance(name, str) else name: show_invisible(inner)
            for name, inner in pairs
        }
    if isinstance(value, (list, tuple)):
        return [show_invisible(inner) for inner in cast("list[Any]", value)]
    return value


def _number(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
