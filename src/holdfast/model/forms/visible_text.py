"""Shows invisible characters, and those that reverse text, by their number: an approver must see exactly what
is there."""

from __future__ import annotations

import json
import re
from typing import Any, cast

# Marks above and below a letter. Languages have a few of them; thousands cover what is around them.
_MARKS = (
    "[\u0300-\u036f\u0483-\u0489\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
_UNSEEN = re.compile(
    # Format characters, fillers without a glyph, and variation selectors that only plain text could hide in.
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    # Joiners are part of some scripts and of emoji; between plain letters they can only hide something.
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
    f"|(?<={_MARKS}{{8}}){_MARKS}"
)


# Shown and not removed: a person who decides should see that a text contains them.
_CONTROLS: dict[int, int | str] = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"},
    **{code: f"\\x{code:02x}" for code in range(0x7F, 0xA0)},
    **{code: f"\\u{code:04x}" for code in (0x2028, 0x2029)},
}


_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_SIGNS = {code: sign if isinstance(sign, int) else _UNKNOWN for code, sign in _CONTROLS.items()}


def for_terminal(text: str) -> str:
    """Also without control characters, which make a terminal move or recolour what it shows."""
    return show_invisible(text).translate(_CONTROLS)


def signs_for_terminal(text: str) -> str:
    """The same, with one sign for each character: for a line in which a cursor moves."""
    seen = text if text.isascii() else _UNSEEN.sub(_UNKNOWN, text)
    return seen.translate(_SIGNS)


def show_invisible(value: Any) -> Any:
    """Applied to every text in a JSON value; other values are unchanged."""
    if isinstance(value, str):
        return value if value.isascii() else _UNSEEN.sub(_number, value)
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return {
            show_invisible(name) if isinstance(name, str) else name: show_invisible(inner)
            for name, inner in pairs
        }
    if isinstance(value, (list, tuple)):
        return [show_invisible(inner) for inner in cast("list[Any]", value)]
    return value


def hides(value: Any) -> bool:
    """Whether a text has characters that are not visible."""
    return isinstance(value, str) and not value.isascii() and _UNSEEN.search(value) is not None


def escape_invisible(text: str) -> str:
    """The same JSON document, with these characters as JSON escapes."""
    return text if text.isascii() else _UNSEEN.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def _number(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
