"""Files of an answer: references to content that is kept elsewhere, with caps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from holdfast.holds.forms.misfit import Misfit

MAX_FILE: Final = 25 * 2**20
_SHA256 = re.compile(r"[0-9a-f]{64}")


def read_file(field: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """A reference to content that is stored already, with the hash that the decision records."""
    if not isinstance(value, Mapping):
        raise Misfit("type", "is not a reference to a file")
    parts = cast("Mapping[str, Any]", value)
    if set(parts) != {"sha256", "size", "name", "media_type"}:
        raise Misfit("type", "a file has sha256, size, name and media_type, nothing else")
    digest, size, name, media = (parts[each] for each in ("sha256", "size", "name", "media_type"))
    if not isinstance(digest, str) or _SHA256.fullmatch(digest) is None:
        raise Misfit("format", "its sha256 is not 64 hexadecimal digits")
    if type(size) is not int or not 0 <= size <= min(field.get("max_size", MAX_FILE), MAX_FILE):
        raise Misfit("size", f"is larger than {min(field.get('max_size', MAX_FILE), MAX_FILE):,} bytes")
    if (
        not isinstance(name, str)
        or not re.fullmatch(r"[^/\\\x00-\x1f\x7f]{1,255}", name)
        or name in (".", "..")
    ):
        raise Misfit("format", "its name is not a plain file name")
    if not isinstance(media, str) or not _accepted(media, field.get("accept")):
        raise Misfit("media_type", f"is of type {str(media)[:100]!r}, which is not accepted")
    return dict(parts)


def _accepted(media: str, wanted: Any) -> bool:
    return not wanted or any(
        media == each or (each.endswith("/*") and media.startswith(each[:-1])) for each in wanted
    )
