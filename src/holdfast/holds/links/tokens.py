"""Links to a hold: signed tokens with a recipient, a purpose and an expiry.

    v1.<payload>.<HMAC-SHA256 over "v1.<payload>">

The token is signed, not the URL that contains it: a proxy may rewrite that. A link proves access to a
mailbox, not an identity; what it may be used for is set by the hold (`strength_of`).
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
# A forwarded or archived mail must not stay a way in for ever.
LIFETIME: Final = 7 * 86_400  # seconds, unless the hold's deadline is earlier
LONGEST: Final = 4096
SECRET_SIZE: Final = 32

PURPOSES: Final = ("view", "decide", "reply")


# The id travels in the token, so that keys can be rotated: the reader knows which key to check with.
class LinkKey(msgspec.Struct, frozen=True):
    """A secret that signs links, and its id, which tokens contain."""

    id: str
    secret: bytes

    # Without the secret: keys appear in tracebacks and logs through their repr.
    def __repr__(self) -> str:
        return f"LinkKey({self.id!r})"


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a token. `to`: its recipient; `by`: who made and saw it, empty: the server, which sends
    it; `epoch`: of the assignment it was made for; `jti`: its id, used up with the decision; times are
    seconds since the epoch."""

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
    by: tuple[str, ...] = ()


class LinkGrant(msgspec.Struct, frozen=True, kw_only=True):
    """What a new link allows. `decisions`: empty means every option of the hold. `by`: the people who get to
    see it before its recipient does; empty: the server sends it to the recipient's address."""

    to: str
    purpose: str = "view"
    decisions: tuple[str, ...] | None = None
    lifetime: int = LIFETIME
    by: tuple[str, ...] = ()


def mint(row: HoldRow, grant: LinkGrant, key: LinkKey, now: int) -> str:
    """A token for one person and one purpose, which expires with the hold's deadline at the latest. Raises
    InputError for an unknown purpose."""
    if grant.purpose not in PURPOSES:
        raise InputError(
            f"the purpose of a link must be one of {', '.join(PURPOSES)}, not {grant.purpose!r}."
        )
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
        by=grant.by,
    )
    signed = f"{VERSION}.{_text(msgspec.json.encode(claims))}"
    return f"{signed}.{_text(_mac(key, signed))}"


def _end(row: HoldRow, wanted: int) -> int:
    return wanted if row.expires_at is None else min(wanted, row.expires_at // MICROS)


def claimed_tenant(token: str) -> str:
    """The tenant that the token names, to find its keys; not verified yet. Raises LinkInvalidError,
    InputError if it is not text."""
    # The tenant is read before the signature is checked because keys are kept by tenant. A forged tenant
    # only selects keys that do not fit.
    require_text(token, "a link")
    return _claims(token.rpartition(".")[0].partition(".")[2]).tenant


def read(token: str, keys: Sequence[LinkKey], now: int) -> Claims:
    """The token's claims, if its signature is valid and it has not expired. Raises LinkInvalidError, which
    gives an honest user a hint and an attacker no information."""
    signed, _, given = token.rpartition(".")
    version, _, payload = signed.partition(".")
    if version != VERSION:
        raise _forged()
    claims = _claims(payload)
    key = next((key for key in keys if key.id == claims.key), None)
    # An unknown key is compared as well, so that the timing does not reveal which keys exist.
    expected = _mac(key or LinkKey("", bytes(SECRET_SIZE)), signed)
    if not hmac.compare_digest(expected, _bytes(given)) or key is None:
        raise _forged()
    # After the signature: only the holder of a genuine link learns that it has expired.
    if claims.exp <= now // MICROS:
        raise LinkInvalidError(
            "this link has expired.", hint="Ask for a new one, or sign in.", reason="too_old"
        )
    return claims


def _forged() -> LinkInvalidError:
    return LinkInvalidError(
        "this link is not valid.", hint="Open the complete link from the message.", reason="forged"
    )


def _claims(payload: str) -> Claims:
    # Before decoding: the payload is not verified yet, and its size is the sender's choice.
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
    """Accepts only the canonical spelling: another spelling of the same bytes would be a second token."""
    try:
        raw = urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}")
    except (NotBase64, ValueError):
        raise _forged() from None
    if _text(raw) != text:
        raise _forged()
    return raw


# ---------------------------------------------------------------------- what a link allows


def strength_of(row: HoldRow) -> str:
    """The hold's `links` setting; without one, important holds require signing in."""
    # The author's setting counts for every priority; only a hold without one falls back to signing in.
    if row.terms.links is not None:
        return row.terms.links
    return "login_required" if row.priority in ("high", "critical") else "decide_low_risk"


# ---------------------------------------------------------------------- keys


def new_key() -> LinkKey:
    return LinkKey(os.urandom(4).hex(), os.urandom(SECRET_SIZE))


def keys_from_environment(text: str | None = None) -> tuple[LinkKey, ...]:
    """HOLDFAST_LINK_KEYS: `ID:SECRET`, the secret in base64; several with commas between. The first one
    signs, all are valid: to rotate, add a new one in front and remove the last when its links have
    expired."""
    given = os.environ.get(VARIABLE, "") if text is None else text
    return tuple(_key_of(part.strip(), place) for place, part in enumerate(given.split(",")) if part.strip())


def _key_of(part: str, place: int) -> LinkKey:
    name, _, secret = part.partition(":")
    try:
        raw = b64decode(secret, validate=True)
    except (NotBase64, ValueError):
        raw = b""
    if not name or len(raw) < SECRET_SIZE:
        # The text is not shown: it may be most of a secret.
        raise SettingsError(
            f"key {place + 1} of {VARIABLE} is not ID:SECRET with at least {SECRET_SIZE} bytes in base64.",
            hint="`holdfast links new-key` makes one.",
        )
    # From here on the secret is masked in logs and in output, also if an error text contains it.
    redactor.learn_for(None, secret)
    return LinkKey(name, raw)


def key_text(key: LinkKey) -> str:
    """As it is written in the variable."""
    return f"{key.id}:{b64encode(key.secret).decode()}"
