"""Holds on the wire: what the API returns about them, and the bodies that it takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from holdfast.api.schemas.common import moment
from holdfast.api.schemas.hold_query import Filters, Instant
from holdfast.holds.actions.bulk import BulkResult
from holdfast.holds.actions.submission import Submission
from holdfast.holds.forms.attached_files import AttachedFile
from holdfast.holds.queries.decided_values import decided_values
from holdfast.holds.queries.history import Entry
from holdfast.holds.queries.hold_view import checkpoint_view, hold_view
from holdfast.holds.queries.summary import countdown, title_of, why_of
from holdfast.types.clock import iso
from holdfast.types.hold import HoldRow, Note
from holdfast.types.terms import PRIORITIES

Comment = Annotated[str, msgspec.Meta(max_length=10_000)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class OptionWire(msgspec.Struct, kw_only=True):
    """`text`: the label for people; a label that is only the id as words. The documents' paths have none."""

    id: str
    label: str
    text: str | msgspec.UnsetType = msgspec.UNSET
    variant: str = "secondary"
    default: bool | msgspec.UnsetType = msgspec.UNSET
    requires_comment: bool | msgspec.UnsetType = msgspec.UNSET


class AssigneeWire(msgspec.Struct, kw_only=True):
    type: str
    value: str
    reason: str | msgspec.UnsetType = msgspec.UNSET


class DecidedValueWire(msgspec.Struct, kw_only=True):
    """A value of a decision. `proposed`: what the machine proposed; `edited`: decided with another value."""

    field: str
    label: str
    value: Any
    proposed: Any = None
    edited: bool = False


class _HoldFields(msgspec.Struct, kw_only=True):
    """The fields of a hold that have the same name on every path."""

    id: str
    block_index: int
    instance_key: str | None
    prompt: str
    options: list[OptionWire] | None
    assignee_type: str
    assignee_resolved: AssigneeWire
    context: Any
    schema: Any
    priority: Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(PRIORITIES)})]
    tags: list[str]
    status: str
    expires_at: str | None
    expiry_action: str | None
    escalation_target: str | None
    notification_sent: bool
    reminder_count: int
    reminder_interval_m: int | None
    resolution: dict[str, Any] | None
    resolved_by: str | None
    resolved_at: str | None
    created_at: str
    updated_at: str
    version: int
    assignment_epoch: int
    last_notified_at: str | None
    claimed_by: str | None
    claim_until: str | None
    resumed_at: str | None
    request_hash: str
    escalation_count: int
    original_timeout_s: float | None
    cancelled_by: str | None
    cancelled_at: str | None
    cancel_reason: str | None
    placed_by: str | None
    placed_decision: str | None
    placed_until: str | None
    paused_at: str | None
    started_by: str | None
    terms: dict[str, Any]
    title: str = ""
    why: str = ""
    due: str = ""
    decided: list[DecidedValueWire] = []
    idempotent_replay: bool | msgspec.UnsetType = msgspec.UNSET


class ShadowWire(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a judge answered before people saw the question. Until they have decided only `judge` and
    `sealed`, the SHA-256 digest of the answer, are there. `agrees`: with their decision; `intact`: it is the
    answer that was sealed; `error`: the judge gave none."""

    judge: str
    sealed: str
    decision: str | None = None
    confidence: float | None = None
    reasoning: str = ""
    error: str = ""
    at: str | None = None
    agrees: bool | None = None
    intact: bool = True
    digests: dict[str, str] = {}


class HoldWire(_HoldFields, kw_only=True):
    """A hold. `assignee`: as the flow names it; `assignee_resolved`: the person or group. `title`, `why` and
    `due` are texts; `decided`: the values of its decision; `version` is its ETag. `comments`: how many there
    are, with questions and replies; in lists only. `snoozed_until`: by you; in the list of snoozed holds
    only. `shadow`: what a judge answered before the question was
    shown, for one hold only."""

    run: str
    flow: str
    node: str
    tenant: str
    deployment: str | None
    type: str
    assignee: str | None
    message_id: str | None
    comments: int | msgspec.UnsetType = msgspec.UNSET
    snoozed_until: str | msgspec.UnsetType = msgspec.UNSET
    shadow: ShadowWire | msgspec.UnsetType = msgspec.UNSET


class CheckpointWire(_HoldFields, kw_only=True):
    """A hold under the names of the documents, on the paths that they name. `core_id`: its deployment, or
    `flow:NAME` if it was started without one."""

    core_id: str
    tenant_id: str
    execution_id: str
    flow_name: str
    node_id: str
    checkpoint_type: str
    assignee_raw: str | None
    hitl_message_id: str | None


def hold_wire(row: HoldRow, now: int, *, replay: bool = False) -> HoldWire:
    return msgspec.convert({**hold_view(row, replay=replay), **_in_words(row, now)}, HoldWire)


def listed_wire(row: HoldRow, now: int, comments: int, snoozed: int | None) -> HoldWire:
    until = msgspec.UNSET if snoozed is None else iso(snoozed)
    return msgspec.structs.replace(hold_wire(row, now), comments=comments, snoozed_until=until)


def checkpoint_wire(row: HoldRow, now: int, *, replay: bool = False) -> CheckpointWire:
    return msgspec.convert({**checkpoint_view(row, replay=replay), **_in_words(row, now)}, CheckpointWire)


def _in_words(row: HoldRow, now: int) -> dict[str, Any]:
    decided = [msgspec.structs.asdict(each) for each in decided_values(row)]
    return {"title": title_of(row), "why": why_of(row), "due": countdown(row, now), "decided": decided}


class HoldAnswer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`{decision, response_data, comment}` or `{resolution, comment}`, where `resolution` is the decision or
    an object that has it. `request_hash`: of what was shown. `reason`: uses the right to override."""

    decision: str | None = None
    resolution: str | dict[str, Any] | None = None
    response_data: Any = None
    comment: str | None = None
    request_hash: str | None = None
    reason: Comment | None = None

    def body(self) -> dict[str, Any]:
        """For the service, without fields that were not sent."""
        names = ("decision", "resolution", "response_data", "comment", "request_hash")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class DraftWire(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An answer that may be incomplete."""

    decision: Any = None
    response_data: Any = None
    comment: Any = None
    request_hash: str | None = None


def draft_wire(submission: Submission) -> DraftWire:
    return DraftWire(**msgspec.structs.asdict(submission))


class NoteWire(msgspec.Struct, kw_only=True):
    """A comment, a question that was asked back, or a reply."""

    id: str
    kind: str
    by: str
    at: str | None
    text: str = ""
    to: str | None = None
    question: str | None = None
    open: bool | None = None


def note_wire(note: Note, answered: Collection[str] = ()) -> NoteWire:
    """`answered`: the ids of questions that have a reply."""
    data: Mapping[str, Any] = msgspec.json.decode(note.body)
    is_reply = note.kind == "reply"
    return NoteWire(
        id=f"{note.slot}:reply" if is_reply else note.slot,
        kind=note.kind,
        by=note.person,
        at=moment(note.at),
        text=data.get("text", ""),
        to=data.get("to"),
        question=note.slot if is_reply else None,
        open=note.slot not in answered if note.kind == "question" else None,
    )


def notes_wire(notes: Sequence[Note]) -> list[NoteWire]:
    answered = {note.slot for note in notes if note.kind == "reply"}
    return [note_wire(note, answered) for note in notes]


class EntryWire(msgspec.Struct, kw_only=True):
    """An entry of a hold's history. `text`: as one sentence; `seq`: its number in the tenant's audit."""

    id: str
    seq: int
    at: str
    actor: str
    action: str
    data: dict[str, Any]
    text: str


def entry_wire(entry: Entry) -> EntryWire:
    return EntryWire(**msgspec.structs.asdict(entry))


class FileWire(msgspec.Struct, kw_only=True):
    """A file of a hold. `file` is what the answer has in the field."""

    field: str
    file: dict[str, Any]


def file_wire(kept: AttachedFile) -> FileWire:
    return FileWire(field=kept.field, file=kept.file)


class BulkItemWire(msgspec.Struct, kw_only=True):
    """`placed_until`: when it is decided; it can be undone until then."""

    hold: str
    done: bool
    code: str | None = None
    why: str | None = None
    status: str | None = None
    version: int | None = None
    placed_until: str | None = None


class BulkWire(msgspec.Struct, kw_only=True):
    """`left_out`: number by reason. In a preview `done` is the number that would be decided."""

    preview: bool
    done: int
    left_out: dict[str, int]
    items: list[BulkItemWire]


def bulk_wire(found: BulkResult) -> BulkWire:
    items = [
        BulkItemWire(
            hold=each.hold,
            done=each.done,
            code=each.code,
            why=each.why,
            status=str(each.row.status) if each.row and not found.preview else None,
            version=each.row.version if each.row else None,
            placed_until=moment(each.row.placed_until) if each.row else None,
        )
        for each in found.items
    ]
    return BulkWire(preview=found.preview, done=found.done, left_out=found.left_out, items=items)


Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400.0)]


class Count(msgspec.Struct, kw_only=True):
    """Counting stops at 10,000."""

    count: int


class PlaceDecision(HoldAnswer, kw_only=True, forbid_unknown_fields=True):
    """A decision that takes effect after `seconds`, unless it is undone; none: the hold's window."""

    seconds: Seconds | None = None


class PreviewAnswer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`decision`: only this option. `response_data`: what was filled in; none: what the form proposes."""

    decision: str | None = None
    response_data: Any = None


class BulkAnswer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`preview`: change nothing. `undo`: each is decided after its undo window, as with `place`. `versions`:
    those that were shown; holds that changed are left out."""

    holds: Annotated[list[str], msgspec.Meta(max_length=1000)]
    decision: str
    comment: str | None = None
    preview: bool = True
    undo: bool = False
    versions: dict[str, int] = {}


class Reason(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    reason: Comment | None = None


class ReassignHold(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`assignee`: `user:dana@acme`, `group:finance`; empty: unassigned."""

    assignee: Annotated[str, msgspec.Meta(max_length=500)] | None = None
    expires_at: Instant | None = None
    reason: Comment | None = None


class ExtendHold(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    expires_at: Instant
    reason: Comment | None = None


class ClaimHold(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`reason`: uses the right to override if another person has claimed it."""

    seconds: Seconds | None = None
    reason: Comment | None = None


class HoldMetricsQuery(Filters, kw_only=True):
    calendar: Name | None = None
    """times in business hours, by this calendar"""


class AnswerSchema(msgspec.Struct, kw_only=True):
    """`json_schema`: what `response_data` must be; none: any object. `request_hash`: of what is shown."""

    json_schema: Any
    request_hash: str
    decisions: list[str] | None
