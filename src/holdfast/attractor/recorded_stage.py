"""What a visit of a stage was asked and what it left, read from the journal: the same bytes wherever and
however often it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from holdfast.attractor.run_files import as_json, stage_outcome
from holdfast.attractor.stage_outputs import DIFF, EXCHANGES, RUN, STREAMS, bounded, recorded_diff
from holdfast.attractor.status_file import status_fields
from holdfast.errors import InputError, NotFoundError
from holdfast.frontends.dot.lower import DIALECT
from holdfast.model.fingerprint import dialect_of
from holdfast.model.record_bodies import SubstepBody
from holdfast.runs.driver.load import decode_body
from holdfast.runs.history.versions import readers_of
from holdfast.types.record import Kind, Record

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow

_PAGE: Final = 1_000
_REQUEST: Final = ("preamble", "prompt", "verdict")


class RecordedStage(msgspec.Struct, kw_only=True):
    """One visit of a stage; in a branch, that of the last branch that has it."""

    stage: str
    visit: int
    scope: str = ""
    asked: dict[str, str] = {}
    outputs: dict[str, str] = {}

    @property
    def prompt(self) -> str:
        """What its model was given: the preamble, the prompt, how to report the verdict."""
        return "\n\n".join(self.asked[name] for name in _REQUEST if self.asked.get(name))

    def require_prompt(self) -> str:
        """Raises NotFoundError."""
        if not self.prompt:
            raise NotFoundError(
                f"visit {self.visit} of stage {self.stage!r} has asked no model.",
                hint="`holdfast show RUN STAGE --output NAME` prints what it left.",
            )
        return self.prompt

    def require_output(self, name: str) -> str:
        """Raises NotFoundError."""
        if name not in self.outputs:
            has = ", ".join(self.outputs) or "nothing"
            raise NotFoundError(f"visit {self.visit} of stage {self.stage!r} left no {name}: it has {has}.")
        return self.outputs[name]


async def read_stage(service: RunService, row: RunRow, stage: str, visit: int = 0) -> RecordedStage:
    """`visit`: its number; 0: the last one. Raises InputError and NotFoundError."""
    if dialect_of(row.version) != DIALECT:
        raise InputError(
            f"run {row.id} is a run of flow {row.flow!r}, and only pipelines have stages.",
            hint="`holdfast show RUN --timeline` shows its nodes.",
        )
    readers = await readers_of(service, row)
    blobs = service.runtime.blobs.of(row.tenant)
    found: RecordedStage | None = None
    for record in await _records_of(service, row, stage):
        if visit not in (0, record.visit):
            continue
        reader = readers.at(record.seq)
        body = decode_body(reader.codec, row.id, record)
        await blobs.fill_body(body, reader.codec.registry)
        if found is None or (record.scope, record.visit) != (found.scope, found.visit):
            found = RecordedStage(stage=stage, visit=record.visit, scope=record.scope, asked={}, outputs={})
        if record.kind == Kind.step:
            outcome = stage_outcome(reader.graph, record, body)
            found.outputs["verdict"] = as_json(status_fields(outcome))
        elif record.kind == Kind.attempt and body.reason == "retry":
            found.asked, found.outputs = {}, {}
        elif record.kind == Kind.substep:
            _note(found, cast("SubstepBody", body))
    if found is None:
        what = f"visit {visit} of stage {stage!r}" if visit else f"stage {stage!r}"
        raise NotFoundError(
            f"run {row.id} has no record of {what}.", hint=f"`holdfast show {row.id}` lists its stages."
        )
    return found


async def _records_of(service: RunService, row: RunRow, stage: str) -> list[Record]:
    """Decided by plain columns: only records of the stage are decoded."""
    found: list[Record] = []
    for first in range(row.horizon, row.head + 1, _PAGE):
        records = await service.store.read(row.id, first=first, last=min(row.head, first + _PAGE - 1))
        kinds = (Kind.step, Kind.substep, Kind.attempt)
        found += [record for record in records if record.node == stage and record.kind in kinds]
    return found


def _note(found: RecordedStage, body: SubstepBody) -> None:
    noted: Any = body.value
    diff = recorded_diff(body.name, noted)
    if diff:
        found.outputs[DIFF] = diff
    if not isinstance(noted, Mapping):
        return
    value = cast("Mapping[str, Any]", noted)
    if body.name == RUN:
        for name in STREAMS:
            if value.get(name):
                found.outputs[name] = bounded(found.outputs.get(name, "") + str(value[name]))
        return
    if body.name not in EXCHANGES:
        return
    found.asked |= {name: value[name] for name in _REQUEST if isinstance(value.get(name), str)}
    if isinstance(value.get("text"), str):
        found.outputs["response"] = bounded(value["text"])
