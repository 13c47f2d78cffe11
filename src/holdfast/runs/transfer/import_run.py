"""Import of an exported run: checked, then written as read-only history, or continued as a fork (D-36)."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from holdfast.checkpoint import Blob
from holdfast.errors import (
    ConflictError,
    InputError,
    StoreError,
)
from holdfast.model.fingerprint import decode_graph, fingerprint_of
from holdfast.runs.encryption.cipher import FieldCipher
from holdfast.runs.flow_versions import put_posted
from holdfast.runs.fork import fork
from holdfast.runs.fork.carried_decisions import may_ask, outside_effects, require_no_repeats
from holdfast.runs.history import checkpoints
from holdfast.runs.transfer.archive import (
    Archive,
    changed_record,
    damaged_error,
    pack,
    portable_history,
    unpack,
)
from holdfast.runs.transfer.export import with_blobs
from holdfast.store.rows import FlowRow
from holdfast.types.ciphertext import is_encrypted
from holdfast.types.ids import RunId, derived_id, is_id
from holdfast.types.record import Kind
from holdfast.types.status import HoldStatus
from holdfast.types.value import BlobRef

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunHistory, RunRow
    from holdfast.types.hold import HoldRow
    from holdfast.types.terms import Actor

# Stores number records and events with 32 bits, and other numbers with 64.
_MAX_NUMBER = 2**32
_MAX_INT = 2**63


async def import_run(
    service: RunAccess,
    data: bytes,
    *,
    as_new_run: bool = False,
    tenant: str | None = None,
    actor: Actor | None = None,
    repeat_effects: bool = False,
) -> RunRow:
    """The run as read-only history under its own id, or as a new run that continues from its last checkpoint;
    in its own tenant, or in another. `actor`: the caller of a server, who becomes the initiator of the new
    run; what they may not decide alone is asked again. `repeat_effects`: as for a fork.

    Importing the same file again returns the same row. Everything is checked before anything is written.
    Raises InputError, SchemaTooNewError and CheckpointCorruptError for an invalid file, KeyMissingError if
    its key is not available, ConflictError if the id names a run that differs; for a new run also what a
    fork raises.
    """
    archive = read_archive(data)
    if tenant is not None and archive.key_ids() and archive.history.run.tenant != tenant:
        # The keys of this store must not decrypt for one tenant what belongs to another.
        raise InputError(
            "this exported run is encrypted and belongs to another tenant.",
            hint="Export it decrypted, or import it in its own tenant.",
        )
    archive = _of_tenant(_decrypted(service, archive), tenant)
    run = archive.history.run
    if as_new_run:
        # Before the history is written: a fork needs the flow's code.
        service.runtime.program_for(run.version, run.flow)
    row = await _existing(service, archive.history)
    if row is None:
        if as_new_run and actor is not None and not repeat_effects:
            _require_no_repeats(service, archive)
        row = await _adopt(service, archive)
    if not as_new_run:
        return row
    return await _fork(service, row, archive, actor, repeat_effects=repeat_effects)


def _require_no_repeats(service: RunAccess, archive: Archive) -> None:
    """As the fork does, before anything is written."""
    run = archive.history.run
    if may_ask(decode_graph(archive.graph), service.runtime.programs.get(run.version)):
        require_no_repeats(run.id, outside_effects(archive.history.records))


def read_archive(data: bytes) -> Archive:
    """The content of the file, checked; needs no store, and decrypts nothing."""
    if not isinstance(data, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"an exported run is bytes, not {type(data).__name__}.", hint="Read its file as bytes."
        )
    archive = unpack(bytes(data))
    _check(archive)
    return archive


def _decrypted(service: RunAccess, archive: Archive) -> Archive:
    """Decrypted with the available keys. Raises KeyMissingError; an unencrypted file needs none."""
    if not archive.key_ids():
        return archive
    encrypted = service.runtime.blobs.encrypted
    cipher = FieldCipher(None) if encrypted is None else encrypted.cipher
    history = portable_history(cipher.decrypt_history(archive.history))
    if any(is_encrypted(record.payload) for record in history.records):
        raise damaged_error("a record cannot be decrypted with its key")
    _check_digests(history)
    named = zip(history.blobs, archive.blobs, strict=True)
    blobs = dict(
        sorted((sha256(b).digest(), b) for b in (cipher.decrypt_blob(data, at) for at, data in named))
    )
    history = msgspec.structs.replace(history, blobs=list(blobs))
    return msgspec.structs.replace(archive, history=history, blobs=list(blobs.values()))


def _of_tenant(archive: Archive, tenant: str | None) -> Archive:
    if tenant is None:
        return archive
    history = archive.history
    run = msgspec.structs.replace(history.run, tenant=tenant)
    holds = [msgspec.structs.replace(hold, tenant=tenant) for hold in history.holds]
    return msgspec.structs.replace(archive, history=msgspec.structs.replace(history, run=run, holds=holds))


async def _existing(service: RunAccess, history: RunHistory) -> RunRow | None:
    found = await service.store.history(history.run.id)
    if found is None:
        return None
    if found.run.tenant != history.run.tenant:
        raise _taken(history.run.id)
    here, _ = await with_blobs(service, portable_history(found), opened=True)
    if here != history:
        raise ConflictError(
            f"run {history.run.id} is already in this store, and its history differs from the file's.",
            hint="Fork the existing run, or delete it before the import.",
            run=history.run.id,
        )
    return found.run


def _taken(run: RunId) -> ConflictError:
    """Nothing of the run or hold that has the id: it may belong to another tenant."""
    return ConflictError(f"run {run} is not imported: one of its ids is taken.", run=run)


async def _adopt(service: RunAccess, archive: Archive) -> RunRow:
    history, store = archive.history, service.store
    run = history.run
    named = zip(history.blobs, archive.blobs, strict=True)
    blobs = service.runtime.blobs.of(run.tenant)
    # Blobs and graphs before the run, which must be readable as soon as it is visible.
    await blobs.put([Blob(BlobRef(digest, len(data)), data) for digest, data in named])
    for graph in (*archive.older, archive.graph):
        version = fingerprint_of(graph)
        row = FlowRow(name=run.flow, version=version, graph=graph, created_at=store.now())
        await put_posted(store, row)
    try:
        row, fresh = await store.adopt(history)
    except ConflictError as error:
        raise _taken(run.id) from error
    except StoreError as error:
        if type(error) is not StoreError:  # pyright: ignore[reportUnnecessaryComparison]
            raise
        # A constraint of the schema. Without its text, which names the store.
        raise damaged_error("the store refuses a value in it") from error
    # Another process may have imported another file of this run in the meantime.
    return row if fresh else await _existing(service, history) or row


async def _fork(
    service: RunAccess, source: RunRow, archive: Archive, actor: Actor | None, *, repeat_effects: bool
) -> RunRow:
    """The id is derived from the content of the file, so that importing it twice, even encrypted with another
    key, does not create two active runs."""
    # Form 1 does not name the version that wrote it: an export of the same run by another release is the
    # same.
    run = RunId(derived_id("import", sha256(pack(archive, form=1)).hexdigest()))
    made = await service.store.get_run(run)
    if made is not None:
        return made
    _, seq = await checkpoints.latest_seq(service, source.id)
    return await fork.fork(service, source.id, seq, run_id=run, actor=actor, repeat_effects=repeat_effects)


# ---------------------------------------------------------------------- validation


def _check(archive: Archive) -> None:
    """Checks what stores and readers rely on. The digests prove only that the file is unchanged."""
    history = archive.history
    run = history.run
    if not is_id(run.id) or portable_history(history) != history:
        raise damaged_error("its run has values that export_run does not write")
    _check_graph(run, archive.graph, run.version)
    for graph in archive.older:
        _check_graph(run, graph, fingerprint_of(graph))
    _check_records(history)
    _check_digests(history)
    _check_numbers(history)
    if any(hold.run != run.id or not is_id(hold.id) or hold.seq > run.head for hold in history.holds):
        raise damaged_error("a hold belongs to another run")
    if not all(_is_whole(hold) for hold in history.holds):
        raise damaged_error("a hold was decided without a decision")
    _check_places(history)


def _is_whole(hold: HoldRow) -> bool:
    """Whether it is decided with all fields of a decision, or not at all (CP-14)."""
    outcome = (hold.resolution, hold.resolved_by, hold.resolved_at)
    return all((part is not None) == (hold.status is HoldStatus.resolved) for part in outcome)


def _check_graph(run: RunRow, graph: bytes, version: str) -> None:
    try:
        spec = decode_graph(graph)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise damaged_error(f"its graph cannot be read: {error}") from error
    if spec.name != run.flow or fingerprint_of(graph) != version:
        raise damaged_error("its graph is not the one of its version")


def _check_records(history: RunHistory) -> None:
    run, records = history.run, history.records
    seqs = [record.seq for record in records]
    if not records or not 0 <= run.horizon <= run.head < _MAX_NUMBER:
        raise damaged_error("it has no records")
    if seqs != list(range(run.horizon, run.horizon + len(records))) or seqs[-1] != run.head:
        raise damaged_error("records are missing")
    if records[0].kind not in (Kind.created, Kind.snapshot):
        raise damaged_error("its first record is not self-contained")


def _check_digests(history: RunHistory) -> None:
    if (changed := changed_record(history)) is not None:
        raise damaged_error(f"record {changed} does not match its digest")


def _check_numbers(history: RunHistory) -> None:
    """Event numbers must grow, and integers must fit into a database."""
    numbers = [(r.event_from, r.event_from + r.events - 1) for r in history.records if r.events]
    numbers += [(event.number, event.number) for event in history.events]
    numbers = [(0, 0), *sorted(numbers), (history.run.event_seq + 1, _MAX_NUMBER)]
    if any(last >= following for (_, last), (following, _) in pairwise(numbers)):
        raise damaged_error("its events are not numbered one after the other")
    structs = [history.run, *history.records, *history.events, *history.holds]
    values = [value for struct in structs for value in msgspec.structs.astuple(struct)]
    values += [seq for seq, _ in history.late]
    if any(isinstance(value, int) and not -_MAX_INT <= value < _MAX_INT for value in values):
        raise damaged_error("a number in it is too large")
    if any(isinstance(value, str) and "\0" in value for value in values):
        raise damaged_error("a text in it has a NUL character")
    if any(record.events < 0 for record in history.records) or history.run.event_seq >= _MAX_NUMBER:
        raise damaged_error("its events are not numbered one after the other")


def _check_places(history: RunHistory) -> None:
    ids = {hold.id for hold in history.holds}
    places = {(hold.scope, hold.node, hold.visit, hold.ordinal) for hold in history.holds}
    if not len(ids) == len(places) == len(history.holds) or len(set(history.blobs)) != len(history.blobs):
        raise damaged_error("it has duplicate ids")
