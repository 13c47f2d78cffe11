"""AES-256-GCM around what a store keeps. The key's name stands in the header, so that keys can rotate.

    0xc1 "HF"     never the first bytes of text, JSON, MessagePack or an envelope of ours
    1 byte        the form of this header: 1
    1 + n bytes   the key's id
    2 + n bytes   the tenant
    4 bytes       a check of the key: another key under the same id is noticed as such
    12 bytes      a nonce, random each time
    the rest      ciphertext and tag

The data key is derived for that tenant alone. The place of the bytes (record 7 of run R, the
blob at address A) is authenticated with them: a ciphertext that was moved elsewhere does not open.
"""

from __future__ import annotations

import hmac
import os
from base64 import b64decode, b64encode
from functools import lru_cache
from typing import Any, Final

import msgspec

from holdfast.checkpoint.keys import Key, KeyRing
from holdfast.errors import CheckpointCorruptError, KeyMissingError, SchemaTooNewError, SettingsError
from holdfast.types.ciphertext import MAGIC, TEXT_PREFIX

_FORM: Final = 1
_NONCE: Final = 12
_CHECK: Final = 4
_TAG: Final = 16


class EncryptionHeader(msgspec.Struct, frozen=True):
    key: str
    tenant: str
    check: bytes
    nonce: bytes
    end: int


class _Data(msgspec.Struct, frozen=True):
    """What a tenant's data is encrypted with under one key."""

    cipher: Any
    head: bytes
    check: bytes


def encrypt(plain: bytes, key: Key, tenant: str, place: bytes) -> bytes:
    data = _data(key.id, key.secret, tenant)
    # Random, not counted: many processes use the same key, and a nonce that is used twice breaks GCM.
    nonce = os.urandom(_NONCE)
    return data.head + nonce + data.cipher.encrypt(nonce, plain, place)


def decrypt(data: bytes, ring: KeyRing | None, place: bytes) -> bytes:
    """Raises KeyMissingError, naming the key; CheckpointCorruptError for bytes that were changed or moved."""
    head = header_of(data)
    key = None if ring is None else ring.find(head.tenant, head.key)
    if key is None:
        raise _missing(head, "is missing")
    found = _data(key.id, key.secret, head.tenant)
    # Checked apart from the tag: a wrong key is fixed by its owner, changed bytes need a backup.
    if not hmac.compare_digest(found.check, head.check):
        raise _missing(head, "is not the one that this was encrypted with")
    try:
        return found.cipher.decrypt(head.nonce, data[head.end :], place)
    except _invalid_tag():
        raise CheckpointCorruptError(
            f"the data encrypted under key {head.key!r} cannot be decrypted: it was altered or moved.",
            hint="Holdfast left it as it is. Restore it from a backup.",
            key=head.key,
        ) from None


def header_of(data: bytes) -> EncryptionHeader:
    """What can be read without a key."""
    try:
        if data[3] > _FORM:
            raise SchemaTooNewError(
                f"an encrypted value has form {data[3]}, and this Holdfast reads forms up to {_FORM}.",
                hint="Upgrade Holdfast on this machine.",
            )
        at = 5 + data[4]
        key = data[5:at].decode()
        tenant_end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        tenant = data[at + 2 : tenant_end].decode()
        end = tenant_end + _CHECK + _NONCE
        if len(data) < end + _TAG:
            raise IndexError
    except (IndexError, UnicodeDecodeError):
        raise CheckpointCorruptError(
            "an encrypted value is cut off.", hint="Restore it from a backup."
        ) from None
    return EncryptionHeader(
        key, tenant, data[tenant_end : tenant_end + _CHECK], data[end - _NONCE : end], end
    )


def place_of(*parts: str | int | bytes) -> bytes:
    """Identifies where bytes belong, unambiguously."""
    # Encoded, not joined: with a separator, two different places could give the same bytes.
    return msgspec.msgpack.encode(parts)


def encrypt_text(plain: str, key: Key, tenant: str, place: bytes) -> str:
    return (
        TEXT_PREFIX + b64encode(encrypt(plain.encode("utf-8", "surrogatepass"), key, tenant, place)).decode()
    )


def decrypt_text(text: str, ring: KeyRing | None, place: bytes) -> str:
    return decrypt(bytes_of_text(text), ring, place).decode("utf-8", "surrogatepass")


def bytes_of_text(text: str) -> bytes:
    try:
        return b64decode(text[len(TEXT_PREFIX) :], validate=True)
    except ValueError:
        raise CheckpointCorruptError(
            "an encrypted text was changed.", hint="Restore it from a backup."
        ) from None


def keyed_digest(secret: bytes, what: str, tenant: str, content: bytes) -> bytes:
    """An HMAC: only with the secret can equal content be recognised."""
    scope = hmac.digest(secret, f"holdfast {what} 1\0{tenant}".encode(), "sha256")
    return hmac.digest(scope, content, "sha256")


@lru_cache(maxsize=1024)
def _data(key_id: str, secret: bytes, tenant: str) -> _Data:
    name, whose = key_id.encode(), tenant.encode("utf-8", "surrogatepass")
    data_key = hmac.digest(secret, b"holdfast data 1\0" + whose, "sha256")
    check = hmac.digest(data_key, b"holdfast check 1", "sha256")[:_CHECK]
    head = MAGIC + bytes([_FORM, len(name)]) + name + len(whose).to_bytes(2, "big") + whose + check
    return _Data(_aead(data_key), head, check)


def _aead(data_key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise SettingsError(
            "keys are given, but the encryption library is not installed.",
            hint="Install the extra `encryption`: pip install 'holdfast-flow[encryption]'.",
        ) from None
    return AESGCM(data_key)


def _invalid_tag() -> type[Exception]:
    from cryptography.exceptions import InvalidTag

    return InvalidTag


def _missing(head: EncryptionHeader, what: str) -> KeyMissingError:
    return KeyMissingError(
        f"the key {head.key!r} of tenant {head.tenant!r} {what}.",
        hint="Nothing is lost: put that key back into the key file (HOLDFAST_KEYS) and try again.",
        key=head.key,
        tenant=head.tenant,
    )
