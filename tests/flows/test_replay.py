"""Replay: the decisions of a run made again, and the first that would be another.

That every run of every test in this folder replays is checked by its conftest; here are those that must not,
and those with a history that was cut, branched or damaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import END, Flow, Holdfast, Retry
from holdfast.engine import edge_choice
from holdfast.errors import CheckpointCorruptError, CheckpointNotFoundError
from holdfast.model.graph import Graph
from holdfast.runs.history.replay import Replay
from holdfast.types.ids import RunId
from holdfast.types.record import Kind, Record
from tests.flows.places import answer
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = pytest.mark.anyio


async def completed(hf: Holdfast, flow: Flow, given: Any = GIVEN) -> str:
    result = await flow.run(given, on=hf)
    if result.waiting:
        await answer(hf, result, "approve")
        result = await flow.resume(result.run_id, on=hf)
    return result.expect().run_id


async def replayed(hf: Holdfast, run: str, **options: Any) -> Replay:
    return await (await hf.service()).replay(run, **options)


class Forger:
    """Rewrites records in a SQLite file, digests and all, as only somebody with the keys to it can."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def forge(self, hf: Holdfast, run: str, seq: int, change: Any) -> None:
        service = await hf.service()
        row = await service.get(run)
        codec = service.runtime.codec_for(service.runtime.program_for(row.version, row.flow))
        (record,) = await service.store.read(row.id, first=seq, last=seq)
        body = codec.decode(record)
        change(record, body)
        codec.encode(record, body, record.term)
        self._write(record)

    def _write(self, record: Record) -> None:
        connection = apsw.Connection(str(self.path))
        connection.execute(
            "UPDATE journal SET payload = ?, digest = ?, outcome = ? WHERE key & 4294967295 = ?",
            (record.payload, record.digest, record.outcome, record.seq),
        )
        assert connection.changes() == 1
        connection.close()


async def step_of(hf: Holdfast, run: str, node: str) -> int:
    records = await (await hf.service()).store.read(RunId(run))
    return next(r.seq for r in records if r.kind == Kind.step and r.node == node)


@pytest.mark.covers("TOOL-TIME-06")
async def test_replay_names_exactly_the_record_that_was_forged(tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    async with Holdfast(f"sqlite:{path}") as hf:
        run = await completed(hf, refund_flow())
        seq = await step_of(hf, run, "assess")
        forger = Forger(path)

        def pays_at_once(record: Record, body: Any) -> None:
            graph = refund_flow().program().graph
            edge = next(i for i, e in enumerate(graph.edges) if (e.source, e.target) == ("assess", "pay"))
            body.moves = [("F", "", edge, 0)]

        await forger.forge(hf, run, seq, pays_at_once)
        found = await replayed(hf, run)
        assert not found.same
        assert found.difference is not None
        assert (found.difference.seq, found.difference.node) == (seq, "assess")
        assert found.difference.fields == ["moves"]
        assert "pay" in found.difference.then
        assert "started approve" in found.difference.now


@pytest.mark.covers("TOOL-TIME-06")
async def test_replay_finds_a_forged_answer_by_the_way_it_leads(tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    async with Holdfast(f"sqlite:{path}") as hf:
        run = await completed(hf, refund_flow())
        seq = await step_of(hf, run, "approve")

        def rejected(_record: Record, body: Any) -> None:
            said = {**body.ops[1][3], "decision": "reject"}
            body.ops = [(*body.ops[0][:3], "reject"), (*body.ops[1][:3], said)]

        await Forger(path).forge(hf, run, seq, rejected)
        found = await replayed(hf, run)
        assert found.difference is not None
        assert found.difference.seq == seq
        assert "moves" in found.difference.fields


@pytest.mark.covers("TOOL-TIME-06")
async def test_damaged_record_is_no_difference_but_damage(tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    async with Holdfast(f"sqlite:{path}") as hf:
        run = await completed(hf, refund_flow())
        connection = apsw.Connection(str(path))
        connection.execute("UPDATE journal SET outcome = 'fail' WHERE key & 4294967295 = 1")
        connection.close()
        with pytest.raises(CheckpointCorruptError, match="record 1"):
            await replayed(hf, run)
        with pytest.raises(CheckpointNotFoundError, match="has the records 0 to"):
            await replayed(hf, run, upto=1000)
        connection = apsw.Connection(str(path))
        connection.execute("DELETE FROM journal WHERE key & 4294967295 = 1")
        connection.close()
        with pytest.raises(CheckpointCorruptError, match="record 1 is missing"):
            await replayed(hf, run)


@pytest.mark.covers("TOOL-TIME-05")
async def test_replay_leads_to_one_digest_with_and_without_the_flows_code(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Money:
        cents: int

    flow = Flow("typed", effect="pure", types=[Money])
    flow.start(flow.node(id="a")(lambda s: {"paid": Money(5), "huge": 7**9000}))
    address = f"sqlite:{tmp_path / 't.db'}"
    async with Holdfast(address) as hf:
        run = (await flow.run({}, on=hf)).expect().run_id
        exact = await replayed(hf, run)
    async with Holdfast(address) as hf:
        plain = await replayed(hf, run)
    assert exact.same
    assert plain.same
    assert (exact.exact, plain.exact) == (True, False)
    assert exact.recorded == plain.recorded


@pytest.mark.covers("TOOL-TIME-06", "TOOL-TIME-05")
async def test_replay_finds_a_changed_rule_of_the_engine(
    bare_hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await completed(bare_hf, refund_flow())
    assert (await replayed(bare_hf, run)).same
    monkeypatch.setattr(edge_choice, "truthy", lambda _value: False)
    found = await replayed(bare_hf, run)
    assert found.difference is not None
    assert (found.difference.seq, found.difference.node) == (
        await step_of(bare_hf, run, "assess"),
        "assess",
    )


def tried(attempts: int) -> Flow:
    flow = Flow("tried", effect="read")
    calls: list[int] = []

    @flow.node(retry=Retry(attempts, delay=0.001))
    async def flaky(s: dict[str, Any]) -> dict[str, Any]:
        calls.append(1)
        if len(calls) < 3:
            raise OSError("not yet")
        return {"done": True}

    flow.start(flaky)
    return flow


@pytest.mark.covers("TOOL-TIME-06")
async def test_replay_against_a_version_with_fewer_attempts_names_the_retry(hf: Holdfast) -> None:
    run = (await tried(3).run({}, on=hf)).expect().run_id
    fewer: Graph = tried(2).program().graph
    found = await replayed(hf, run, against=fewer)
    retries = [r.seq for r in await (await hf.service()).store.read(RunId(run)) if r.outcome == "retry"]
    assert found.difference is not None
    assert found.difference.seq == retries[1]
    assert found.difference.kind == "attempt"
    assert "settled with 'fail'" in found.difference.now
    assert (await replayed(hf, run, against=tried(3).program().graph)).same
    assert (await replayed(hf, run, against=tried(4).program().graph)).same


def compared(when: str) -> Flow:
    flow = Flow("compared", effect="pure")
    flow.node(id="count")(lambda: {"n": "3"})
    flow.node(id="more")(lambda: None)
    flow.edge("count", "more", when=when)
    flow.edge("count", END, otherwise=True)
    return flow


@pytest.mark.covers("TOOL-TIME-06")
async def test_replay_says_why_the_run_stops_where_it_went_on(hf: Holdfast) -> None:
    run = (await compared("n == 'x'").run({}, on=hf)).expect().run_id
    found = await replayed(hf, run, against=compared("n == 3").program().graph)
    assert found.difference is not None
    assert "failing (NotComparableError: edge 'count->more': its condition 'n == 3'" in found.difference.now


@pytest.mark.covers("TOOL-TIME-05")
async def test_replay_begins_where_a_pruned_run_or_a_fork_does(bare_hf: Holdfast) -> None:
    flow = refund_flow()
    run = await completed(bare_hf, flow)
    service = await bare_hf.service()
    row = await service.get(run)
    for seq in range(row.head):
        made = await service.fork(run, seq)
        await flow.resume(made.id, on=bare_hf)
        found = await replayed(bare_hf, made.id)
        assert found.same, (seq, found.difference)
        assert found.given >= 1
    for keep in (4, 3, 2, 1):
        await service.prune(run, keep=keep)
        found = await replayed(bare_hf, run)
        assert found.same, (keep, found.difference)
    assert found.records < row.head


@pytest.mark.covers("TOOL-TIME-05")
async def test_replay_passes_over_what_a_run_fell_back_behind(tmp_path: Path) -> None:
    broken = [True]
    flow = Flow("line", effect="pure")
    before: Any = None
    for i in range(4):

        async def work(s: dict[str, Any], i: int = i) -> dict[str, Any]:
            if i == 3 and broken:
                raise ValueError("not today")
            return {"last": i}

        node = flow.node(id=f"n{i}")(work)
        if before is None:
            flow.start(node)
        else:
            flow.edge(before, node)
        before = node
    path = tmp_path / "f.db"
    async with Holdfast(f"sqlite:{path}") as hf:
        run = (await flow.run({}, on=hf)).run_id
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE journal SET payload = x'00' WHERE key & 4294967295 = 2")
    connection.close()
    broken.clear()
    async with Holdfast(f"sqlite:{path}") as hf:
        (await flow.resume(run, on=hf)).expect()
        found = await replayed(hf, run)
        assert found.same, found.difference
        assert found.given > 0
