"""What is sent to do something with runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from holdfast.api.schemas.common import Cursor, Limit, Name, Wait
from holdfast.api.schemas.input_guard import demand_outside
from holdfast.types.status import RunStatus


class ListRuns(msgspec.Struct, kw_only=True):
    status: list[RunStatus] = []
    flow: str | None = None
    version: str | None = None
    thread: str | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class CreateRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`workflow_uri` (or `flow`): a name, `name@version`, or a file that the operator allows. `wait`: so many
    seconds, until the run has ended or waits for a person."""

    workflow_uri: Name | None = None
    flow: Name | None = None
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
        demand_outside(self.input)


class CancelRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = "cancelled"


class ResumeRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Without a checkpoint and an input the run itself goes on. `mode`: `fork` or `rewind` in any case."""

    checkpoint_id: Name | None = None
    input_data: dict[str, Any] | None = None
    mode: Literal["resume", "fork", "rewind"] = "resume"
    accept_loss: bool = False

    def __post_init__(self) -> None:
        demand_outside(self.input_data)


class ResumeQuery(msgspec.Struct, kw_only=True):
    checkpoint_id: Name | None = None
    mode: Literal["resume", "fork", "rewind"] | None = None


class BranchRun(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """From a checkpoint, by its id or the number of its record; without, from where the run stands. `patch`
    has the partitions input, scratch and artifacts, each merged key by key."""

    checkpoint_id: Name | None = None
    seq: Annotated[int, msgspec.Meta(ge=0, le=2**32)] | None = None
    input_data: dict[str, Any] | None = None
    patch: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        demand_outside(self.input_data)
        patched: Any = (self.patch or {}).get("input")
        demand_outside(patched if isinstance(patched, dict) else None)  # type: ignore[arg-type]


class GiveInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`content`: the id or the label of an answer, a text of one's own where the question takes that, or an
    object `{decision, response_data, comment}`. `request_id` or `checkpoint_id`: which question."""

    content: str | dict[str, Any]
    request_id: Name | None = None
    checkpoint_id: Name | None = None


class Waiting(msgspec.Struct, kw_only=True):
    wait: Wait = 0


class ListPending(msgspec.Struct, kw_only=True):
    """`mine`: only of runs that the caller started."""

    thread: str | None = None
    mine: bool = False
    limit: Limit = 50
    cursor: Cursor | None = None
