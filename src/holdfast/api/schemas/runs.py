"""Runs on the wire: what the API returns about them, and the bodies that it takes."""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated, Any, Literal

import msgspec

from holdfast.api.pagination import Cursor, Limit
from holdfast.api.schemas.common import Name, Wait, moment
from holdfast.api.schemas.input_guard import require_outside
from holdfast.runs.run_view import RunWire, run_wire, shown_run
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.hold import HoldRow
from holdfast.types.status import RunStatus


class RunMetadata(msgspec.Struct, kw_only=True):
    """`checkpoint_id`: of its newest open question, if it waits for a person."""

    checkpoint_id: str | None = None
    checkpoint_ids: list[str] = []


class RunDetail(RunWire, kw_only=True):
    """`unstored`: why the run waits although it is `running`: a large value cannot be written to the blob
    store now."""

    metadata: RunMetadata
    unstored: str | None = None


async def run_detail(service: RunService, row: RunRow) -> RunDetail:
    holds = await service.holds(row.id) if row.status is RunStatus.pending_input else []
    asked = [str(hold.id) for hold in sorted(holds, key=lambda hold: hold.seq, reverse=True)]
    seen = RunMetadata(checkpoint_id=asked[0] if asked else None, checkpoint_ids=asked)
    shown = run_wire(await shown_run(service.store, row))
    fields = {name: getattr(shown, name) for name in shown.__struct_fields__}
    return RunDetail(**fields, metadata=seen, unstored=await _unstored(service, row))


async def _unstored(service: RunService, row: RunRow) -> str | None:
    """By the last heartbeat of the worker that has it."""
    if row.status is not RunStatus.running or row.worker is None:
        return None
    now = service.store.now()
    found = (each.unstored.get(row.id) for each in await service.store.workers() if each.is_alive(now))
    return next(filter(None, found), None)


async def etag_of(service: RunService, row: RunRow) -> str:
    """The ETag of a run: changes with each record, event and change of worker, and with everything else that
    is shown of it. Some of that changes without a record, such as the status when a lease expires."""
    shown = msgspec.json.encode(await run_detail(service, row))
    return f"{row.term}.{row.head}.{blake2b(shown, digest_size=8).hexdigest()}"


class RunResult(msgspec.Struct, kw_only=True):
    """The result or the current state of a run. Values that are declared secret are hidden."""

    id: str
    status: RunStatus
    state: dict[str, Any]
    artifacts: dict[str, Any]
    error: str | None = None
    open_holds: list[str] = []
    wakes_at: str | None = None


class InputTaken(msgspec.Struct, kw_only=True):
    """The question that was answered, and how."""

    run_id: str
    checkpoint_id: str
    request_id: str
    status: str
    decision: Any = None
    resolved_by: str | None = None
    resolved_at: str | None = None


def input_taken(hold: HoldRow) -> InputTaken:
    resolution: Any = msgspec.json.decode(hold.resolution) if hold.resolution else {}
    return InputTaken(
        run_id=hold.run,
        checkpoint_id=hold.id,
        request_id=hold.id,
        status=str(hold.status),
        decision=resolution.get("decision"),
        resolved_by=hold.resolved_by,
        resolved_at=moment(hold.resolved_at),
    )


class PendingWire(msgspec.Struct, kw_only=True):
    """A run that waits for a person, and its question."""

    run: str
    flow: str
    thread: str | None
    hold_id: str
    node: str
    prompt: str
    assignee: str | None
    created_at: str


class RunFilters(msgspec.Struct, kw_only=True):
    """`q`: words as `status:failed flow:claims created<2d took>1h by:me key: thread: error: at:breakpoint`,
    and text. `forked_from`: the run that they were forked from. `parent_run`: the run whose script
    has started them."""

    status: list[RunStatus] = []
    flow: str | None = None
    version: str | None = None
    thread: str | None = None
    forked_from: Annotated[str, msgspec.Meta(min_length=36, max_length=36)] | None = None
    parent_run: Annotated[str, msgspec.Meta(min_length=36, max_length=36)] | None = None
    instance_key: str | None = None
    q: Annotated[str, msgspec.Meta(max_length=1000)] | None = None


class RunCounts(msgspec.Struct, kw_only=True):
    """`by_status`: those with at least one run."""

    count: int
    by_status: dict[str, int]


class BulkRuns(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`preview`: change nothing. `retry`: failed and interrupted runs, dead letters too, resume from their
    last checkpoint. `discard`: dead letters are cancelled."""

    runs: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=500)]
    action: Literal["cancel", "retry", "discard"]
    reason: Annotated[str, msgspec.Meta(max_length=1000)] | None = None
    preview: bool = True


class ContinueBreakpoints(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One of `holds`, `run` and `flow`. `clear`: these runs stop at no later breakpoint either."""

    holds: Annotated[list[Name], msgspec.Meta(max_length=500)] | None = None
    run: Name | None = None
    flow: Name | None = None
    clear: bool = False
    preview: bool = False


class PreviewChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`seq`: the record to fork or rewind to; none: the last. `patch`: the state that a fork or rewind
    changes, as they take it: then `way` says what the new run does. It needs the right runs:write."""

    action: Literal["resume", "retry", "fork", "rewind", "cancel"]
    seq: Annotated[int, msgspec.Meta(ge=0, le=2**32)] | None = None
    patch: dict[str, Any] | None = None


class BulkRunItem(msgspec.Struct, kw_only=True):
    """`dead`: it is a dead letter. `text`: in a preview what would happen to it, as sentences; empty
    where too much history would have to be read for that."""

    run: str
    done: bool
    status: str | None = None
    code: str | None = None
    why: str | None = None
    dead: bool = False
    text: list[str] = []


class BulkRunsResult(msgspec.Struct, kw_only=True):
    """In a preview `done` is the number of runs that would be changed."""

    preview: bool
    done: int
    left_out: dict[str, int]
    items: list[BulkRunItem]


class ListRuns(RunFilters, kw_only=True):
    limit: Limit = 50
    cursor: Cursor | None = None


class CreateRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`flow`: a name, `name@version`, or a file that the operator allows; `workflow_uri` is the same.
    `wait`: at most this many seconds, until the run has ended or waits for a person."""

    flow: Name | None = None
    workflow_uri: Name | None = None
    version: Name | None = None
    input: dict[str, Any] = {}
    thread: Name | None = None
    lane: Name | None = None
    priority: Annotated[int, msgspec.Meta(ge=-1_000_000, le=1_000_000)] | None = None
    instance_key: Name | None = None
    deployment: Name | None = None
    mode: Literal["barrier", "strict", "exit"] | None = None
    breaks: list[Name] = []
    idempotency_key: Name | None = None
    wait: Wait = 0

    def __post_init__(self) -> None:
        require_outside(self.input)


class CancelRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = "cancelled"


class SteerRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`stage`: the node whose agent gets it; without one, the first that can."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=16_384)]
    stage: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class SteerTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The message waits until the agent has made its tool calls."""

    id: str
    run: str
    text: str


class ResumeRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Without a checkpoint and an input the run itself is resumed. `mode`: always `fork`, or always
    `rewind`."""

    checkpoint_id: Name | None = None
    input_data: dict[str, Any] | None = None
    mode: Literal["resume", "fork", "rewind"] = "resume"
    accept_loss: bool = False
    repeat_effects: bool = False

    def __post_init__(self) -> None:
        require_outside(self.input_data)


class ResumeQuery(msgspec.Struct, kw_only=True):
    checkpoint_id: Name | None = None
    mode: Literal["resume", "fork", "rewind"] | None = None


class BranchRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """From a checkpoint, by its id or the number of its record; without, from the current position. `patch`
    has the partitions input, scratch and artifacts, each merged key by key. `repeat_effects`: a branch
    that starts before a question, because it is asked again, may repeat work with outside effects; else
    409."""

    checkpoint_id: Name | None = None
    seq: Annotated[int, msgspec.Meta(ge=0, le=2**32)] | None = None
    input_data: dict[str, Any] | None = None
    patch: dict[str, Any] | None = None
    repeat_effects: bool = False

    def __post_init__(self) -> None:
        require_outside(self.input_data)
        patched: Any = (self.patch or {}).get("input")
        require_outside(patched if isinstance(patched, dict) else None)  # type: ignore[arg-type]


class GiveInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`content`: the id or the label of an option, a free text if the question allows it, or an object
    `{decision, response_data, comment}`. `request_id` or `checkpoint_id`: which question."""

    content: str | dict[str, Any]
    request_id: Name | None = None
    checkpoint_id: Name | None = None


class ResultQuery(msgspec.Struct, kw_only=True):
    wait: Wait = 0


class ListPending(msgspec.Struct, kw_only=True):
    """`mine`: only of runs that the caller started."""

    thread: str | None = None
    mine: bool = False
    limit: Limit = 50
    cursor: Cursor | None = None
