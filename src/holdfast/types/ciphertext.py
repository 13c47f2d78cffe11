"""How a store that cannot decrypt recognises encrypted bytes and texts."""

from __future__ import annotations

from typing import Any, Final

import msgspec

MAGIC: Final = b"\xc1HF"
"""No text, JSON, MessagePack or Holdfast envelope begins with these bytes."""

TEXT_PREFIX: Final = "\ue0c1HF:"
"""Prefix of ciphertext in a text column: it begins with a private-use character, which ordinary text never
has."""


def is_encrypted(data: bytes | None) -> bool:
    return data is not None and data[:3] == MAGIC


def is_encrypted_text(text: str | None) -> bool:
    return text is not None and text.startswith(TEXT_PREFIX)


class StoredRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row with the columns that may be encrypted, as stored.

    `place` identifies the row within its run: a seq, an id, or an instant and a type.
    """

    row: int
    run: str
    tenant: str
    place: tuple[Any, ...]
    values: dict[str, Any]
