"""Links to a hold: tokens that say for whom, what for and until when, and that nobody can change or make up.

    v1.<payload>.<HMAC-SHA256 over "v1.<payload>">

The token is signed, not the URL that it travels in: a proxy may rewrite that. A link proves that somebody has
the mailbox, not who they are; what it may be used for is the hold's policy (`strength_of`).
"""

from __future__ import annotations

import hmac
import os
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec

from holdfast.errors import InputError, LinkInvalidError, SettingsError
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldRow
from holdfast.types.redaction import redactor
from holdfast.types.text import require_text

VERSION: Final = "v1"
VARIABLE: Final = "HOLDFAST_LINK_KEYS"
LIFETIME: Final = 7 * 86_400  # seconds, where the hold has no deadline that comes before
LONGEST: Final = 4096
SECRET_SIZE: Final = 32

PURPOSES: Final = ("view", "decide", "reply")


class LinkKey(msgspec.Struct, frozen=True):
    """A secret to sign links with, and the name by which a token says which one it was."""

    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"LinkKey({self.id!r})"


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says. `to`: whose link it is; `epoch`: of the assignment it was made for; `jti`: its own
    name, used up with the decision; times are seconds since the epoch."""

    hold: str
    tenant: str
    to: str
    purpose: str
    decisions: tuple[str, ...] | None
    request_hash: str
    epoch: int
    iat: int
    exp: int
    jti: str
    key: str


class LinkGrant(msgspec.Struct, frozen=True, kw_only=True):
    """What a new link is for. `decisions`: none means every option that the hold has."""

    to: str
    purpose: str = "view"
    decisions: tuple[str, ...] | None = None
    lifetime: int = LIFETIME


def mint(row: HoldRow, grant: LinkGrant, key: LinkKey, now: int) -> str:
    """A token for one person and one purpose, that does not outlive the hold's deadline. Raises InputError
    for another purpose than there are."""
    if grant.purpose not in PURPOSES:
        raise InputError(f"a link is for one of {', '.join(PURPOSES)}, not for {grant.purpose!r}.")
    claims = Claims(
        hold=row.id,
        tenant=row.tenant,
        to=grant.to,
        purpose=grant.purpose,
        decisions=grant.decisions,
        request_hash=row.request_hash,
        epoch=row.epoch,
        iat=now // MICROS,
        exp=_end(row, now // MICROS + grant.lifetime),
        jti=_text(os.urandom(16)),
        key=key.id,
    )
    signed = f"{VERSION}.{_text(msgspec.json.encode(claims))}"
    return f"{signed}.{_text(_mac(key, signed))}"


def _end(row: HoldRow, wanted: int) -> int:
    return wanted if row.expires_at is None else min(wanted, row.expires_at // MICROS)


def claimed_tenant(token: str) -> str:
    """Whose link it says to be, to find the keys by: nothing is believed yet. Raises LinkInvalidError,
    InputError for what is no text."""
    require_text(token, "a link")
    return _claims(token.rpartition(".")[0].partition(".")[2]).tenant


def read(token: str, keys: Sequence[LinkKey], now: int) -> Claims:
    """What the token says, if it is one of ours and its time is not over. Raises LinkInvalidError, which
    tells an honest user what to do and a dishonest one nothing."""
    signed, _, given = token.rpartition(".")
    version, _, payload = signed.partition(".")
    if version != VERSION:
        raise _forged()
    claims = _claims(payload)
    key = next((key for key in keys if key.id == claims.key), None)
    # A key that is not there is compared all the same, so that its absence takes as long to find out.
    expected = _mac(key or LinkKey("", bytes(SECRET_SIZE)), signed)
    if not hmac.compare_digest(expected, _bytes(given)) or key is None:
        raise _forged()
    if claims.exp <= now // MICROS:
        raise LinkInvalidError(
            "this link is too old.", hint="Ask for a new one, or sign in.", reason="too_old"
        )
    return claims


def _forged() -> LinkInvalidError:
    return LinkInvalidError(
        "this is not a link that was made here.", hint="Open it as it was sent, whole.", reason="forged"
    )


def _claims(payload: str) -> Claims:
    if len(payload) > LONGEST:
        raise _forged()
    try:
        return msgspec.json.decode(_bytes(payload), type=Claims)
    except msgspec.MsgspecError:
        raise _forged() from None


def _mac(key: LinkKey, signed: str) -> bytes:
    return hmac.digest(key.secret, signed.encode(), sha256)


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    """Only the one spelling that we write ourselves: another one of the same bytes would be another token."""
    try:
        raw = urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}")
    except (NotBase64, ValueError):
        raise _forged() from None
    if _text(raw) != text:
        raise _forged()
    return raw


# ---------------------------------------------------------------------- what a link may do


def strength_of(row: HoldRow) -> str:
    """What the hold's author says; else people have to sign in for what is important."""
    if row.terms.links is not None:
        return row.terms.links
    return "login_required" if row.priority in ("high", "critical") else "decide_low_risk"


# ---------------------------------------------------------------------- keys


def new_key() -> LinkKey:
    return LinkKey(os.urandom(4).hex(), os.urandom(SECRET_SIZE))


def keys_from_environment(text: str | None = None) -> tuple[LinkKey, ...]:
    """HOLDFAST_LINK_KEYS: `ID:SECRET`, the secret in base64; several with commas between. The first one
    signs, all are believed: to rotate, put a new one in front and drop the last when its links are over."""
    given = os.environ.get(VARIABLE, "") if text is None else text
    return tuple(_key_of(part.strip(), place) for place, part in enumerate(given.split(",")) if part.strip())


def _key_of(part: str, place: int) -> LinkKey:
    name, _, secret = part.partition(":")
    try:
        raw = b64decode(secret, validate=True)
    except (NotBase64, ValueError):
        raw = b""
    if not name or len(raw) < SECRET_SIZE:
        # Not shown: it may be most of a secret.
        raise SettingsError(
            f"key {place + 1} of {VARIABLE} is not ID:SECRET with at least {SECRET_SIZE} bytes in base64.",
            hint="`holdfast links new-key` makes one.",
        )
    redactor.learn(secret)
    return LinkKey(name, raw)


def key_text(key: LinkKey) -> str:
    """As the variable has it."""
    return f"{key.id}:{b64encode(key.secret).decode()}"
