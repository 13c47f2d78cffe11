"""What every place for large values can do, and the one that an address names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from hashlib import sha256
from typing import NamedTuple, Protocol, runtime_checkable

from holdfast.errors import SettingsError


def content_address(data: bytes) -> bytes:
    return sha256(data).digest()


class Objects(Protocol):
    """Where blobs are stored that are too large for a row. `get` raises BlobMissingError for a blob that does
    not exist, and only then: the run that names it fails. Any other error means that they are unavailable
    now; runs wait, and resume later."""

    async def put(self, digest: bytes, data: bytes) -> None: ...

    async def replace(self, digest: bytes, data: bytes) -> None: ...

    async def get(self, digest: bytes) -> bytes: ...

    async def delete(self, digest: bytes) -> None: ...


class ListedObjects(Objects, Protocol):
    """Objects that can say what they have: one suite tests them all."""

    async def has(self, digest: bytes) -> bool: ...

    def list(self) -> AsyncIterator[bytes]:
        """The digests that are stored, in any order."""
        ...


@runtime_checkable
class OrphanObjects(Protocol):
    """Objects in which garbage can be found that no row names any more."""

    def list_older(self, than: float) -> AsyncIterator[bytes]:
        """The digests of those that were written before `than` (seconds since 1970)."""
        ...


@runtime_checkable
class TenantObjects(Protocol):
    """Objects that keep each tenant apart."""

    def of(self, tenant: str) -> Objects: ...


@runtime_checkable
class OwnedObjects(Protocol):
    """Objects in a place that belongs to one store: garbage of one would be the values of another."""

    @property
    def owner(self) -> str | None: ...

    def set_owner(self, owner: str) -> None:
        """The identity of the store that writes here, before the first object is written."""
        ...

    async def take(self, owner: str) -> None:
        """Mark the place as that of the owner, if it is not. Raises BlobForbiddenError if it belongs to
        another store."""
        ...

    async def is_taken(self, owner: str | None) -> bool:
        """Whether the place is marked as that of the store; it writes nothing. `owner`: None: the store has
        no identity yet. Raises BlobForbiddenError if the place belongs to another store."""
        ...


@runtime_checkable
class BatchObjects(Protocol):
    async def delete_all(self, digests: Sequence[bytes]) -> None:
        """As `delete` of each, with fewer requests."""
        ...


class NamedObject(NamedTuple):
    tenant: str
    key: str


@runtime_checkable
class NamedObjects(Protocol):
    """Objects that may also have a name instead of a digest, for other programs to read. Those of one tenant;
    a key of another tenant is refused with BlobForbiddenError."""

    async def put_named(self, name: str, data: bytes) -> str:
        """Durable when it returns, with its key. An object of that name is replaced."""
        ...

    async def get_key(self, key: str) -> bytes: ...

    async def replace_key(self, key: str, data: bytes) -> None: ...

    async def delete_keys(self, keys: Sequence[str]) -> None:
        """Deleting an object that does not exist is not an error."""
        ...

    def list_named(self, folder: str, than: float) -> AsyncIterator[NamedObject]:
        """Those in a folder that were written before `than`; of all tenants, if they are bound to none."""
        ...


def open_blobs(address: str) -> Objects:
    """`file:FOLDER` or `s3://BUCKET/PREFIX?endpoint=...`. Raises SettingsError."""
    if address.startswith("s3://"):
        from holdfast.store.blob.s3 import open_s3

        return open_s3(address)
    if address.startswith("file:"):
        from holdfast.store.blob.local import LocalBlobs

        return LocalBlobs(address.removeprefix("file:"))
    raise SettingsError(
        "the address of the blob store begins with neither s3:// nor file:.",
        hint="Use s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION, or file:FOLDER.",
    )
