"""How a server that was sent a secret may send it back: encoded for an address, a page, JSON or a header."""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Collection, Iterator
from typing import Any, Final, cast
from urllib.parse import quote, quote_plus

from holdfast.types.redaction import MASK, text_forms

_LEAST: Final = 8
"""Characters of a form that is only a part of its text in base64: fewer would mask other texts."""
_HEX: Final = re.compile("%[0-9A-F]{2}")


def echo_forms(secret: str) -> set[str]:
    raw = secret.encode(errors="surrogatepass")
    urls = [quote(raw, safe=""), quote(raw), quote_plus(raw), quote(raw, safe="!$&'()*+,/:;=?@")]
    lower = [_HEX.sub(lambda found: found[0].lower(), each) for each in urls]
    return {*text_forms(secret), *urls, *lower, *_base64(raw)}


def _base64(raw: bytes) -> Iterator[str]:
    """Alone, and behind other bytes as in `user:secret`, without the characters that have bits of both."""
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(raw).decode()
        for before in range(3):
            text = encode(b"\0" * before + raw).decode().rstrip("=")
            whole = text[-(-before * 8 // 6) : len(text) - (1 if (before + len(raw)) % 3 else 0)]
            if len(whole) >= _LEAST:
                yield whole


def mask_values(value: Any, forms: Collection[str]) -> Any:
    """Texts at any depth, keys too, without these; the longest first, since one may be a part of another."""
    return _masked(value, sorted(forms, key=len, reverse=True))


def _masked(value: Any, forms: list[str]) -> Any:
    if isinstance(value, str):
        for form in forms:
            value = value.replace(form, MASK)
        return value
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        return {_masked(key, forms): _masked(each, forms) for key, each in found.items()}
    if isinstance(value, list):
        return [_masked(each, forms) for each in cast("list[Any]", value)]
    return value
