"""Files that people attach to holds, stored as blobs of their tenant, and read by the run that asked."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from holdfast.checkpoint import Blob
from holdfast.errors import BlobMissingError, InputError, NotFoundError
from holdfast.types.ids import run_prefix
from holdfast.types.text import clean_text
from holdfast.types.value import BlobRef

if TYPE_CHECKING:
    from holdfast.runs.blobs import BlobStore
    from holdfast.store.rows import RunRow
    from holdfast.types.ids import RunId


class BlobAttachments:
    """Stored unchanged under their own hash: nothing here executes or shows them."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def put(self, tenant: str, data: bytes) -> None:
        ref = BlobRef(sha256(data).digest(), len(data))
        await self._blobs.of(tenant).put([Blob(ref, data)])

    async def get(self, tenant: str, digest: bytes) -> bytes:
        """Raises BlobMissingError if it is missing or damaged."""
        data = await self._blobs.of(tenant).content(digest)
        if data is None or sha256(data).digest() != digest:
            raise BlobMissingError(
                f"the file {digest.hex()} is {'gone' if data is None else 'damaged'}.",
                hint="Restore the blob folder or the database from a backup.",
                digest=digest.hex(),
            )
        return data

    async def read_for(self, run: RunId, tenant: str, reference: Any) -> bytes:
        """Only files that the run was given: a hash alone gives no access. Raises InputError for a value that
        is not a reference, NotFoundError for a file of another run, BlobMissingError."""
        digest = _digest_of(reference)
        own = await self._blobs.store.blobs_of(run)
        if not set(own).intersection(self._blobs.of(tenant).places(digest)):
            raise NotFoundError(f"run {run} was given no file {digest.hex()}.", run=run)
        return await self.get(tenant, digest)


def _digest_of(reference: Any) -> bytes:
    from holdfast.holds.forms.field_error import FieldValueError
    from holdfast.holds.forms.file_references import read_file

    try:
        return bytes.fromhex(read_file({}, reference)["sha256"])
    except FieldValueError as error:
        raise InputError(
            f"{clean_text(repr(reference), 80)} {error.message}.", hint="Give the value of the form's field."
        ) from None


async def inherited_files(blobs: BlobStore, source: RunRow) -> set[bytes]:
    """The files that a run and those it was forked from were answered with: a fork continues with them, and
    keeps them when its source is gone."""
    from holdfast.holds.forms.attached_files import decided_files

    store, found, runs = blobs.store, set[bytes](), [source]
    own, here = set(await store.blobs_of(source.id)), blobs.of(source.tenant)
    while runs:
        run = runs.pop()
        found |= await decided_files(store, run.id)
        runs += await store.find_runs(run_prefix(run.forked_from)) if run.forked_from else []
    return {digest for digest in found if own.intersection(here.places(digest))}
