"""What every place for large values can do, and the one that an address names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Protocol, runtime_checkable

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


def open_blobs(address: str) -> Objects:
    """`file:FOLDER` or `s3://BUCKET/PREFIX?endpoint=...`. Raises SettingsError."""
    if address.startswith("s3://"):
        from holdfast.store.blob.s3 import open_s3

        return open_s3(address)
    if address.startswith("file:"):
        from holdfast.store.blob.local import LocalBlobs

        return LocalBlobs(address.removeprefix("file:"))
    raise SettingsError(
        "The address of the blob store begins with neither s3:// nor file:.",
        hint="Use s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION, or file:FOLDER.",
    )
