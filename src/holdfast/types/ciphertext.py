"""How encrypted bytes and texts are told from others, by whoever keeps them and cannot read them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

MAGIC: Final = b"\xc1HF"
"""Never the first bytes of text, JSON, MessagePack or an envelope of ours."""

TEXT_PREFIX: Final = "\ue0c1HF:"
"""Before ciphertext in a column of text: a private character, with which no text of people begins."""


def is_encrypted(data: bytes | None) -> bool:
    return data is not None and data[:3] == MAGIC


def is_encrypted_text(text: str | None) -> bool:
    return text is not None and text.startswith(TEXT_PREFIX)


class StoredRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row with the columns that encryption is about, as they lie in the store.

    `place` is what the row is known by, apart from its run: a seq, an id, an instant and a type.
    """

    row: int
    run: str
    tenant: str
    place: tuple[Any, ...]
    values: dict[str, Any]
