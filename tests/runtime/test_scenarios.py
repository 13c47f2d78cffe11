"""Whole flows, chains of checkpoints and shapes of failure: RS-FLOW, RS-CHAIN, RS-FAIL, RS-CONF, RS-MORE."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Worker
from holdfast.errors import RunBusyError, ValueNotStorableError
from holdfast.store.rows import ClaimRequest
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.status import RunStatus
from tests.flows.places import RUN, Place, answer, open_holds
from tests.runtime.people import Seen, State, approval, breaking, line, listed, step, until

pytestmark = pytest.mark.anyio


@pytest.mark.covers("RS-FLOW-4", "RS-CHAIN-8", "RS-FAIL-1")
async def test_a_raising_node_leaves_a_failed_checkpoint_and_skips_what_follows(hf: Holdfast) -> None:
    seen = Seen()
    seen.broken = True
    flow = breaking("raises", seen)

    result = await flow.run({"amount": 1}, on=hf)

    assert (result.status, result.failed_node) == ("failed", "two")
    assert "the bank is closed" in result.error.message  # type: ignore[union-attr]
    assert seen.calls == ["one", "two"]
    chain = await listed(hf, result.run_id)
    assert chain[0].status == "failed"
    picture = await (await hf.service()).checkpoint(chain[0].id)
    assert picture.visited == ["one"]
    assert picture.state["trace"] == ["one"]
    assert (picture.input, picture.node_results["one"].outcome) == ({"amount": 1}, "success")


@pytest.mark.covers("RS-FAIL-2")
async def test_dependants_run_and_the_run_completes_when_a_failure_is_a_value(
    hf: Holdfast,
) -> None:
    seen = Seen()
    flow = Flow("returns", effect="pure")

    @flow.node(on_failure="skip")
    async def broken(s: State) -> State:
        seen.calls.append("broken")
        raise RuntimeError("not today")

    after = step(flow, "after", seen)
    flow.edge(broken, after)

    result = await flow.run({}, on=hf)

    assert result.completed
    assert seen.calls == ["broken", "after"]
    picture = await (await hf.service()).latest(result.run_id)
    assert [e.outcome for e in picture.executions] == ["skipped", "success"]


@pytest.mark.covers("RS-FAIL-4")
async def test_a_cancelled_run_is_never_completed(hf: Holdfast) -> None:
    seen = Seen()
    flow = approval("cancelled", seen)
    waiting = await flow.run({"amount": 1}, on=hf)
    service = await hf.service()
    await service.cancel(waiting.run_id, reason="changed my mind")

    result = await flow.resume(waiting.run_id, on=hf)

    assert result.status == "cancelled"
    assert not result.completed
    assert await open_holds(hf, waiting) == []
    assert "completed" not in {c.status for c in await listed(hf, waiting.run_id)}
    assert seen.calls == ["before"]


@pytest.mark.covers("RS-CHAIN-3", "RS-CHAIN-4", "RS-CHAIN-5", "RS-CHAIN-1", "RS-CHAIN-2")
async def test_a_chain_leads_from_each_checkpoint_to_the_one_that_holds_the_input(hf: Holdfast) -> None:
    flow = line("chain", Seen(), "one", "two")
    step(flow, "beside", Seen())
    first, second = await flow.run({"n": 1}, on=hf), await flow.run({"n": 2}, on=hf)
    service = await hf.service()
    roots: list[str] = []
    for result, given in ((first, {"n": 1}), (second, {"n": 2})):
        metas = await listed(hf, result.run_id)
        chain = [await service.checkpoint(meta.id) for meta in metas]
        assert sorted(c.node for c in chain) == ["", "", "beside", "one", "two"]
        assert {(c.run, c.flow, c.version) for c in chain} == {
            (result.run_id, "chain", flow.program().version)
        }
        for newer, older in itertools.pairwise(chain):
            assert newer.parent == older.id
        assert chain[-1].parent is None
        assert chain[-1].input == given
        roots.append(chain[-1].id)
    assert roots[0] != roots[1]


@pytest.mark.covers("RS-CHAIN-7", "RS-FLOW-6", "R-54")
async def test_the_newest_checkpoints_stay_whole_when_their_parents_were_pruned(hf: Holdfast) -> None:
    flow = line("pruned", Seen(), *"abcdefgh")
    keeps, other = await flow.run({"n": 1}, on=hf), await flow.run({"n": 2}, on=hf)
    service = await hf.service()
    before = await listed(hf, keeps.run_id)
    untouched = await listed(hf, other.run_id)

    assert await service.prune(keeps.run_id, keep=3) > 0

    after = await listed(hf, keeps.run_id)
    assert [c.id for c in after] == [c.id for c in before[:3]]
    oldest = await service.checkpoint(after[-1].id)
    assert oldest.state["trace"] == list("abcdefgh")[: len(oldest.state["trace"])]
    assert (await service.latest(keeps.run_id)).state == keeps.state
    assert await listed(hf, other.run_id) == untouched


@pytest.mark.covers("R-56", "RF-6")
async def test_a_waiting_run_is_never_pruned(hf: Holdfast) -> None:
    flow = approval("kept", Seen())
    waiting = await flow.run({"amount": 1}, on=hf)
    service = await hf.service()
    before = await listed(hf, waiting.run_id)
    with pytest.raises(RunBusyError):
        await service.prune(waiting.run_id, keep=1)
    await service.clean(keep=1, older_than=0.0)
    assert await listed(hf, waiting.run_id) == before
    await answer(hf, waiting, "approve")
    assert (await flow.resume(waiting.run_id, on=hf)).completed


@pytest.mark.covers("RS-FLOW-11", "RS-SER-2")
async def test_binary_input_is_kept_and_file_objects_are_refused_with_the_place(hf: Holdfast) -> None:
    flow = line("binary", Seen(), "one")
    data = bytes(range(256)) * 300

    result = await flow.run({"name": "a.bin", "content": io.BytesIO(data).getvalue()}, on=hf)

    service = await hf.service()
    assert (await service.latest(result.run_id)).input == {"name": "a.bin", "content": data}
    assert result.state["content"] == data
    nameless, named = io.BytesIO(data), io.BytesIO(data)
    named.name = "a.bin"  # type: ignore[misc]
    for stream in (nameless, named):
        with pytest.raises(ValueNotStorableError, match="content"):
            await flow.run({"content": stream}, on=hf)


@pytest.mark.covers("RS-SER-4")
@pytest.mark.parametrize(
    "given",
    [
        {"__type__": "bytes", "data": "AAE="},
        {"$type": "Decimal", "value": "1"},
        {"__class__": "os.system", "__dict__": {}},
        {"blob": "00", "size": 1},
    ],
)
async def test_a_mapping_that_looks_like_a_marker_is_left_alone(hf: Holdfast, given: State) -> None:
    flow = line("marker", Seen(), "one")
    result = await flow.run({"given": given}, on=hf)
    picture = await (await hf.service()).latest(result.run_id)
    assert picture.state["given"] == given
    assert picture.input == {"given": given}


@pytest.mark.covers("RS-SER-5", "RS-SER-6")
@pytest.mark.parametrize("asks", [0, 1, 3])
async def test_a_checkpoint_comes_back_equal_and_its_json_form_is_plain(place: Place, asks: int) -> None:
    flow = Flow("round_trip", effect="pure")

    @flow.node
    async def make(ctx: Context) -> State:
        ctx.artifact("report", b"\x00\xff")
        ctx.spent(tokens=3, cost=0.5)
        return {"pair": (1, 2), "keys": {1: b"x"}, "text": "grün 🌱"}

    for number in range(asks):
        gate = flow.hold(f"gate{number}", prompt=f"Go {number}?", options=["yes"], bind=f"d{number}")
        flow.edge(make, gate)
    first = await place.hf()
    result = await flow.run({"given": b"\x01"}, on=first)
    second = await place.hf()
    second.register(flow.program())
    for meta in await listed(first, result.run_id):
        one = await (await first.service()).checkpoint(meta.id)
        other = await (await second.service()).checkpoint(meta.id)
        assert one == other
        interface = one.as_interface()
        assert json.loads(json.dumps(interface)) == interface
    newest = await (await second.service()).latest(result.run_id)
    assert len(newest.pending_input) == asks
    assert newest.status == ("pending_input" if asks else "completed")
    assert newest.state["pair"] == (1, 2)
    assert newest.state["keys"] == {1: b"x"}
    assert newest.artifacts == {"report": b"\x00\xff"}


@pytest.mark.covers("RS-CONF-1")
@pytest.mark.parametrize(("given", "expected"), [(None, "barrier"), ("strict", "strict"), ("exit", "exit")])
async def test_the_settings_of_a_run_survive_its_resume(
    place: Place, given: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.runs.driver.driver import Driver

    flow = approval("settings", Seen())
    waiting = await flow.run({"amount": 1}, on=await place.hf(), **({"mode": given} if given else {}))
    hf = await place.hf()
    await answer(hf, waiting, "approve")
    found: list[str] = []
    drive = Driver.drive

    async def look(self: Driver) -> RunStatus:
        found.append("strict" if self.writer.strict else "exit" if self.session.queue.lazy else "barrier")
        return await drive(self)

    monkeypatch.setattr(Driver, "drive", look)
    assert (await flow.resume(waiting.run_id, on=hf)).completed
    assert found == [expected]


@pytest.mark.covers("RF-5", "RS-CHAIN-2")
async def test_each_parallel_node_is_durable_when_it_ends_itself(
    hf: Holdfast,
) -> None:
    flow = Flow("batch", effect="pure")
    may_end = asyncio.Event()
    for name in ("quick", "quicker"):
        step(flow, name, Seen())

    @flow.node
    async def slow(s: State) -> State:
        await may_end.wait()
        return {"slow": True}

    service = await hf.service()
    row, _ = await service.create(flow.program(), {})
    running = asyncio.create_task(flow.resume(row.id, on=hf))
    try:

        async def both() -> bool:
            return {"quick", "quicker"} <= {c.node for c in await listed(hf, row.id)}

        await until(both)
        assert not running.done()
    finally:
        may_end.set()
    assert (await running).completed


@pytest.mark.covers("RF-7", "RS-FLOW-5", "RS-FLOW-7")
async def test_thirty_runs_on_one_flow_object_are_kept_apart(hf: Holdfast) -> None:
    flow = Flow("shared", effect="pure")

    @flow.node
    async def one(s: State) -> State:
        await asyncio.sleep(0.001 * (s["n"] % 5))
        return {"seen": [s["n"]]}

    @flow.script
    async def two(s: State, ctx: Context) -> State:
        found = await ctx.step("own", _echo, ctx.run_id, effect="read")
        return {"own": found, "seen": [*s["seen"], s["n"]]}

    flow.edge(one, two)
    results = await asyncio.gather(*(flow.run({"n": n}, on=hf) for n in range(30)))
    assert [r.state["seen"] for r in results] == [[n, n] for n in range(30)]
    assert [r.state["own"] for r in results] == [r.run_id for r in results]
    assert len({r.run_id for r in results}) == 30


async def _echo(value: str) -> str:
    await asyncio.sleep(0)
    return value


@pytest.mark.covers("R-53", "RS-MORE-1", "RF-10", "R-34", "R-35")
async def test_a_hundred_runs_complete_once_each_when_a_worker_dies_among_them(place: Place) -> None:
    seen = Seen()
    flow = Flow("hundred", effect="pure")

    @flow.node
    async def work(s: State) -> State:
        seen.calls.append(s["n"])
        return {"done": s["n"]}

    hf = await place.hf()
    service = await hf.service()
    runs = [(await service.create(flow.program(), {"n": n}))[0].id for n in range(100)]
    dead = await service.store.claim(ClaimRequest(worker="dead", ttl=30_000_000, limit=20))
    assert len(dead) == 20

    await Worker(flow, on=hf, concurrency=20).run_until_idle()
    assert len(seen.calls) == 80
    place.lapse()
    workers = [Worker(flow, on=await place.hf()) for _ in range(2)]
    await asyncio.gather(*(worker.run_until_idle() for worker in workers))

    assert sorted(seen.calls) == list(range(100))
    assert {(await service.get(run)).status for run in runs} == {RunStatus.completed}


@pytest.mark.covers("RS-MORE-6", "R-36")
async def test_finished_items_are_not_repeated_when_a_map_is_killed_after_three_of_ten(place: Place) -> None:
    seen = Seen()
    flow = Flow("ten", effect="pure", mode="strict")

    async def work(item: int) -> int:
        seen.calls.append(str(item))
        return item * item

    flow.map("each", over="items", body=work, into="squares", concurrency=1)
    hf = await place.hf()
    with armed("after_handler", nth=4), pytest.raises(Crash):
        await flow.run({"items": list(range(10))}, on=hf, run_id=RUN)
    assert seen.calls == ["0", "1", "2", "3"]
    place.lapse()

    result = await flow.resume(RUN, on=await place.hf())

    assert result.state["squares"] == [n * n for n in range(10)]
    assert seen.calls == ["0", "1", "2", "3", "3", "4", "5", "6", "7", "8", "9"]


@pytest.mark.covers("RF-10", "RS-MORE-1")
async def test_one_of_two_resumes_wins_and_the_other_is_reported(place: Place) -> None:
    seen = Seen()
    flow = Flow("both", effect="pure")
    began, may_end = asyncio.Event(), asyncio.Event()

    @flow.node
    async def work(s: State) -> State:
        seen.calls.append("work")
        began.set()
        await may_end.wait()
        return {}

    first = await place.hf()
    service = await first.service()
    row, _ = await service.create(flow.program(), {})
    winner = asyncio.create_task(flow.resume(row.id, on=first))
    await began.wait()
    with pytest.raises(RunBusyError):
        await flow.resume(row.id, on=await place.hf())
    may_end.set()
    assert (await winner).completed
    assert seen.calls == ["work"]


@pytest.mark.covers("R-60", "RS-FLOW-3")
@pytest.mark.parametrize("sync_nodes", [False, True])
async def test_sync_and_async_runs_give_the_same_result_and_events(hf: Holdfast, sync_nodes: bool) -> None:
    flow = Flow("alike", effect="pure")

    def plain(s: State) -> State:
        return {"n": s["n"] + 1}

    async def waiting(s: State) -> State:
        return {"n": s["n"] + 1}

    one = flow.node(id="one")(plain if sync_nodes else waiting)
    two = flow.node(id="two")(waiting if sync_nodes else plain)
    flow.edge(one, two)
    service = await hf.service()
    lines: list[Any] = []
    for result in (await flow.run({"n": 1}, on=hf), flow.run_sync({"n": 1}, on=hf)):
        events = await service.events(result.run_id)
        lines.append((result.status, result.state, [(e.type, e.node) for e in events]))
    assert lines[0] == lines[1]
