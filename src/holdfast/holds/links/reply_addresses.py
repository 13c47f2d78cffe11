"""Addresses to reply to: one for each message and reader, short enough for the local part of a mail address.

    reply+<48 letters>@in.example.com

The token is the hold's id, a day, and an HMAC over both and over what it was made for: the reader's address,
the assignment, and what was shown. It reveals nothing to a finder, and is valid only for the person it was
sent to. The hold's id is trusted only if the HMAC fits.
"""

from __future__ import annotations

import hmac
from base64 import b32decode, b32encode
from binascii import Error as NotBase32
from collections.abc import Sequence
from hashlib import sha256
from typing import Final
from uuid import UUID

import msgspec

from holdfast.errors import LinkInvalidError
from holdfast.holds.links.tokens import LinkKey
from holdfast.holds.permissions.assignees import person_key
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldRow

LENGTH: Final = 48
DAYS: Final = 8
"""For how many days, the first one included, an address can be replied to."""
_DAY: Final = 86_400 * MICROS
_MAC: Final = 12


class ReplyReference(msgspec.Struct, frozen=True):
    """The content of a token, not verified yet."""

    hold: str
    day: int
    mac: bytes


def mint_reply(row: HoldRow, address: str, key: LinkKey, now: int) -> str:
    day = now // _DAY
    raw = UUID(row.id).bytes + day.to_bytes(2, "big") + _mac(row, address, day, key)
    return b32encode(raw).decode().lower()


def reference_in(token: str) -> ReplyReference:
    """Raises LinkInvalidError if it is not a reply token."""
    try:
        raw = b32decode(token.upper()) if len(token) == LENGTH else b""
    except (NotBase32, ValueError):
        raw = b""
    if len(raw) != 18 + _MAC:
        raise _forged()
    return ReplyReference(str(UUID(bytes=raw[:16])), int.from_bytes(raw[16:18], "big"), raw[18:])


def require_reply(
    found: ReplyReference, row: HoldRow, sender: str, keys: Sequence[LinkKey], now: int
) -> None:
    """Raises LinkInvalidError if this address was not sent to this sender for the hold's present content, or
    has expired."""
    fits = [hmac.compare_digest(_mac(row, sender, found.day, key), found.mac) for key in keys]
    if not any(fits):
        raise _forged()
    if not found.day <= now // _DAY < found.day + DAYS:
        raise LinkInvalidError("this reply address has expired.", hint="Sign in to decide.", reason="too_old")


def _mac(row: HoldRow, address: str, day: int, key: LinkKey) -> bytes:
    parts = ("reply", row.id, row.tenant, row.epoch, row.request_hash, day, person_key(address))
    return hmac.digest(key.secret, msgspec.json.encode(parts), sha256)[:_MAC]


def _forged() -> LinkInvalidError:
    return LinkInvalidError(
        "this reply address is not valid for you and the present content of the question.",
        hint="Reply to the newest mail about it, from the address that received it.",
        reason="forged",
    )
