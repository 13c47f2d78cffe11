"""Large values of channels are stored as blobs, by the digest of their bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256

from msgspec.structs import replace

from holdfast.checkpoint import Blob
from holdfast.checkpoint.size_limit import SPILL_OVER
from holdfast.errors import BlobMissingError
from holdfast.runs.blobs import BlobStore
from holdfast.types.graph_thread import GraphValueRow
from holdfast.types.value import BlobRef


async def spill_values(blobs: BlobStore, rows: Sequence[GraphValueRow]) -> tuple[GraphValueRow, ...]:
    """The rows to store, when the blobs that they refer to have been put."""
    if all(len(row.data) <= SPILL_OVER for row in rows):
        return tuple(rows)
    return tuple([row if len(row.data) <= SPILL_OVER else await _spilled(blobs, row) for row in rows])


async def _spilled(blobs: BlobStore, row: GraphValueRow) -> GraphValueRow:
    digest = sha256(row.data).digest()
    await blobs.put([Blob(BlobRef(digest, len(row.data)), row.data)])
    return replace(row, data=digest, blob_digest=blobs.address(digest))


async def fill_values(blobs: BlobStore, rows: Sequence[GraphValueRow]) -> list[GraphValueRow]:
    """The rows with the bytes of their blobs; without those whose blob is missing or damaged."""
    if all(row.blob_digest is None for row in rows):
        return list(rows)
    filled = await asyncio.gather(*(_filled(blobs, row) for row in rows))
    return [row for row in filled if row is not None]


async def _filled(blobs: BlobStore, row: GraphValueRow) -> GraphValueRow | None:
    if row.blob_digest is None:
        return row
    try:
        data = await blobs.content(row.data)
    except BlobMissingError:
        return None
    if data is None or sha256(data).digest() != row.data:
        return None
    return replace(row, data=data, blob_digest=None)
