"""Export of a run with its whole history, for another machine or store (D-36)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from holdfast.errors import (
    CheckpointCorruptError,
    FlowNotFoundError,
    RunNotFoundError,
)
from holdfast.runs.history.versions import spans_of
from holdfast.runs.transfer.archive import Archive, changed_record, pack, portable_history

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunHistory, RunRow


async def export_run(service: RunAccess, run: str, *, decrypt: bool = False) -> bytes:
    """A snapshot of the run; the run itself continues. From an encrypted store it stays encrypted unless
    `decrypt` is set.

    Raises RunNotFoundError, BlobMissingError, FlowNotFoundError if its graph is not stored, and
    CheckpointCorruptError if a record is damaged: the file could not be imported.
    """
    row = await service.get(run)
    encrypted = service.runtime.blobs.encrypted
    store = service.store if encrypted is None or decrypt else encrypted.inner
    found = await store.history(row.id)
    if found is None:
        raise RunNotFoundError(f"run {row.id} was deleted meanwhile.", run=row.id)
    if (changed := changed_record(found)) is not None:
        raise CheckpointCorruptError(
            f"run {row.id} is not exported: its record {changed} does not match its digest.",
            hint="`holdfast postmortem` shows what can be read. Fork from before it, and export the fork.",
            seq=changed,
        )
    older, graph = await _graphs(service, row)
    history, blobs = await with_blobs(service, portable_history(found), opened=decrypt)
    return pack(Archive(history, graph, blobs, older=older))


async def _graphs(service: RunAccess, row: RunRow) -> tuple[list[bytes], bytes]:
    """The graphs of its current and earlier versions."""
    found: list[bytes] = []
    for span in await spans_of(service, row):
        flow = await service.store.flow(row.flow, span.version)
        if flow is None:
            raise FlowNotFoundError(
                f"version {span.version} of flow {row.flow!r} is not stored.",
                flow=row.flow,
                version=span.version,
            )
        found.append(flow.graph)
    return list(dict.fromkeys(found[:-1])), found[-1]


async def with_blobs(
    service: RunAccess, history: RunHistory, *, opened: bool
) -> tuple[RunHistory, list[bytes]]:
    """The history and its blobs as stored, or both decrypted."""
    blobs = service.runtime.blobs
    found = {address: await blobs.data_at(address) for address in history.blobs}
    if opened and blobs.encrypted is not None:
        plain_blobs = (blobs.encrypted.cipher.decrypt_blob(data, address) for address, data in found.items())
        found = dict(sorted((sha256(data).digest(), data) for data in plain_blobs))
    return msgspec.structs.replace(history, blobs=list(found)), list(found.values())
