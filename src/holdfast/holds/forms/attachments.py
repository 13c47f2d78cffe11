"""Files that people attach to a hold: kept as blobs of its run, named by the answer.

The content is stored first, then the note that names it (an orphan blob is garbage, a missing one is data
loss). An answer may only name files attached to its hold, so that no decision refers to a missing or foreign
file. Files that are not part of the decision are released when the hold ends, and garbage-collected.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from holdfast.checkpoint.envelope import decode_packed
from holdfast.errors import HoldfastError, InputError, NotFoundError
from holdfast.holds.actions import conflicts
from holdfast.holds.actions.audit_entries import entry
from holdfast.holds.actions.change import change, load_visible
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.forms.attached_files import FILE, OPEN, AttachedFile, attached_files, may_have_files
from holdfast.holds.forms.field_error import FieldValueError
from holdfast.holds.forms.file_references import (
    MAX_FILE,
    Field,
    Reference,
    file_field,
    file_reference_for,
    files_in,
)
from holdfast.holds.forms.validate_answer import FieldError, form_of, invalid
from holdfast.telemetry import log
from holdfast.types.audit import canonical
from holdfast.types.hold import HoldChange, HoldRow, Note
from holdfast.types.ids import new_id
from holdfast.types.terms import Actor

MAX_FILES: Final = 50
MAX_TOTAL: Final = 200 * 2**20
_ZSTD: Final = b"\x28\xb5\x2f\xfd"

Scan = Callable[[Reference, bytes], str | Awaitable[str | None] | None]
"""Checks a file before it is accepted: returns what is wrong with it, or None."""


class AttachmentStore(Protocol):
    """Stores the content of files, separately for each tenant."""

    async def put(self, tenant: str, data: bytes) -> None:
        """Durable when it returns, under its hash."""
        ...

    async def get(self, tenant: str, digest: bytes) -> bytes:
        """Raises BlobMissingError."""
        ...


async def attach(
    ctx: HoldContext,
    actor: Actor,
    hold: str,
    field: str,
    name: str,
    data: bytes | Path,
    *,
    media_type: str | None = None,
) -> Reference:
    """Store a file for a field of an open hold. Returns the reference to put into that field of the answer.

    Raises FormInvalidError for a file that the field does not accept, InputError if files cannot be
    stored."""
    attachments, content = _attachment_store(ctx), await asyncio.to_thread(_content, data)
    made: list[Reference] = []

    async def decide(row: HoldRow, now: int) -> HoldChange | None:
        # Only people who may decide may attach: otherwise
        # every person who sees the hold could fill its room.
        # The rule of deciding, without a recent sign-in: that is asked for with the decision.
        await ctx.permit(actor, "ask_back", row, now)
        conflicts.require_open(row)
        file = await _check_file(ctx, row, field, name, content, media_type)
        made[:] = [file]
        before = await attached_files(ctx.store, row)
        # The same file again is a repeated request: it takes no further room.
        if any(each.field == field and each.file == file for _, each in before):
            return None
        _require_room(row, field, [each for _, each in before], file)
        # Content first: a blob without a note is collected
        # later, a note without its blob would be data loss.
        await attachments.put(row.tenant, content)
        return _attached(row, actor, AttachedFile(field, file, _is_record(content)), now)

    await change(ctx, actor, hold, "attach", decide)
    return made[0]


def _attached(row: HoldRow, actor: Actor, kept: AttachedFile, now: int) -> HoldChange:
    note = Note(
        hold=row.id, kind=FILE, slot=new_id(), person=actor.id, at=now, body=msgspec.json.encode(kept)
    )
    marker = Note(hold=row.id, kind=OPEN[0], slot=OPEN[1], person=actor.id, at=now)
    digest = sha256(canonical(kept.file)).hexdigest()
    audit = entry(row, actor.id, "attached", now, field=kept.field, size=kept.file["size"], digest=digest)
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=now,
        notes=(note, marker),
        audit=(audit,),
        # The run refers to the blob from now on, so that no collection deletes it before the run reads it.
        blobs=(kept.digest,),
    )


async def _check_file(
    ctx: HoldContext, row: HoldRow, field: str, name: str, content: bytes, media_type: str | None
) -> Reference:
    try:
        file = file_reference_for(_declared(row, field), name, content, media_type)
        await _scan_file(ctx, file, content)
    except FieldValueError as error:
        raise invalid(row, [FieldError(field, error.code, error.message)]) from None
    return file


def _declared(row: HoldRow, field: str) -> Field:
    form = form_of(row)
    found = None if form is None else file_field(form, field)
    if found is None:
        raise FieldValueError("unknown", "is not a file field of this hold")
    return found


async def _scan_file(ctx: HoldContext, file: Reference, content: bytes) -> None:
    """If the scanner fails, the file is refused."""
    if ctx.scan is None:
        return
    try:
        found = ctx.scan(file, content)
        why = await found if inspect.isawaitable(found) else found
    except Exception as error:
        log.error("the scan of a file failed: %s: %s", type(error).__name__, error)
        # A scanner that fails lets nothing through.
        raise FieldValueError("scan", "could not be scanned and was refused; try again later") from error
    if why is not None:
        raise FieldValueError("scan", f"was refused by the scan: {str(why)[:200]}")


def _require_room(row: HoldRow, field: str, before: Sequence[AttachedFile], file: Reference) -> None:
    total = file["size"] + sum(each.file["size"] for each in before)
    if len(before) >= MAX_FILES or total > MAX_TOTAL:
        limits = f"{MAX_FILES} files and {MAX_TOTAL:,} bytes"
        raise invalid(row, [FieldError(field, "size", f"is too much: a hold can have at most {limits}")])


def _content(data: bytes | Path) -> bytes:
    """Raises InputError if it cannot be read."""
    if isinstance(data, bytes):
        return data
    if not isinstance(data, Path):  # pyright: ignore[reportUnnecessaryIsInstance]
        # A text that a client sent must not open a file of this machine.
        raise InputError(
            f"a file must be bytes or a pathlib.Path, not {type(data).__name__}.",
            hint="Encode text to bytes; wrap the name of a local file in Path(...).",
        )
    try:
        with data.open("rb") as file:
            # One byte more than the maximum is enough to refuse it.
            return file.read(MAX_FILE + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"the file {data} cannot be read: {why}.") from error


def _attachment_store(ctx: HoldContext) -> AttachmentStore:
    if ctx.attachments is None:
        raise InputError(
            "this hold service cannot store files.",
            hint="Use the service of an instance: `await hf.holds()`.",
        )
    return ctx.attachments


def _is_record(content: bytes) -> bool:
    """Whether a run could have stored the same bytes as a value. Compressed content counts as one: it is not
    unpacked, because it may be large."""
    if content.startswith(_ZSTD, 1):
        return True
    try:
        decode_packed(content)
    except HoldfastError:
        return False
    return True


# ---------------------------------------------------------------------- reading


async def attached(ctx: HoldContext, actor: Actor, hold: str) -> list[AttachedFile]:
    """The files of a hold, oldest first. Raises HoldNotFoundError, ForbiddenError."""
    row = await load_visible(ctx, actor, hold)
    return [each for _, each in await attached_files(ctx.store, row)]


async def read(ctx: HoldContext, actor: Actor, hold: str, digest: str) -> tuple[Reference, bytes]:
    """A file of a hold and its content; the read is audited. Raises NotFoundError if the hold has no such
    file, BlobMissingError if its content is missing."""
    row = await load_visible(ctx, actor, hold)
    for _, each in await attached_files(ctx.store, row):
        # Only files of this hold: without encryption a hash alone would open a file of another tenant.
        if each.file["sha256"] == digest:
            data = await _attachment_store(ctx).get(row.tenant, each.digest)
            audit = entry(row, actor.id, "file_read", ctx.now(), field=each.field)
            await ctx.store.append_audit(row.tenant, (audit,))
            return each.file, data
    raise NotFoundError(f"hold {row.id} has no file {digest!r}.", hold=row.id)


async def require_attached(ctx: HoldContext, row: HoldRow, resolution: dict[str, Any]) -> None:
    """Raises FormInvalidError if an answer names a file that was not attached to its hold. Files that the
    form itself proposes are accepted."""
    form = form_of(row) if may_have_files(row) else None
    if form is None:
        return
    named = list(files_in(form, resolution["response_data"]))
    if not named:
        return
    known = [(each.field, each.file) for _, each in await attached_files(ctx.store, row)]
    errors = [
        FieldError(name, "unknown", "names a file that was not attached to this hold")
        for name, field, file in named
        # The whole reference is compared, so that name, type and size cannot be changed after the check.
        if (name, file) not in known and file not in (field.get("default"), field.get("original"))
    ]
    if errors:
        raise invalid(row, errors)
