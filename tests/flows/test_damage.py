from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.errors import BlobMissingError, CheckpointCorruptError
from holdfast.runs.history.timeline import make_timeline
from holdfast.types.ids import RunId
from holdfast.types.record import Kind, Record
from holdfast.types.value import BlobRef
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = pytest.mark.anyio


class Disk:
    """A SQLite file that goes bad underneath: bytes are changed behind the store's back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.address = f"sqlite:{path}"

    def change(self, sql: str, *values: Any) -> None:
        connection = apsw.Connection(str(self.path))
        connection.execute(sql, values)
        assert connection.changes() >= 1
        connection.close()

    def flip(self, seq: int) -> None:
        """One byte in the middle of a record's payload."""
        connection = apsw.Connection(str(self.path))
        where = "FROM journal WHERE key & 4294967295 = ?"
        ((raw,),) = connection.execute(f"SELECT payload {where}", (seq,))
        connection.close()
        middle = len(raw) // 2
        damaged = raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :]
        self.change("UPDATE journal SET payload = ? WHERE key & 4294967295 = ?", damaged, seq)

    def cut(self, seq: int) -> None:
        sql = (
            "UPDATE journal SET payload = substr(payload, 1, length(payload) - 3) WHERE key & 4294967295 = ?"
        )
        self.change(sql, seq)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "d.db")


def steps(effects: tuple[str, ...]) -> tuple[Flow, list[str]]:
    """Nodes n0, n1, ... of these classes, then a question; and what has run."""
    flow = Flow("line")
    ran: list[str] = []
    before: Any = None
    for i, effect in enumerate(effects):

        async def work(s: Any, ctx: Context) -> dict[str, Any]:
            ran.append(ctx.node)
            return {ctx.node: True}

        handle = flow.node(id=f"n{i}", effect=effect)(work)
        if before is not None:
            flow.edge(before, handle)
        before = handle
    flow.edge(before, flow.timer("wait", "1h"))
    return flow, ran


async def records(hf: Holdfast, run: str) -> list[Record]:
    return await (await hf.service()).store.read(RunId(run))


async def seq_of(hf: Holdfast, run: str, node: str) -> int:
    return next(r.seq for r in await records(hf, run) if r.node == node and r.kind == Kind.step)


@pytest.mark.covers("D-19", "R-39", "R-38", "CORE-BAD-12", "RS-MORE-3")
async def test_run_falls_back_when_only_repeatable_work_is_lost(disk: Disk) -> None:
    flow, ran = steps(("pure", "read", "pure"))
    async with Holdfast(disk.address) as hf:
        run = (await flow.run({}, on=hf)).run_id
        bad = await seq_of(hf, run, "n1")
    disk.flip(bad)
    async with Holdfast(disk.address) as hf:
        result = await flow.resume(run, on=hf)
        assert result.status == "waiting"
        assert ran == ["n0", "n1", "n2", "n1", "n2"]
        service = await hf.service()
        (text,) = [e for e in await service.events(run) if e.type == "run.fell_back"]
        assert f"record {bad}" in text.data["error"]["message"]
        assert "n2 (pure" in text.data["error"]["message"]
        assert (await service.latest(run)).visited == ["n0", "n1", "n2"]
        damaged = next(r for r in await records(hf, run) if r.seq == bad)
        assert (damaged.node, damaged.effect, damaged.outcome) == ("n1", "read", "success"), (
            "kept, with columns"
        )
        assert (await flow.resume(run, on=hf)).status == "waiting"
        assert len([e for e in await service.events(run) if e.type == "run.fell_back"]) == 1


@pytest.mark.covers("D-19", "CORE-BAD-12", "CORE-BAD-13", "CORE-BAD-20", "R-65", "RS-MORE-3")
@pytest.mark.parametrize("how", ["flip", "cut"])
async def test_run_stops_when_a_step_that_touched_the_outside_is_lost(disk: Disk, how: str) -> None:
    flow, ran = steps(("pure", "external", "pure"))
    async with Holdfast(disk.address) as hf:
        run = (await flow.run({}, on=hf)).run_id
        bad = await seq_of(hf, run, "n0")
    getattr(disk, how)(bad)
    async with Holdfast(disk.address) as hf:
        with pytest.raises(CheckpointCorruptError) as caught:
            await flow.resume(run, on=hf)
        assert ran == ["n0", "n1", "n2"]
        assert caught.value.facts["seq"] == bad
        assert "digest" in caught.value.facts
        assert any("n1 (external" in step for step in caught.value.facts["lost"])  # type: ignore[union-attr]
        service = await hf.service()
        row = await service.get(run)
        assert row.status == "failed"
        assert row.error is not None
        assert "CheckpointCorruptError" in row.error
        events = await service.events(run)
        assert "run.damaged" in [e.type for e in events]
        assert "record.unreadable" in [e.type for e in events]
        assert [e.number for e in events] == list(range(1, row.event_seq + 1)), "a cursor meets no gap"
        listed = await service.checkpoints(run, limit=0)
        assert "n0" in [m.node for m in listed], "columns are listed although the payload is damaged"
        with pytest.raises(CheckpointCorruptError):
            await service.checkpoint(run, bad)
        forked = await flow.fork(run, bad - 1, on=hf)
        assert forked.status == "waiting", "an operator forks"
        assert ran[3:] == ["n0", "n1", "n2"]


@pytest.mark.covers("D-19", "D-27")
async def test_nothing_is_lost_when_only_a_snapshot_is_damaged(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.runs.driver.record_writer.SNAPSHOT_RECORDS", 4)
    flow, ran = steps(("pure", "external", "pure", "pure"))
    async with Holdfast(disk.address) as hf:
        run = (await flow.run({}, on=hf)).run_id
        snapshots = [r.seq for r in await records(hf, run) if r.kind == Kind.snapshot]
    assert snapshots
    for seq in snapshots:
        disk.flip(seq)
    async with Holdfast(disk.address) as hf:
        assert (await flow.resume(run, on=hf)).status == "waiting"
        assert ran == ["n0", "n1", "n2", "n3"]


def heavy() -> Flow:
    flow = Flow("heavy")

    async def write() -> dict[str, str]:
        return {"text": "x" * 200_000}

    flow.edge(flow.node(effect="pure")(write), flow.hold("look", prompt="Fine?", options=["yes"]))
    return flow


@pytest.mark.covers("CORE-BAD-14", "CORE-BAD-15", "D-37")
@pytest.mark.parametrize("damage", ["gone", "flipped", "cut"])
async def test_blob_error_names_the_blob_when_it_is_missing_or_damaged(disk: Disk, damage: str) -> None:
    flow = heavy()
    async with Holdfast(disk.address) as hf:
        result = await flow.run({}, on=hf)
        run, hold = result.run_id, result.holds[0].id
        pos_refs = [
            value.digest.hex()
            for r in await records(hf, run)
            if r.kind == Kind.step
            for *_, value in (await hf.service()).runtime.codec_for(flow.program()).decode(r).ops
            if isinstance(value, BlobRef)
        ]
    disk.change(
        {
            "gone": "DELETE FROM blobs",
            "flipped": "UPDATE blobs SET data = zeroblob(length(data))",
            "cut": "UPDATE blobs SET data = substr(data, 1, length(data) - 1)",
        }[damage]
    )
    async with Holdfast(disk.address) as hf:
        service = await hf.service()
        hf.register(flow.program())
        with pytest.raises(BlobMissingError, match=pos_refs[0]):
            await service.latest(run)
        await service.answer(hold, "yes")
        with pytest.raises(BlobMissingError, match=pos_refs[0]):
            await flow.resume(run, on=hf)
        row = await service.get(run)
        assert row.status == "failed"
        assert row.error is not None
        assert "BlobMissingError" in row.error
        assert [m.node for m in await service.checkpoints(run)][-1] == ""


@pytest.mark.covers("D-37", "G-31")
async def test_large_value_of_a_branch_reaches_the_join_when_another_worker_takes_over(disk: Disk) -> None:
    flow = Flow("wide")
    big = "y" * 200_000

    async def begin() -> None:
        return None

    async def write() -> dict[str, str]:
        return {"text": big}

    async def end(s: dict[str, Any]) -> dict[str, int]:
        return {"size": len(s["text"])}

    first, branch, last = (flow.node(effect="pure")(fn) for fn in (begin, write, end))
    ask = flow.hold("look", prompt="Fine?", options=["yes"])
    for middle in (branch, ask):
        flow.edge(first, middle)
        flow.edge(middle, last)
    async with Holdfast(disk.address) as hf:
        result = await flow.run({}, on=hf)
    async with Holdfast(disk.address) as hf:
        await (await hf.service()).answer(result.holds[0].id, "yes")
        assert (await flow.resume(result.run_id, on=hf)).expect().state["size"] == 200_000


async def test_refund_is_whole_when_nothing_is_damaged(disk: Disk) -> None:
    async with Holdfast(disk.address) as hf:
        run = (await refund_flow().run(GIVEN, on=hf)).run_id
        assert not [e for e in await (await hf.service()).events(run) if e.type == "record.unreadable"]


@pytest.mark.covers("CORE-BAD-14")
async def test_timeline_says_what_is_missing_when_the_list_of_a_map_is_gone(disk: Disk) -> None:
    body = Flow("item", effect="pure")
    body.hold("look", prompt="Fine?", options=["yes"])
    flow = Flow("listed", effect="pure")
    flow.map("each", over="items", body=body, into="out", concurrency=1)
    async with Holdfast(disk.address) as hf:
        result = await flow.run({"items": ["x" * 50_000, "y" * 50_000]}, on=hf)
    disk.change("DELETE FROM blobs")
    async with Holdfast(disk.address) as hf:
        hf.register(flow.program())
        service = await hf.service()
        line = await make_timeline(service, await service.get(result.run_id))
        assert "is missing" in line.damage
        with pytest.raises(BlobMissingError, match="is missing"):
            await flow.resume(result.run_id, on=hf)
