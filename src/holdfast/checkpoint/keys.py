"""Keys: one rotating key per tenant, in a ring that knows the older ones (D-38).

A key file is JSON, for the eyes of its owner only:

    {"form": 1, "scopes": {"*": {"address": SECRET, "current": ID, "keys": [{"id", "secret", "created_at"}]}}}

`*` serves every tenant that has no scope of its own. Whatever the scope, each tenant's data key is derived
for that tenant alone, so that no two tenants ever share one. `address` is what blobs are addressed under; it
stays the same when keys rotate.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

import msgspec

from holdfast.errors import SettingsError

EVERYBODY: Final = "*"
SECRET_SIZE: Final = 32
FORM: Final = 1
ENVIRONMENT: Final = "HOLDFAST_KEYS"


class Key(msgspec.Struct, frozen=True):
    """A secret of 32 bytes and the id by which encrypted data names it."""

    id: str
    secret: bytes

    def __repr__(self) -> str:
        # Without the secret: a key may end up in a log line or a traceback.
        return f"Key({self.id!r})"


class KeyRing(Protocol):
    """Where keys come from: a file, a secret manager, a key service. Calls must be quick: cache what you
    fetch."""

    def current(self, tenant: str) -> Key:
        """The key for new data of this tenant. Raises SettingsError if there is none."""
        ...

    def find(self, tenant: str, key_id: str) -> Key | None:
        """The key of this name, current or older."""
        ...

    def addresses(self, tenant: str) -> Sequence[bytes]:
        """Secrets for the addresses of blobs: the one for new blobs first. They outlive rotation."""
        ...


class KeyEntry(msgspec.Struct, frozen=True):
    id: str
    secret: str
    created_at: str = ""


class KeyScope(msgspec.Struct, frozen=True):
    address: str
    current: str
    keys: tuple[KeyEntry, ...]


class KeyFile(msgspec.Struct, frozen=True):
    form: int
    scopes: dict[str, KeyScope]


class StaticKeys:
    """A ring from a key file. Files are created and changed by `holdfast keys`, or by the functions below."""

    def __init__(self, file: KeyFile, source: str = "the key file") -> None:
        _check(file, source)
        self.file = file
        self.source = source
        self._keys = {
            (name, entry.id): Key(entry.id, b64decode(entry.secret))
            for name, scope in file.scopes.items()
            for entry in scope.keys
        }
        self._addresses = {name: b64decode(scope.address) for name, scope in file.scopes.items()}

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> StaticKeys:
        """Raises SettingsError for a file that does not exist or is not a key file."""
        try:
            raw = Path(path).read_bytes()
        except OSError as error:
            raise SettingsError(
                f"the key file {os.fspath(path)} cannot be read: {error.strerror}.",
                hint="`holdfast keys new` creates one; keep a copy of it in a safe place.",
            ) from error
        return cls.parse(raw, os.fspath(path))

    @classmethod
    def parse(cls, raw: bytes | str, source: str = "the keys") -> StaticKeys:
        try:
            return cls(msgspec.json.decode(raw, type=KeyFile), source)
        except msgspec.MsgspecError as error:
            raise SettingsError(
                f"{source} is not a key file: {str(error)[:1].lower()}{str(error)[1:]}.",
                hint="`holdfast keys new` creates one; restore this one from its copy if it is damaged.",
            ) from None

    def current(self, tenant: str) -> Key:
        scope = self.file.scopes.get(tenant) or self.file.scopes.get(EVERYBODY)
        if scope is None:
            raise SettingsError(
                f"{self.source} has no key for tenant {tenant!r}.",
                hint=f"Make one: holdfast keys new --tenant {tenant}.",
                tenant=tenant,
            )
        name = tenant if tenant in self.file.scopes else EVERYBODY
        return self._keys[name, scope.current]

    def find(self, tenant: str, key_id: str) -> Key | None:
        return self._keys.get((tenant, key_id)) or self._keys.get((EVERYBODY, key_id))

    def addresses(self, tenant: str) -> Sequence[bytes]:
        return [self._addresses[name] for name in (tenant, EVERYBODY) if name in self._addresses]


def _check(file: KeyFile, source: str) -> None:
    if file.form > FORM:
        raise SettingsError(
            f"{source} has form {file.form}, and this Holdfast reads forms up to {FORM}.",
            hint="Update Holdfast.",
        )
    for name, scope in file.scopes.items():
        secrets_of = {entry.id: entry.secret for entry in scope.keys}
        if scope.current not in secrets_of or len(secrets_of) != len(scope.keys):
            raise SettingsError(
                f"{source}: the current key of {name!r} is not among its keys, or one is twice."
            )
        for what, text in {**secrets_of, "address": scope.address}.items():
            if not _is_secret(text):
                raise SettingsError(f"{source}: {what!r} of {name!r} is not a secret of {SECRET_SIZE} bytes.")


def _is_secret(text: str) -> bool:
    try:
        return len(b64decode(text, validate=True)) == SECRET_SIZE
    except ValueError:
        return False


# ---------------------------------------------------------------------- making and changing


def new_scope(now: datetime) -> KeyScope:
    entry = new_entry(now)
    return KeyScope(_secret(), entry.id, (entry,))


def new_entry(now: datetime) -> KeyEntry:
    secret = _secret()
    # A new id for each secret, which shows its age to people.
    mark = sha256(b"holdfast key id\0" + b64decode(secret)).hexdigest()[:8]
    return KeyEntry(f"k{now:%Y%m%d}-{mark}", secret, f"{now:%Y-%m-%dT%H:%M:%SZ}")


def rotated(scope: KeyScope, now: datetime) -> KeyScope:
    """New data is encrypted with a new key; the older ones are kept for reading."""
    entry = new_entry(now)
    return KeyScope(scope.address, entry.id, (*scope.keys, entry))


def with_scope(file: KeyFile | None, name: str, scope: KeyScope) -> KeyFile:
    return KeyFile(FORM, {**(file.scopes if file else {}), name: scope})


def write_keys(path: Path, file: KeyFile) -> None:
    """Readable by its owner only; written completely or not at all."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    # The mode is given when it is created: with a chmod afterwards others could read it for a moment.
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n")
        out.flush()
        # Before the rename: a power cut must not leave an empty file under the name of the keys.
        os.fsync(out.fileno())
    fresh.replace(path)


def _secret() -> str:
    return b64encode(os.urandom(SECRET_SIZE)).decode()


def keys_from_environment() -> StaticKeys | None:
    """HOLDFAST_KEYS: the path of a key file, or its content."""
    given = os.environ.get(ENVIRONMENT)
    if not given:
        return None
    return StaticKeys.parse(given, ENVIRONMENT) if given.lstrip().startswith("{") else StaticKeys.read(given)
