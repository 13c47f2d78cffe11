"""Garbage collection of blobs: those that no run refers to, and objects that no row names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import InputError
from holdfast.runs.hold_states import collect_states
from holdfast.types.retention import BLOB_GRACE

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess

BATCH = 500


async def collect_blobs(service: RunAccess, *, grace: float = BLOB_GRACE) -> int:
    """Delete blobs that no run refers to and that are older than the grace period (D-37). Returns their
    number.

    Condemned first, then the object, then the row: a settle that names one meanwhile puts it again.
    """
    from holdfast.holds.forms.attached_files import release_unused_files

    await release_unused_files(service.store)
    older_than = service.store.now() - int(grace * 1e6)
    objects = service.runtime.blobs.objects
    collected = 0
    while digests := await service.store.condemn_blobs(older_than=older_than, limit=BATCH):
        if objects is not None:
            await objects.delete_all(digests)
        await service.store.drop_blobs(digests)
        collected += len(digests)
    return collected


async def collect_orphans(service: RunAccess, *, grace: float = BLOB_GRACE, dry_run: bool = False) -> int:
    """Delete objects that no row names, older than the grace period: a process died between the two writes,
    or rows were restored from a backup. Returns their number. `dry_run`: only count them; nothing is written.
    Raises InputError if they cannot be listed, BlobForbiddenError if their place belongs to another store."""
    objects = service.runtime.blobs.objects
    listed = None if objects is None else objects.listed
    if objects is None or listed is None:
        raise InputError(
            "the blob store of this program cannot list its objects.",
            hint="Use a blob folder or S3 (HOLDFAST_BLOBS), or collect the garbage there.",
        )
    if not await service.runtime.blobs.has_place():
        return 0
    before, collected = service.store.now() / 1e6 - grace, 0
    async for digest in listed.list_older(before):
        if await service.store.blob(digest) is None:
            if not dry_run:
                await objects.delete(digest)
            collected += 1
    return collected + await collect_states(service, before, dry_run=dry_run)
