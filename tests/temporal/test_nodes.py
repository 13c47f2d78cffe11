"""What happens inside a node on a cluster: live output, notes, results, lost workers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import msgspec
import pytest

pytest.importorskip("temporalio")

from temporalio import activity

from holdfast import Context, Flow, Holdfast
from holdfast.drivers.temporal.activities import Activities
from holdfast.drivers.temporal.exec_view import exec_view
from holdfast.drivers.temporal.notes_document import NotesDocument
from holdfast.drivers.temporal.payloads import ExecNote, Unwritten
from holdfast.drivers.temporal.projection import JournalProjector
from holdfast.errors import LeaseLostError
from holdfast.model.position import Exec, Position
from tests.deadlines import HANG
from tests.services import temporal
from tests.temporal.runs import assert_same, engine_of, run, settled, workers

pytestmark = pytest.mark.anyio
NODE = "holdfast.node"


@pytest.mark.covers("TD-17")
async def test_live_output_is_shown_while_the_node_runs_and_is_not_in_the_history(
    sqlite: str, engine: str
) -> None:
    flow, go = Flow("talks"), asyncio.Event()

    @flow.script
    async def talk(state: Any, ctx: Context) -> dict[str, Any]:
        ctx.emit("hello " * 2000)
        ctx.log.warning("a line")
        await go.wait()
        ctx.emit("before the question")
        reply = await ctx.ask("More?", options=["yes", "no"])
        ctx.emit({"then": reply.decision})
        return {"said": reply.decision}

    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        service = await hf.service()
        created = await flow.submit({}, on=hf)
        async with asyncio.timeout(HANG):
            while not (shown := await emitted(service, created)):
                await service.store.wait_change(0.1)
        assert shown[0] == ("", 1, "hello " * 2000)
        go.set()
        waiting = await settled(flow, hf, created)
        await service.answer(waiting.holds[0].id, "yes")
        done = await settled(flow, hf, created)
        assert done.completed, done
        said = [data for _, _, data in await emitted(service, created)]
        line = {"level": "warning", "text": "a line"}
        assert said == ["hello " * 2000, line, "before the question", {"then": "yes"}]
        await assert_same(hf, created)
        client = await (await engine_of(hf)).client()
        history = await client.get_workflow_handle(created).fetch_history()
        assert b"a line" not in b"".join(event.SerializeToString() for event in history.events)


async def emitted(service: Any, run_id: str) -> list[tuple[str, int, Any]]:
    found = [event for event in await service.events(run_id) if event.type == "node.emitted"]
    assert all(event.node == "talk" for event in found)
    return [(event.scope, event.data["visit"], event.data["data"]) for event in found]


@pytest.mark.covers("TD-15", "TD-20")
async def test_notes_of_an_activity_that_was_given_up_are_read_again_and_no_late_one_enters(
    sqlite: str,
) -> None:
    async with Holdfast(sqlite) as hf:
        store = (await hf.service()).store
        execution = Exec("", 0, 1, 0, 0)

        def document() -> NotesDocument:
            return NotesDocument(store, Unwritten("run", 1, "default", "f", "v", "e", []), "", 0, 1)

        first, second = document(), document()
        await first.enter(1, execution)
        await first.write([ExecNote("record", 3)], execution)
        # The answer to the first call may be lost with its worker.
        assert await document().give_up(1) == await document().give_up(1) == [ExecNote("record", 3)]
        with pytest.raises(LeaseLostError):
            await first.write([ExecNote("record", 4)], execution)
        await second.enter(2, execution)
        assert await document().give_up(2) == []
        # One that was given up before it entered.
        assert await document().give_up(3) == []
        with pytest.raises(LeaseLostError):
            await document().enter(3, execution)
        with pytest.raises(LeaseLostError):
            await document().enter(2, execution)
        await document().enter(4, execution)


@pytest.mark.covers("TD-21")
@pytest.mark.parametrize("inside", [False, True], ids=["node", "substep"])
async def test_late_result_of_a_lost_activity_is_evidence_and_nothing_is_asked_or_repeated(
    inside: bool, sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, paid, asked = Flow("late"), list[int](), asyncio.Event()
    monkeypatch.setattr("temporalio.activity.heartbeat", lambda *_: None)

    async def charge() -> int:
        paid.append(1)
        await asked.wait()
        return 7

    if inside:

        @flow.script
        async def pay(state: Any, ctx: Context) -> dict[str, Any]:
            return {"paid": await ctx.step("charge", charge, effect="external")}
    else:

        @flow.node(id="pay")
        async def pay_directly(state: Any) -> dict[str, Any]:
            return {"paid": await charge()}

    async with Holdfast(sqlite, engine=temporal.own().address("1s")) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
        (hold,) = waiting.holds
        assert "happened" in [option.id for option in hold.options or ()]
        asked.set()
        async with asyncio.timeout(HANG):
            while not (done := await settled(flow, hf, waiting.run_id)).completed:
                await (await hf.service()).store.wait_change(0.1)
        assert (done.state["paid"], paid) == (7, [1])
        await assert_same(hf, waiting.run_id)


@pytest.mark.covers("TD-21")
async def test_execution_that_loses_its_worker_five_times_is_a_dead_letter_and_can_be_retried(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, tried = Flow("cursed", effect="pure"), list[int]()
    heartbeat, silent = activity.heartbeat, [True]
    monkeypatch.setattr("temporalio.activity.heartbeat", lambda *_: None if silent[0] else heartbeat())

    @flow.node(retry=9)
    async def work(state: Any) -> dict[str, Any]:
        tried.append(1)
        if silent[0]:
            await asyncio.sleep(HANG)
        return {"worked": True}

    async with Holdfast(sqlite, engine=temporal.own().address("1s")) as hf, workers(hf, flow):
        done = await run(flow, hf)
        assert done.error is not None
        assert (done.error.code, len(tried)) == ("given_up", 5)
        assert "the workers of node 'work' stopped 5 times" in done.error.message
        await assert_same(hf, done.run_id)
        (listed,) = msgspec.json.decode(await holdfast("dead", "list", "--json", "--store", sqlite))["items"]
        name = (await engine_of(hf)).name
        assert (listed["run"], listed["dead"]) == (done.run_id, True)
        ((death,),) = [listed["deaths"]]
        assert (death["worker"], death["nodes"]) == (name, ["work"])
        silent[0] = False
        await holdfast("dead", "retry", done.run_id, "--store", sqlite)
        done = await settled(flow, hf, done.run_id)
        assert done.state["worked"], done
        row = await (await hf.service()).get(done.run_id)
        assert (row.term, row.dead, len(tried)) == (2, False, 6)
        await assert_same(hf, done.run_id)


async def holdfast(*words: str) -> bytes:
    """The command line."""
    command = [sys.executable, "-m", "holdfast", *words]
    made = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=HANG, check=False)
    assert made.returncode == 0, made.stderr
    return made.stdout


@pytest.mark.covers("TD-18")
async def test_artifacts_costs_memory_routers_and_probes_work_as_with_built_in_workers(
    sqlite: str, engine: str
) -> None:
    flow = Flow("all", memory="snapshot")

    @flow.node(effect="read")
    async def begin(state: Any, ctx: Context) -> dict[str, Any]:
        ctx.artifact("report", {"pages": 3})
        ctx.spent(tokens=40, cost=0.25)
        await ctx.memory.write("the customer likes tea")
        return {"found": len(await ctx.memory.read("tea")), "size": 30}

    @flow.node(effect="pure")
    async def small(state: Any) -> None: ...

    @flow.node(effect="pure")
    async def large(state: Any, ctx: Context) -> dict[str, Any]:
        return {"route": "large", "remembers": len(await ctx.memory.read("tea"))}

    flow.router(begin, lambda s: "large" if s["size"] > 20 else "small", [small, large])
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        done = await run(flow, hf)
        assert done.completed, done
        assert done.artifacts == {"report": {"pages": 3}}
        assert (done.totals["tokens"], done.totals["cost"]) == (40, 0.25)
        assert (done.state["route"], done.state["remembers"]) == ("large", 1)
        await assert_same(hf, done.run_id)


@pytest.mark.covers("TD-18")
async def test_probe_tells_whether_the_effect_of_a_lost_worker_happened(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, paid = Flow("probed"), list[int]()
    monkeypatch.setattr("temporalio.activity.heartbeat", lambda *_: None)

    async def look(state: Any) -> dict[str, Any] | None:
        return {"paid": len(paid)} if paid else None

    @flow.node(probe=look)
    async def pay(state: Any) -> dict[str, Any]:
        paid.append(1)
        await asyncio.sleep(HANG)
        return {}

    async with Holdfast(sqlite, engine=temporal.own().address("1s")) as hf, workers(hf, flow):
        done = await run(flow, hf)
        assert done.completed, done
        assert (done.state["paid"], paid) == (1, [1])
        await assert_same(hf, done.run_id)


@pytest.mark.covers("TD-1", "TD-8", "TD-14")
async def test_store_is_never_ahead_of_the_history_and_an_execution_has_one_activity(
    sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, entered = Flow("owned"), list[tuple[str, int, int]]()
    append = JournalProjector.append

    async def checked(self: Any, program: Any, row: Any, unwritten: Unwritten, idle: str = "") -> Any:
        """What is appended came with an activity, which the history has: its records are no others."""
        assert activity.in_activity()
        return await append(self, program, row, unwritten, idle)

    enter = NotesDocument.enter

    async def counted(self: NotesDocument, entry: int, execution: Exec, **later: bool) -> None:
        await enter(self, entry, execution, **later)
        entered.append((execution.scope, execution.node, entry))

    monkeypatch.setattr(JournalProjector, "append", checked)
    monkeypatch.setattr(NotesDocument, "enter", counted)

    @flow.script
    async def both(state: Any, ctx: Context) -> dict[str, Any]:
        first, second = await ctx.gather(ctx.ask("A?", options=["yes"]), ctx.ask("B?", options=["yes"]))
        return {"answers": [first.decision, second.decision]}

    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
        service = await hf.service()
        # Two answers at once: each of them would start the script again.
        await asyncio.gather(*(service.answer(hold.id, "yes") for hold in waiting.holds))
        async with asyncio.timeout(HANG):
            while not (done := await settled(flow, hf, waiting.run_id)).completed:
                await service.store.wait_change(0.1)
        assert list(done.state["answers"]) == ["yes", "yes"]
        await assert_same(hf, waiting.run_id)
        client = await (await engine_of(hf)).client()
        history = await client.get_workflow_handle(waiting.run_id).fetch_history()
        started = [e for e in history.events if e.HasField("activity_task_scheduled_event_attributes")]
        nodes = [e for e in started if e.activity_task_scheduled_event_attributes.activity_type.name == NODE]
        assert len(nodes) == len(entered) == len({entry for *_, entry in entered})


@pytest.mark.covers("TD-11")
async def test_many_records_are_appended_before_the_next_node_begins(
    sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.drivers.temporal.workflow_journal.MAX_DRAFTS", 5)
    flow, carried = Flow("many"), list[int]()
    append = JournalProjector.append

    async def counted(self: Any, program: Any, row: Any, unwritten: Unwritten, idle: str = "") -> Any:
        carried.append(len(unwritten.drafts))
        return await append(self, program, row, unwritten, idle)

    monkeypatch.setattr(JournalProjector, "append", counted)

    @flow.script
    async def work(state: Any, ctx: Context) -> dict[str, Any]:
        for n in range(12):
            await ctx.step(f"s{n}", lambda: 1, effect="read")
        return {"done": True}

    @flow.node(effect="pure")
    async def after(state: Any) -> None: ...

    flow.edge("work", "after")
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        done = await run(flow, hf)
        assert done.completed, done
        assert max(carried) == 5
        await assert_same(hf, done.run_id)


@dataclass
class Doubled:
    items: list[int]
    doubled: list[int] = field(default_factory=list[int])
    said: str = ""


@pytest.mark.covers("TD-7", "TD-12")
async def test_what_returns_while_a_value_is_fitted_is_kept(
    sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, calls = Flow("beside", state=Doubled), list[str]()
    fitting, returned = asyncio.Event(), asyncio.Event()
    open_ = Activities._open

    async def slow(self: Any, unwritten: Unwritten) -> Any:
        if activity.info().activity_type == "holdfast.fit":
            fitting.set()
            await returned.wait()
        return await open_(self, unwritten)

    monkeypatch.setattr(Activities, "_open", slow)

    async def double(item: int) -> int:
        return item * 2

    @flow.script
    async def talk(state: Doubled, ctx: Context) -> dict[str, Any]:
        said = await ctx.step("say", lambda: calls.append("said") or "hello", effect="external")
        await fitting.wait()
        await ctx.sleep(0.01)
        return {"said": said}

    flow.map("each", over="items", body=double, into="doubled")
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        created = await flow.submit({"items": [1]}, on=hf)
        handle = (await (await engine_of(hf)).client()).get_workflow_handle(created)
        async with asyncio.timeout(HANG):
            await fitting.wait()
            while not await has_taken(handle, nodes=2):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        returned.set()
        done = await settled(flow, hf, created)
        assert done.completed, done
        assert (done.state.doubled, done.state.said, calls) == ([2], "hello", ["said"])
        await assert_same(hf, created)


async def has_taken(handle: Any, *, nodes: int) -> bool:
    """Whether the workflow has seen the results of so many nodes."""
    names, found = dict[int, str](), 0
    for event in (await handle.fetch_history()).events:
        if event.HasField("activity_task_scheduled_event_attributes"):
            about = event.activity_task_scheduled_event_attributes
            names[event.event_id] = about.activity_type.name
        elif event.HasField("activity_task_completed_event_attributes"):
            found += names[event.activity_task_completed_event_attributes.scheduled_event_id] == NODE
        elif event.HasField("workflow_task_completed_event_attributes") and found >= nodes:
            return True
    return False


async def test_run_continues_on_its_worker_when_a_task_of_its_workflow_took_too_long(
    sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK fails such a task after two seconds and removes the workflow from its cache, while the thread
    still works in it."""
    flow, views = Flow("starved", effect="pure"), list[float]()

    async def double(item: int) -> int:
        return item * 2

    def slow_view(pos: Position, execution: Exec, **options: Any) -> Position:
        views.append(monotonic())
        if len(views) <= 40:
            end = monotonic() + 0.08
            while monotonic() < end:
                pass
        return exec_view(pos, execution, **options)

    monkeypatch.setattr("holdfast.drivers.temporal.workflow_nodes.exec_view", slow_view)
    flow.map("each", over="items", body=double, into="doubled", concurrency=40)
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        done = await run(flow, hf, {"items": list(range(40))})
        assert list(done.state["doubled"]) == [2 * item for item in range(40)], done
        assert len(views) > 40
        await assert_same(hf, done.run_id)
