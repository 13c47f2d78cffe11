"""Small lines of the core that no larger test happens to prove."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Event, Flow, FlowInvalidError, Holdfast, RunStatus, Worker
from holdfast.checkpoint import record_digest
from holdfast.errors import SchemaTooNewError
from holdfast.model.graph import HoldSpec
from holdfast.model.position import Position
from holdfast.runs.driver.driver import Driver
from holdfast.store.rows import RunFilter
from holdfast.types.hold import Option
from holdfast.types.record import Kind, Record
from holdfast.types.status import HoldStatus
from holdfast.types.terms import HoldTerms
from tests.deadlines import HANG
from tests.flows.conftest import node
from tests.flows.places import Place, answer, told
from tests.flows.refunds import GIVEN, refund_flow

pytestmark = pytest.mark.anyio
TENTH = 9


@pytest.mark.covers("CORE-FLOW-39")
async def test_lane_and_priority_are_those_of_the_flow_unless_the_run_says_otherwise(hf: Holdfast) -> None:
    flow = Flow("placed", effect="pure", lane="slow", priority=7)
    node(flow, "only")
    service = await hf.service()
    plain, _ = await service.create(flow.program(), {})
    own, _ = await service.create(flow.program(), {}, lane="fast", priority=0)
    assert [(row.lane, row.priority) for row in (plain, own)] == [("slow", 7), ("fast", 0)]
    await Worker(flow, on=hf, lanes=["fast"]).run_until_idle()
    assert [(await service.get(row.id)).status for row in (plain, own)] == ["pending", "completed"]


@pytest.mark.covers("CORE-FLOW-40", "CORE-HOLD-01")
@pytest.mark.parametrize(("said", "receipt"), [("approve", "r-250"), ("reject", "none")])
async def test_hold_asks_a_person_and_the_run_goes_where_they_decide(
    hf: Holdfast, said: str, receipt: str
) -> None:
    flow = refund_flow()
    waiting = await flow.run(GIVEN, on=hf)
    (hold,) = waiting.holds
    assert (hold.node, hold.prompt, hold.status) == ("approve", "Refund 250 to c-9?", HoldStatus.pending)
    await answer(hf, waiting, said)
    result = await flow.resume(waiting.run_id, on=hf)
    assert result.expect().state.receipt == receipt
    taken = {event.node for event in await told(hf, result, "node.completed")}
    assert ("pay" in taken, "refuse" in taken) == (said == "approve", said == "reject")


@pytest.mark.covers("CORE-CTX-04")
async def test_artifact_is_in_the_result_when_its_node_has_settled_and_not_when_it_failed(
    hf: Holdfast,
) -> None:
    flow = Flow("gives", effect="pure")

    @flow.node
    async def gives(ctx: Context) -> dict[str, Any]:
        ctx.artifact("report", {"pages": [1, 2]})
        ctx.artifact("plain", b"bytes")
        return {"given": True}

    @flow.node(on_failure="skip")
    async def fails(ctx: Context) -> dict[str, Any]:
        ctx.artifact("half", 1)
        raise ValueError("no")

    flow.edge(gives, fails)
    result = await flow.run({}, on=hf)
    assert result.expect().artifacts == {"report": {"pages": [1, 2]}, "plain": b"bytes"}
    assert result.state == {"given": True}
    assert (await (await hf.service()).latest(result.run_id)).artifacts == result.artifacts


@pytest.mark.covers("CORE-RUN-04", "G-28")
async def test_result_tells_completed_waiting_and_failed_apart(hf: Holdfast) -> None:
    flow = Flow("three", effect="pure")
    flow.hold("ask", prompt="?", options=["yes"])

    @flow.node
    async def decides(s: dict[str, Any]) -> dict[str, Any]:
        if s["how"] == "badly":
            raise ValueError("badly")
        return {}

    flow.edge(decides, "ask", when="how == 'asking'")
    ends = {how: await flow.run({"how": how}, on=hf) for how in ("well", "asking", "badly")}
    assert {how: (r.completed, r.waiting, r.failed) for how, r in ends.items()} == {
        "well": (True, False, False),
        "asking": (False, True, False),
        "badly": (False, False, True),
    }
    assert [r.status for r in ends.values()] == ["completed", "pending_input", "failed"]
    last = [[e for e in await told(hf, r) if e.type != "checkpoint.created"][-1].type for r in ends.values()]
    assert last == ["run.completed", "hold.opened", "run.failed"]


@pytest.mark.covers("CORE-RUN-02")
@pytest.mark.parametrize("address", ["memory:", "sqlite:{}/sync.db"])
async def test_sync_run_works_where_a_loop_already_runs(tmp_path: Path, address: str) -> None:
    flow = Flow("sync", effect="pure")
    node(flow, "only", {"x": 1})
    hf = Holdfast(address.format(tmp_path))
    assert flow.run_sync({}, on=hf).expect().state == {"x": 1}
    await hf.close()


@pytest.mark.covers("CORE-CKPT-02")
async def test_load_reads_no_more_than_a_snapshots_worth_however_long_the_run_is(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow("long", effect="pure")

    @flow.node
    async def turn(s: dict[str, Any]) -> dict[str, Any]:
        return {"n": s["n"] + 1}

    flow.hold("ask", prompt="?", options=["yes"])
    flow.loop(turn, turn, when="n < 950", max=1000)
    flow.edge(turn, "ask", when="n >= 950")
    waiting = await flow.run({"n": 0}, on=hf)
    service = await hf.service()
    assert (await service.get(waiting.run_id)).head > 950
    await answer(hf, waiting, "yes")
    store, read = service.store, []
    real = store.read

    async def counted(*words: Any, **more: Any) -> Any:
        found = await real(*words, **more)
        read.append(len(found))
        return found

    monkeypatch.setattr(store, "read", counted)
    assert (await flow.resume(waiting.run_id, on=hf)).expect().state["n"] == 950
    assert 0 < sum(read) <= 2 * 200 + 10, "snapshots are at most 200 records apart"


@pytest.mark.covers("D-1")
async def test_journal_knows_nine_kinds_and_a_reader_refuses_a_tenth(
    bare_hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [kind.name for kind in Kind] == [
        "created", "intent", "attempt", "substep", "asked", "chunk", "step", "snapshot", "end",
    ]  # fmt: skip
    flow = refund_flow()
    waiting = await flow.run(GIVEN, on=bare_hf)
    service = await bare_hf.service()
    real = service.store.read

    async def newer(*words: Any, **more: Any) -> list[Record]:
        """What a version that knows a tenth kind would have written: whole, and with a true digest."""
        found = await real(*words, **more)
        last = found[-1]
        if last.kind == Kind.asked:
            last.kind = TENTH
            last.digest = record_digest(
                TENTH, last.at, last.node, last.scope, last.visit, last.outcome, last.payload
            )
        return found

    monkeypatch.setattr(service.store, "read", newer)
    with pytest.raises(SchemaTooNewError, match="kind 9"):
        await flow.resume(waiting.run_id, on=bare_hf)
    monkeypatch.undo()
    assert (await flow.resume(waiting.run_id, on=bare_hf)).status is RunStatus.pending_input


@pytest.mark.covers("E17")
@pytest.mark.parametrize("on_timeout", ["default", "fail"])
async def test_deadline_of_a_person_is_not_forgotten_when_no_process_waits(
    place: Place, on_timeout: str
) -> None:
    flow = Flow("deadline", effect="pure")
    flow.hold("gate", prompt="Ship?", options=["yes", "no"], timeout="2h", on_timeout=on_timeout)
    hf = await place.hf()
    waiting = await flow.run({}, on=hf)
    assert waiting.status is RunStatus.pending_input
    await hf.close()
    place.clock.advance(hours=3)
    later = await place.hf()
    # Nobody names the run: whoever is alive finds that its time is over.
    worker = Worker(flow, on=later, poll=0.01)
    async with worker:
        service = await later.service()
        async with asyncio.timeout(HANG):
            while (await service.get(waiting.run_id)).status not in ("completed", "failed"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    (hold,) = await service.holds(waiting.run_id, open_only=False)
    ended = (hold.status, (await service.get(waiting.run_id)).status)
    assert ended == {"default": ("resolved", "completed"), "fail": ("expired", "failed")}[on_timeout]


@pytest.mark.covers("E20", "G-21")
@pytest.mark.parametrize(("plan", "end"), [("pro", "fast"), ("free", "slow")])
async def test_documented_expression_with_the_state_prefix_does_not_take_the_wrong_way(
    hf: Holdfast, plan: str, end: str
) -> None:
    flow = Flow("documented", effect="pure")
    node(flow, "start", {"plan": plan})
    node(flow, "fast", {"end": "fast"})
    node(flow, "slow", {"end": "slow"})
    flow.edge("start", "fast", when="state.scratch.plan === 'pro' && (state.plan != 'a||b')")
    flow.edge("start", "slow", otherwise=True)
    assert (await flow.run({}, on=hf)).expect().state["end"] == end


@pytest.mark.covers("P3")
async def test_no_option_of_a_human_step_is_dropped_on_its_way_to_the_hold(hf: Holdfast) -> None:
    flow = Flow("told", effect="pure")
    flow.hold(
        "gate", prompt="Ship {{what}}?", options=[{"id": "y", "label": "Yes", "variant": "primary"}, "n"],
        assignee="team:{{what}}", timeout="2h", on_timeout="default", priority="high", type="review",
        bind="verdict", context={"what": "{{what}}"}, schema={"type": "object"}, into="filled",
        reminder="1h", tags=["ship"], max_reminders=3,
    )  # fmt: skip
    (spec,) = [each.hold for each in flow.program().graph.nodes if each.id == "gate"]
    assert [
        name for name in HoldSpec.__struct_fields__ if getattr(spec, name) == getattr(HoldSpec(), name)
    ] == ["form", "wait", "modifies", "target"]  # in place of a schema, a length, the inbox
    waiting = await flow.run({"what": "it"}, on=hf)
    (hold,) = waiting.holds
    assert (hold.prompt, hold.assignee, hold.priority, hold.type) == ("Ship it?", "team:it", "high", "review")
    assert hold.options == (Option("y", "Yes", "primary"), Option("n", "n"))
    assert hold.expires_at == hold.created_at + 2 * 3600 * 1_000_000
    assert hold.expiry_action == "default_option"
    assert (hold.reminder_interval, hold.tags) == (60, ("ship",))
    assert hold.terms == HoldTerms(max_reminders=3, filled=("team:it",))
    assert (hold.context, hold.schema) == (b'{"what":"it"}', b'{"type":"object"}')
    await answer(hf, waiting, "y", data={})
    assert (await flow.resume(waiting.run_id, on=hf)).expect().state["verdict"] == "y"


@pytest.mark.covers("P3")
@pytest.mark.parametrize("option", ["auto_accept", "judge", "remind"])
def test_option_that_a_human_step_does_not_know_is_refused(option: str) -> None:
    flow = Flow("unknown", effect="pure")
    flow.hold("gate", prompt="?", options=["y"], **{option: True})
    with pytest.raises(FlowInvalidError, match=option):
        flow.program()


@pytest.mark.covers("CORE-CTX-10")
async def test_log_lines_of_a_node_name_their_run_node_and_seq(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    flow = Flow("logs", effect="pure")

    @flow.node
    async def talks(ctx: Context) -> None:
        ctx.log.warning("here")

    result = await flow.run({}, on=hf)
    (line,) = [r for r in caplog.records if r.message == "here"]
    assert (line.run, line.node) == (result.run_id, "talks")
    assert isinstance(line.seq, int)


@pytest.mark.covers("G-50")
async def test_every_subscriber_sees_all_events_in_order_and_leaves_nothing_behind(hf: Holdfast) -> None:
    flow = refund_flow()
    waiting = await flow.run(GIVEN, on=hf)
    service = await hf.service()

    async def listen(until: int) -> list[Event]:
        seen: list[Event] = []
        stream = service.stream(waiting.run_id, poll=0.02)
        async for event in stream:
            seen.append(event)
            if len(seen) == until:
                break
        await stream.aclose()
        await stream.aclose()
        return seen

    listeners = [asyncio.create_task(listen(until)) for until in (10_000, 10_000, 3)]
    await asyncio.sleep(0.01)
    await answer(hf, waiting, "approve")
    await flow.resume(waiting.run_id, on=hf)
    async with asyncio.timeout(HANG):
        first, second, early = await asyncio.gather(*listeners)
    whole = await service.events(waiting.run_id)
    assert first == second == whole
    assert early == whole[:3]
    assert not any(service.runtime._listeners.values()), "a consumer who left is still called"


@pytest.mark.covers("CORE-WORK-01")
async def test_service_creates_finds_lists_answers_resumes_and_cancels_runs(hf: Holdfast) -> None:
    flow = Flow("served", effect="pure")
    broken = [True]

    @flow.node
    async def shaky() -> dict[str, Any]:
        if broken[0]:
            raise ValueError("not yet")
        return {"done": True}

    flow.hold("ask", prompt="?", options=["yes"])
    flow.edge("ask", shaky)
    service = await hf.service()
    row, fresh = await service.create(flow.program(), {}, idempotency_key="one")
    same, again = await service.create(flow.program(), {}, idempotency_key="one")
    other, _ = await service.create(flow.program(), {})
    assert (fresh, again, same.id) == (True, False, row.id)
    assert (await service.get(row.id[:10])).id == row.id
    assert {each.id for each in await service.list(RunFilter(flow="served"))} == {row.id, other.id}
    worker = Worker(flow, on=hf)
    await worker.run_until_idle()
    assert {each.status for each in await service.list(RunFilter())} == {RunStatus.pending_input}
    (hold,) = await service.holds(row.id)
    await service.answer(hold.id, "yes", by="user:ada")
    await service.cancel(other.id, reason="twice")
    await worker.run_until_idle()
    assert (await service.get(row.id)).status is RunStatus.failed
    assert (await service.get(other.id)).status is RunStatus.cancelled
    broken.clear()
    broken.append(False)
    await service.request_resume(row.id)
    await worker.run_until_idle()
    assert (await service.get(row.id)).status is RunStatus.completed
    assert [each.id for each in await service.list(RunFilter(status=(RunStatus.cancelled,)))] == [other.id]


@pytest.mark.covers("CORE-HOLD-04")
async def test_nothing_of_a_run_is_left_in_the_process_when_it_waits_for_a_person(
    bare_hf: Holdfast,
) -> None:
    flow = Flow("waits", effect="pure")
    flow.hold("ask", prompt="?", options=["yes"])
    service = await bare_hf.service()
    tasks = len(asyncio.all_tasks())
    runs = [(await flow.run({"mine": "x" * 100}, on=bare_hf)).run_id for _ in range(20)]
    rows = [await service.get(run) for run in runs]
    assert {(row.status, row.worker, row.lease_until) for row in rows} == {("pending_input", None, None)}
    assert service.runtime.drivers == {}
    assert service.runtime.recorder.queues == set()
    assert len(asyncio.all_tasks()) <= tasks + 1, "no task waits for a run"
    await asyncio.sleep(0.03)
    gc.collect()
    kept = [each for each in gc.get_objects() if isinstance(each, Driver | Position)]
    assert [each.run for each in kept if each.run in runs] == []
