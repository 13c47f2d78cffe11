"""What a run costs on a cluster, counted: its history, its activities, and writes to the store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("temporalio")

from temporalio.converter import WorkflowSerializationContext

from bench.targets import TARGETS
from bench.temporal import Pair
from holdfast import Context, Flow, Holdfast
from holdfast.app.flow import wait_until_idle
from holdfast.drivers.temporal.notes_document import NOTES, NotesDocument
from holdfast.drivers.temporal.payload_codec import RunPayloadConverter, converter_for
from holdfast.drivers.temporal.payloads import FitReply, RecordRegistry, Unwritten, Wire
from holdfast.drivers.temporal.workflow_journal import _Fits, _NeedsFit
from holdfast.drivers.temporal.workflow_runner import _OneThread
from holdfast.errors import LeaseLostError
from holdfast.model.position import Exec
from holdfast.store.protocols import Store
from tests.deadlines import HANG
from tests.temporal.runs import assert_same, run, workers

pytestmark = pytest.mark.anyio


@pytest.mark.covers("TD-50", "TD-51")
async def test_history_and_answers_cost_little_more_than_those_of_a_bare_workflow(
    sqlite: str, engine: str
) -> None:
    async with Holdfast(sqlite, engine=engine) as hf, Pair.on(hf) as pair:
        ours, bare = await pair.both(1)
        (events, size), (bare_events, bare_size) = await pair.sizes(ours.run, bare.run)
        assert events / bare_events <= TARGETS["J-events"].most
        assert size / bare_size <= TARGETS["J-bytes"].most
        activities, tasks = await pair.after_answer()
        assert activities <= TARGETS["J-answer-activities"].most
        assert tasks <= TARGETS["J-answer-tasks"].most


@contextmanager
def counted(store: Store, *names: str) -> Iterator[Counter[str]]:
    found: Counter[str] = Counter()

    def counting(name: str) -> Any:
        call = getattr(store, name)

        async def made(*given: Any, **options: Any) -> Any:
            # Others are of the worker itself.
            found[name] += name != "put_document" or given[0].kind == NOTES
            return await call(*given, **options)

        return made

    with pytest.MonkeyPatch.context() as patched:
        for name in names:
            patched.setattr(store, name, counting(name))
        yield found


@pytest.mark.covers("TD-9")
async def test_step_that_may_be_repeated_is_one_commit(sqlite: str, engine: str) -> None:
    flow = Flow("line", effect="pure")

    async def step(state: Any) -> dict[str, Any]:
        return {"n": state["n"] + 1}

    flow.chain(*(flow.node(id=f"n{number}")(step) for number in range(5)))
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow) as (worker,):
        with counted(worker.store, "settle", "put_document") as calls:
            done = await run(flow, hf, {"n": 0})
        assert done.state["n"] == 5
        # The first has nothing to append, and the end is appended after the last.
        assert (calls["settle"], calls["put_document"]) == (5, 0)
        await assert_same(hf, done.run_id)


@pytest.mark.covers("TD-15", "TD-20")
async def test_effect_inside_a_pure_node_is_noted_before_it_begins(sqlite: str, engine: str) -> None:
    flow, noted = Flow("inside", effect="pure"), list[int]()

    @flow.node
    async def work(_state: Any, ctx: Context) -> dict[str, Any]:
        async def effect() -> str:
            noted.append(calls["put_document"])
            return "sent"

        return {"did": await ctx.step("send", effect, effect="external")}

    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow) as (worker,):
        with counted(worker.store, "put_document") as calls:
            done = await run(flow, hf)
        assert done.state["did"] == "sent"
        # Its execution was entered, and its intent written.
        assert noted == [2]
        await assert_same(hf, done.run_id)


@pytest.mark.covers("TD-20")
async def test_activity_that_was_given_up_before_its_first_note_can_note_nothing(sqlite: str) -> None:
    async with Holdfast(sqlite) as hf:
        store = (await hf.service()).store
        unwritten, execution = Unwritten("run", 1, "default", "f", "v", "e", []), Exec("", 0, 1, 0, 0)

        def notes() -> NotesDocument:
            return NotesDocument(store, unwritten, "", 0, 1)

        lost = notes()
        await lost.enter(1, execution, later=True)
        assert await notes().give_up(1) == []
        with pytest.raises(LeaseLostError):
            await lost.write([], execution)
        second = notes()
        await second.enter(2, execution, later=True)
        await second.write([], execution)
        await second.require_current()


def test_reply_to_another_question_about_a_value_is_not_used() -> None:
    wire, execution = Wire(RecordRegistry()), Exec("", 0, 1, 0, 0)
    ops: list[Any] = [("scratch", "n", "set", 1)]
    other: list[Any] = [("scratch", "n", "set", 2)]
    reply = FitReply(ops=other)
    fits = _Fits(wire, [(wire.question(execution, ops), reply)])
    assert fits.ops(None, execution, ops) == other  # type: ignore[arg-type]
    fits = _Fits(wire, [(wire.question(execution, other), reply)] * 2)
    for _ in range(2):
        with pytest.raises(_NeedsFit):
            fits.ops(None, execution, ops)  # type: ignore[arg-type]


async def test_process_that_waits_for_a_run_it_advances_is_not_woken_by_other_runs(sqlite: str) -> None:
    flow, looked = Flow("waits", effect="pure"), asyncio.Event()

    @flow.node
    async def work(_state: Any) -> None: ...

    async with Holdfast(sqlite) as hf:
        run_id = await flow.submit({}, on=hf)
        service = await hf.service()
        wait_change, get_run = service.store.wait_change, service.store.get_run
        woken: list[str] = []

        async def waiting(timeout: float) -> bool:
            woken.append("by a change of the store")
            return await wait_change(timeout)

        async def looking(run: Any) -> Any:
            looked.set()
            return await get_run(run)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(service.runtime, "engine", object())
            patched.setattr(service.store, "get_run", looking)
            patched.setattr(service.store, "wait_change", waiting)
            task = asyncio.ensure_future(wait_until_idle(service, run_id, None))
            async with asyncio.timeout(HANG):
                await looked.wait()
                # A commit of the run here: from the look after it on, that alone is waited for.
                service.runtime.notify(run_id)
                for _ in range(2):
                    looked.clear()
                    await looked.wait()
                woken.clear()
                for _ in range(2):
                    service.runtime.notify(run_id)
                    looked.clear()
                    await looked.wait()
                assert woken == []
                # Without looks by time: a step with which it goes on is none of its business.
                patched.setattr("holdfast.app.flow.LOOK_HERE", HANG)
                looked.clear()
                service.runtime.notify(run_id)
                await looked.wait()
                looked.clear()
                for _ in range(20):
                    service.runtime.notify(run_id, rests=False)
                    await asyncio.sleep(0)
                assert not looked.is_set()
                service.runtime.notify(run_id)
                await looked.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def test_context_of_a_payload_is_told_without_asking_the_workflow() -> None:
    class Inner:
        asked = 0

        def get_info(self) -> Any:
            return SimpleNamespace(namespace="default", workflow_id="run-1")

        def get_external_store_context(self, command: Any) -> str:
            self.asked += 1
            return "target"

    inner: Any = Inner()
    one = _OneThread(inner)
    for command in (None, object(), object()):
        found = one.get_serialization_context(command)
        assert (found.namespace, found.workflow_id) == ("default", "run-1")
        assert one.get_external_store_context(command) == "target"
    assert inner.asked == 1


async def test_converter_of_a_run_is_not_made_anew_but_for_its_codec(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Holdfast(sqlite) as hf:
        converter = converter_for((await hf.service()).runtime.blobs)
    monkeypatch.setattr(RunPayloadConverter, "__init__", None)
    made = converter.with_context(WorkflowSerializationContext(namespace="default", workflow_id="run-1"))
    assert made.payload_converter is converter.payload_converter
    assert made.failure_converter is converter.failure_converter
    assert made.payload_codec._run == "run-1"
    assert converter.payload_codec._run == ""
