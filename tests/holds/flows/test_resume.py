"""From the decision to the run that goes on: delivered at least once, applied once, whatever dies between."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from holdfast import BlobMissingError, Context, Flow, Holdfast, Result, RunStatus, Worker
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId
from holdfast.types.status import HoldStatus
from tests.flows.places import RUN, Place

pytestmark = pytest.mark.anyio


def paying(log: list[str]) -> Flow:
    flow = Flow("paying")
    flow.hold("gate", prompt="Pay?", options=["approve", "reject"], bind="verdict", into="filled")

    @flow.node(effect="external", idempotency_key="pay-{{run}}")
    async def pay(s: dict[str, Any]) -> dict[str, Any]:
        log.append(s["verdict"])
        return {"paid": True}

    flow.edge("gate", pay)
    return flow


def damage(path: Path, statements: str) -> None:
    disk = apsw.Connection(str(path))
    disk.execute(statements)
    disk.close()


async def the_hold(hf: Holdfast, result: Result) -> HoldRow:
    (hold,) = await (await hf.open()).holds(run=result.run_id)
    return hold


@pytest.mark.covers("RM-1", "RC-10")
@pytest.mark.parametrize("point", ["after_answer", "after_claim", "inside_settle", "after_settle"])
async def test_a_decision_is_applied_once_when_the_process_dies_between_it_and_the_run(
    place: Place, point: str
) -> None:
    log: list[str] = []
    flow = paying(log)
    hf = await place.hf()
    result = await flow.run({"run": "1"}, on=hf, run_id=RUN)
    with armed(point) as reached, suppress(Crash):
        await (await hf.service()).answer(result.holds[0].id, "approve")
        await flow.resume(RUN, on=hf)
    assert reached.reached
    place.lapse()
    hf = await place.hf()
    result = await flow.resume(RUN, on=hf)
    assert (result.status, result.state["verdict"], log) == (RunStatus.completed, "approve", ["approve"])
    hold = await the_hold(hf, result)
    assert (hold.status, hold.resumed_at is not None) == (HoldStatus.resolved, True)


@pytest.mark.covers("RM-1")
async def test_a_decision_that_is_delivered_twice_is_applied_once(place: Place) -> None:
    log: list[str] = []
    flow, hf = paying(log), await place.hf()
    result = await flow.run({"run": "1"}, on=hf)
    hold = result.holds[0].id
    await (await hf.service()).answer(hold, "approve")
    store = await hf.open()
    assert await store.send(RunId(result.run_id), "answer", hold.encode())
    result = await flow.resume(result.run_id, on=hf)
    assert (result.status, log) == (RunStatus.completed, ["approve"])


@pytest.mark.covers("RM-5")
async def test_a_run_is_reported_again_when_what_should_have_woken_it_was_lost(
    tmp_path: Path, anyio_backend: str
) -> None:
    log: list[str] = []
    flow, clock, path = paying(log), FakeClock(), tmp_path / "lost.db"
    async with Holdfast(f"sqlite:{path}", clock=clock) as hf:
        result = await flow.run({"run": "1"}, on=hf)
        await (await hf.service()).answer(result.holds[0].id, "approve")
    damage(path, "DELETE FROM inbox; UPDATE runs SET ready_at = NULL")
    async with Holdfast(f"sqlite:{path}", clock=clock) as hf:
        await Worker(flow, on=hf).run_until_idle()
        assert log == [], "nobody has told it yet"
        clock.advance(minutes=2)
        await Worker(flow, on=hf).run_until_idle()
        assert log == ["approve"]
        assert (await the_hold(hf, result)).resumed_at is not None


@pytest.mark.covers("RM-2")
async def test_the_decision_is_bound_by_name_and_whole(place: Place) -> None:
    flow, hf = paying([]), await place.hf()
    result = await flow.run({"run": "1"}, on=hf)
    service = await hf.service()
    hold = result.holds[0].id
    await service.answer(hold, "approve", data={"amount": "5.00"}, comment="fine", by="user:dana")
    result = await flow.resume(result.run_id, on=hf)
    text = result.state["verdict_result"]
    assert (result.state["verdict"], result.state["filled"]) == ("approve", {"amount": "5.00"})
    assert (text["decision"], text["response_data"]) == ("approve", {"amount": "5.00"})
    assert (text["comment"], text["resolved_by"], text["auto_expired"]) == ("fine", "user:dana", False)
    assert text["resolved_at"].endswith("Z")
    row = await the_hold(hf, result)
    assert row.resolution is not None
    assert msgspec.json.decode(row.resolution)["decision"] == "approve"


@pytest.mark.covers("RM-3")
async def test_a_run_whose_state_is_gone_fails_and_the_decision_stays(
    tmp_path: Path, anyio_backend: str
) -> None:
    flow, path = Flow("heavy"), tmp_path / "heavy.db"

    @flow.node(effect="pure")
    async def write() -> dict[str, str]:
        return {"text": "x" * 200_000}

    flow.edge(write, flow.hold("look", prompt="Fine?", options=["yes"]))
    async with Holdfast(f"sqlite:{path}") as hf:
        result = await flow.run({}, on=hf)
        await (await hf.service()).answer(result.holds[0].id, "yes")
    damage(path, "DELETE FROM blobs")
    async with Holdfast(f"sqlite:{path}") as hf:
        with pytest.raises(BlobMissingError):
            await flow.resume(result.run_id, on=hf)
        service = await hf.service()
        row = await service.get(result.run_id)
        assert (row.status, (row.error or "").endswith("[state_missing]")) == (RunStatus.failed, True)
        (text,) = [e for e in await service.events(result.run_id) if e.type == "run.damaged"]
        assert text.data["error"]["code"] == "state_missing"
        hold = await the_hold(hf, result)
        assert (hold.status, hold.resumed_at) == (HoldStatus.resolved, None)


@pytest.mark.covers("RM-6")
async def test_the_time_that_a_person_takes_counts_against_no_timeout(place: Place) -> None:
    flow = Flow("slow")

    @flow.script(timeout="1m")
    async def work(ctx: Context) -> dict[str, Any]:
        reply = await ctx.ask("Well?", options=["yes"])
        return {"said": reply.decision}

    result = await flow.run(on=await place.hf())
    place.clock.advance(days=40)
    hf = await place.hf()
    await (await hf.service()).answer(result.holds[0].id, "yes")
    assert (await flow.resume(result.run_id, on=hf)).expect().state == {"said": "yes"}


@pytest.mark.covers("CP-17")
@pytest.mark.parametrize("point", ["inside_settle", "after_settle", "before_park", "after_park"])
async def test_asking_again_finds_the_same_hold_when_the_process_dies_as_it_asks(
    place: Place, point: str
) -> None:
    flow = Flow("asks", effect="pure")

    @flow.node
    async def before() -> None: ...

    flow.edge(before, flow.hold("gate", prompt="Pay?", options=["approve"]))
    await place.crash(flow, {}, point)
    hf = await place.hf()
    service = await hf.service()
    await flow.resume(RUN, on=hf)
    (hold,) = await service.holds(RunId(RUN), open_only=False)
    again = await flow.resume(RUN, on=await place.hf())
    assert [h.id for h in again.holds] == [hold.id]


@pytest.mark.covers("CP-17")
async def test_each_turn_of_a_loop_asks_anew(place: Place) -> None:
    flow = Flow("loop", effect="pure")
    flow.hold("gate", prompt="Again?", options=["again", "done"])

    @flow.node
    async def turn() -> None: ...

    flow.start(turn)
    flow.edge(turn, "gate")
    flow.loop("gate", turn, when="decision == 'again'", max=5)
    hf = await place.hf()
    result = await flow.run(on=hf)
    service = await hf.service()
    for said in ("again", "again", "done"):
        await service.answer(result.holds[0].id, said)
        result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    holds = await service.holds(RunId(result.run_id), open_only=False)
    assert [hold.visit for hold in holds] == [1, 2, 3]
    assert len({hold.id for hold in holds}) == 3


@pytest.mark.covers("G-45")
async def test_a_pause_inside_a_sub_flow_is_answered_where_it_stands(place: Place) -> None:
    child = Flow("child", effect="pure")
    child.hold("inner", prompt="Inside?", options=["yes"], assignee="user:kim", timeout="1d")
    parent = Flow("parent", effect="pure")
    parent.subflow("sub", child)
    hf = await place.hf()
    result = await parent.run({}, on=hf)
    (hold,) = result.holds
    assert (hold.node, hold.scope.startswith("sub"), hold.assignee_value) == ("inner", True, "kim")
    await (await hf.service()).answer(hold.id, "yes")
    result = await parent.resume(result.run_id, on=hf)
    assert result.completed
    assert (await the_hold(hf, result)).resumed_at is not None


async def test_the_row_says_whose_run_it_is_when_somebody_started_it(place: Place) -> None:
    flow, hf = paying([]), await place.hf()
    result = await flow.run({"run": "1"}, on=hf, started_by="user:dana", instance_key="order-7")
    hold = await the_hold(hf, result)
    assert (hold.started_by, hold.instance_key, hold.deployment) == ("user:dana", "order-7", None)
    assert hold.core_id == "flow:paying"
    forked = await flow.fork(result.holds[0].id, on=hf)
    assert (await the_hold(hf, forked)).started_by == "user:dana"


async def test_the_command_line_says_who_starts_a_run(tmp_path: Path, anyio_backend: str) -> None:
    source = (
        'from holdfast import Flow\n\nflow = Flow("x", effect="pure")\nflow.hold("gate", prompt="Pay?")\n'
    )
    (tmp_path / "x.py").write_text(source)
    address = f"sqlite:{tmp_path / 'x.db'}"
    command = [sys.executable, "-m", "holdfast", "run", "x.py", "--store", address, "--by", "user:dana"]
    done = await asyncio.to_thread(subprocess.run, command, cwd=tmp_path, capture_output=True)
    assert done.returncode == 3, done.stderr
    async with Holdfast(address) as hf:
        (hold,) = await (await hf.open()).holds()
        assert hold.started_by == "user:dana"
