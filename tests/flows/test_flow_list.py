"""The flows that every store must bring to the same end, and their resume at every record."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Holdfast, Result
from holdfast.engine.decision import Decision
from holdfast.runs.driver.record_writer import RecordWriter
from holdfast.runs.recorder.recorder import Recorder, RunQueue
from holdfast.store.rows import NewRun
from holdfast.testing.conformance.flows import FLOWS, FlowCase
from holdfast.types.ids import RunId
from holdfast.types.record import Kind, Record, Side
from tests.flows.conftest import visits_of

pytestmark = pytest.mark.anyio

CASES = pytest.mark.parametrize("case", FLOWS, ids=lambda case: case.name)


def compare(case: FlowCase, result: Result) -> None:
    if case.error is not None:
        assert result.failed
        assert result.error is not None
        assert result.error.code == case.error, result.error
        return
    assert result.completed, result.error
    if case.state is not None:
        assert result.state == case.state
    if case.artifacts is not None:
        assert result.artifacts == case.artifacts


@CASES
@pytest.mark.covers("D-24", "G-10", "G-11", "G-14", "G-15", "G-28", "E3", "E4", "CORE-STORE-08")
async def test_run_comes_to_its_known_end_when_driven_once(hf: Holdfast, case: FlowCase) -> None:
    result = await case.build().run(case.given, on=hf)
    compare(case, result)
    for name, count in case.visits.items():
        assert await visits_of(hf, result.run_id, name) == count, name


@CASES
@pytest.mark.covers("P1", "P2", "E2b", "G-37", "G-38", "D-25")
async def test_run_comes_to_the_same_end_when_its_worker_is_lost_at_any_record(
    case: FlowCase, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    written, boundaries = keep_records(monkeypatch)
    flow = case.build()
    async with Holdfast("memory:") as hf:
        whole = await flow.run(case.given, on=hf)
        row = await (await hf.service()).get(whole.run_id)
        first = await (await hf.service()).store.read(whole.run_id, first=0, last=written[0].seq - 1)
    records = [*first, *written]
    monkeypatch.undo()
    for cut in [len(first) + n for n in boundaries]:
        if any(record.kind == Kind.end for record in records[:cut]):
            break
        async with Holdfast("memory:") as other:
            new = NewRun(
                id=RunId(f"{whole.run_id}-{cut}"), tenant=row.tenant, flow=row.flow, version=row.version,
                code=row.code, lane=row.lane, priority=0, thread=None, instance_key=None,
                idempotency_key=None,
                created_at=row.created_at, ready_at=row.created_at,
                first=[copied(r) for r in records[:cut]],
            )  # fmt: skip
            await (await other.open()).create(new)
            compare(case, await flow.resume(new.id, on=other))


def keep_records(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Record], list[int]]:
    """Every record of the run as it was handed to the recorder, with what it changes beside the journal; and
    where a commit may end: the records of one decision are written together."""
    kept: list[Record] = []
    boundaries: list[int] = [0]
    append, append_all = Recorder.append, RecordWriter.append_all

    def keep(self: Recorder, queue: RunQueue, record: Record, *more: Any) -> Any:
        kept.append(copied(record))
        return append(self, queue, record, *more)

    def mark(self: RecordWriter, decision: Decision) -> None:
        append_all(self, decision)
        boundaries.append(len(kept))

    monkeypatch.setattr(Recorder, "append", keep)
    monkeypatch.setattr(RecordWriter, "append_all", mark)
    return kept, boundaries


def copied(record: Record) -> Record:
    values = {name: getattr(record, name) for name in record.__struct_fields__}
    side = values["side"]
    if side is not None:
        # The copy has no inbox; what was taken from it is in the record.
        kept = {name: getattr(side, name) for name in side.__struct_fields__}
        values["side"] = Side(**{**kept, "inbox_done": []})
    return Record(**values)
