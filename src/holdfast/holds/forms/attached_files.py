"""The files attached to a hold, and the release of unused ones when it has ended."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.errors import KeyMissingError
from holdfast.holds.forms.file_references import Reference, files_in
from holdfast.holds.forms.validate_answer import form_of
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.hold import HoldChange, HoldFilter, HoldRow, Note
from holdfast.types.ids import RunId
from holdfast.types.status import HoldStatus

FILE: Final = "file"
OPEN: Final = ("filed", "open")
"""The note that marks a hold with files: after its end, unused files are released."""
MAX_HOLDS: Final = 100_000
"""Of one run."""
_OVER: Final = (HoldStatus.resolved, HoldStatus.expired, HoldStatus.cancelled)
_MARK: Final = b'"kind":"file"'
_PAGE: Final = 100


class AttachedFile(msgspec.Struct, frozen=True):
    """A file as stored in its note. `ours`: its bytes may be those of a record, which may be referenced
    elsewhere."""

    field: str
    file: Reference
    ours: bool = False

    @property
    def digest(self) -> bytes:
        return bytes.fromhex(self.file["sha256"])


def may_have_files(row: HoldRow) -> bool:
    return row.schema is not None and _MARK in row.schema


async def attached_files(store: Store, row: HoldRow) -> list[tuple[Note, AttachedFile]]:
    notes = await store.hold_notes(row.id, kinds=(FILE,))
    return [(note, msgspec.json.decode(note.body, type=AttachedFile)) for note in notes]


async def files_of(store: Store, run: RunId, *, but: HoldRow | None = None) -> set[bytes]:
    """The digests of all files that a run's holds have; `but`: those of this one left out."""
    found: set[bytes] = set()
    for row in await store.holds(run=run, limit=MAX_HOLDS):
        if may_have_files(row) and (but is None or row.id != but.id):
            found |= {each.digest for _, each in await attached_files(store, row)}
    return found


async def decided_files(store: Store, run: RunId) -> set[bytes]:
    """The digests of the files that a run's holds were decided with."""
    found: set[bytes] = set()
    for row in await store.holds(run=run, status=HoldStatus.resolved, limit=MAX_HOLDS):
        form = form_of(row) if may_have_files(row) else None
        if form is not None and row.resolution is not None:
            values: Any = msgspec.json.decode(row.resolution)["response_data"]
            found |= {bytes.fromhex(file["sha256"]) for _, _, file in files_in(form, values or {})}
    return found


async def release_unused_files(store: Store) -> int:
    """Release files of ended holds that are not part of the decision. Returns how many were released."""
    where = HoldFilter(status=_OVER, noted=OPEN)
    gone, after = 0, None
    while page := await store.list_holds(where, after=after, limit=_PAGE):
        for row, _ in page:
            try:
                gone += await _release_unused(store, row)
            except KeyMissingError as error:
                log.warning("the files of hold %s are kept: %s", row.id, error)
        after = page[-1][1]
    return gone


async def _release_unused(store: Store, row: HoldRow) -> int:
    if row.status is HoldStatus.resolved and row.resolution is None:
        return 0  # encrypted under a missing key: which files the decision uses is not known
    kept = await attached_files(store, row)
    votes = await store.hold_notes(row.id, kinds=("vote",))
    answers = b"\n".join([row.resolution or b"", *(note.body for note in votes)])
    unused = [(note, each) for note, each in kept if each.file["sha256"].encode() not in answers]
    free = {each.digest for _, each in unused if not each.ours} - await files_of(store, row.run, but=row)
    await store.change_hold(
        HoldChange(
            hold=row.id,
            version=row.version,
            at=store.now(),
            drop_notes=(OPEN, *((note.kind, note.slot) for note, _ in unused)),
            released_blobs=tuple(sorted(free)),
        )
    )
    return len(unused)
