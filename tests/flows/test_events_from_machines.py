"""`ctx.wait_for`: events from machines reach one waiting run, once, in order, and are not lost when early."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Retry, RunStatus, WaitTimeoutError, Worker
from holdfast.errors import InputError, MessageDiffersError, RunEndedError, RunNotFoundError
from holdfast.runs.history.timeline import make_timeline
from holdfast.runs.run_view import shown_run
from holdfast.store.rows import ClaimRequest
from holdfast.types.clock import MICROS
from holdfast.types.ids import RunId
from tests.flows.places import RUN, Place

pytestmark = pytest.mark.anyio

PAID = Flow("paid", effect="read")


@PAID.script
async def wait(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    got = []
    for _ in range(s.get("times", 1)):
        try:
            more = {"match": s["match"], "values": {"least": 10}} if "match" in s else {}
            got.append(await ctx.wait_for("payment.received", key=s.get("key"), timeout="1d", **more))
        except WaitTimeoutError:
            got.append("late")
    return {"got": got}


async def queues(hf: Holdfast) -> Any:
    return await hf.queues()


@pytest.mark.covers("USERS-EVENT-WAIT", "USERS-EVENT-MATCH")
async def test_an_event_reaches_the_run_that_waits_for_its_name_and_key(place: Place) -> None:
    hf = await place.hf()
    runs = {key: await PAID.run({"key": key}, on=hf) for key in ("A17", "B18")}
    assert {result.status for result in runs.values()} == {RunStatus.pending_input}
    sent = await (await queues(hf)).send_event("payment.received", {"amount": 5}, key="B18")
    assert str(sent.state) == "completed"
    other = await (await queues(hf)).send_event("payment.refused", {}, key="A17")
    assert str(other.state) == "ready"
    result = await PAID.resume(runs["B18"].run_id, on=await place.hf())
    assert result.expect().state["got"] == [{"amount": 5}]
    assert (await PAID.resume(runs["A17"].run_id, on=await place.hf())).status is RunStatus.pending_input


@pytest.mark.covers("USERS-EVENT-EARLY", "USERS-EVENT-MATCH")
async def test_events_that_come_early_are_kept_and_taken_in_order(place: Place) -> None:
    hf = await place.hf()
    for number in range(3):
        await (await queues(hf)).send_event("payment.received", number, key="A17")
    result = await PAID.run({"key": "A17", "times": 3}, on=hf)
    assert result.expect().state["got"] == [0, 1, 2]


@pytest.mark.covers("USERS-EVENT-EARLY", "USERS-BAD-EVENT")
async def test_an_event_without_a_waiter_is_dropped_after_its_time(place: Place) -> None:
    hf = await place.hf()
    service = await queues(hf)
    sent = await service.send_event("payment.received", 1, key="A17", keep=60 * MICROS)
    place.clock.advance(seconds=61)
    await service.work()
    assert str((await service.store.queue_message("default", sent.id)).state) == "expired"
    assert (await PAID.run({"key": "A17"}, on=hf)).status is RunStatus.pending_input


@pytest.mark.covers("USERS-EVENT-MATCH")
async def test_an_event_is_filtered_by_its_data(place: Place) -> None:
    hf = await place.hf()
    service = await queues(hf)
    result = await PAID.run({"match": "event.amount >= least"}, on=hf)
    assert str((await service.send_event("payment.received", {"amount": 5})).state) == "ready"
    # The first one does not hold up the second: it may be for another run.
    assert str((await service.send_event("payment.received", {"amount": 15})).state) == "completed"
    await service.send_event("payment.received", {"amount": 25})
    await Worker(PAID, on=hf).run_until_idle()
    result = await PAID.result(result.run_id, on=hf)
    assert result.expect().state["got"] == [{"amount": 15}]
    # Those that are left keep their order.
    found = [(await PAID.run({}, on=hf)).expect().state["got"] for _ in range(2)]
    assert found == [[{"amount": 5}], [{"amount": 25}]]


@pytest.mark.covers("USERS-EVENT-SIGNAL")
async def test_an_event_is_sent_to_one_run_by_its_id(place: Place) -> None:
    hf = await place.hf()
    service = await queues(hf)
    first, second = [await PAID.run({"key": "A17"}, on=hf) for _ in range(2)]
    await service.send_event("payment.received", "for you", run=second.run_id)
    result = await PAID.resume(second.run_id, on=await place.hf())
    assert result.expect().state["got"] == ["for you"]
    assert (await PAID.resume(first.run_id, on=hf)).status is RunStatus.pending_input
    with pytest.raises(RunEndedError):
        await service.send_event("payment.received", run=second.run_id)
    with pytest.raises(RunNotFoundError):
        await service.send_event("payment.received", run=RUN)


@pytest.mark.covers("USERS-EVENT-MATCH", "USERS-BAD-EVENT")
async def test_an_event_that_is_sent_again_is_one_event(place: Place) -> None:
    service = await queues(await place.hf())
    first = await service.send_event("payment.received", 1, key="A17", id="evt-1")
    again = await service.send_event("payment.received", 1, key="A17", id="evt-1")
    assert first.number == again.number
    with pytest.raises(MessageDiffersError):
        await service.send_event("payment.received", 2, key="A17", id="evt-1")
    with pytest.raises(InputError):
        await service.publish("holdfast-events", "x", {})


@pytest.mark.covers("USERS-BAD-EVENT")
async def test_an_event_that_cannot_be_sent_is_an_input_error(place: Place) -> None:
    service = await queues(await place.hf())
    for name, more in (
        (5, {}),
        (None, {}),
        ("half \ud800", {}),
        ("paid", {"key": 7}),
        ("paid", {"key": "half \udfff"}),
        ("paid", {"id": 3}),
        ("paid", {"run": 4}),
        ("paid", {"keep": "7d"}),
        ("paid", {"data": "half \ud800"}),
    ):
        with pytest.raises(InputError):
            await service.send_event(name, **more)


@pytest.mark.parametrize(
    "wanted", [("", None), ("paid" * 26, None), ("paid", ""), ("paid", "k" * 201), ("paid", "a\0b")]
)
@pytest.mark.covers("USERS-BAD-EVENT")
async def test_a_wait_for_an_event_that_cannot_be_sent_is_refused(
    place: Place, wanted: tuple[str, str | None]
) -> None:
    script = Flow("waits", effect="read")

    @script.script
    async def wait(ctx: Context) -> None:
        await ctx.wait_for(wanted[0], key=wanted[1])

    hf = await place.hf()
    result = await script.run(on=hf)
    assert result.error is not None
    assert "characters" in result.error.message
    if wanted[1] is not None:
        node = Flow("node", effect="read")
        node.event("wait", wanted[0], key="{{key}}")
        result = await node.run({"key": wanted[1]}, on=hf)
        assert result.error is not None
        assert "must have 1 to 200 characters" in result.error.message


@pytest.mark.parametrize("signal", [False, True], ids=["key", "run"])
@pytest.mark.covers("USERS-EVENT-MATCH", "USERS-EVENT-WAIT")
async def test_an_event_that_comes_when_its_node_fails_is_for_the_next_attempt(
    place: Place, signal: bool
) -> None:
    hf = await place.hf()
    flow = Flow("failing", effect="read")

    @flow.script(retry=Retry(2, delay=0))
    async def work(ctx: Context) -> dict[str, Any]:
        async def fail() -> None:
            if ctx.attempt == 1:
                to = {"run": ctx.run_id} if signal else {"key": "A17"}
                await (await queues(hf)).send_event("paid", 250, id="evt-1", **to)
                raise ValueError("at the same moment")

        first, _ = await ctx.gather(ctx.wait_for("paid", key="A17"), fail())
        return {"got": [first, await ctx.wait_for("paid", key="A17")]}

    result = await flow.run(on=hf)
    # It has the first one, once: the second one is another event.
    assert result.status is RunStatus.pending_input
    await (await queues(hf)).send_event("paid", 90, key="A17")
    assert (await flow.resume(result.run_id, on=hf)).expect().state["got"] == [250, 90]


@pytest.mark.covers("USERS-EVENT-MATCH")
async def test_a_condition_on_a_name_without_a_value_is_refused_when_the_wait_begins(place: Place) -> None:
    hf = await place.hf()
    result = await PAID.run({"key": "A17", "match": "event.amount >= leest and event.amount < 3"}, on=hf)
    assert result.status is RunStatus.failed
    assert result.error is not None
    assert (result.error.type, "leest" in str(result.error)) == ("InputError", True)
    # Of what an event has nobody knows before, and what may be missing may be asked for.
    asked = "exists(leest) or message.nothing or event.amount >= least"
    assert (await PAID.run({"match": asked}, on=hf)).status is RunStatus.pending_input


@pytest.mark.covers("USERS-EVENT-WAIT")
async def test_a_wait_for_an_event_is_over_in_time(place: Place) -> None:
    hf = await place.hf()
    result = await PAID.run({"key": "A17"}, on=hf)
    place.clock.advance(days=2)
    await (await hf.service()).runtime.sweep_holds()
    assert (await PAID.resume(result.run_id, on=hf)).expect().state["got"] == ["late"]


@pytest.mark.covers("USERS-EVENT-KILL")
@pytest.mark.parametrize(
    ("point", "nth"),
    [("after_park", 1), ("after_answer", 1), ("after_settle", 2), ("after_settle", 3), ("inside_settle", 2)],
)
async def test_each_event_is_applied_once_when_workers_die_around_it(
    place: Place, point: str, nth: int
) -> None:
    await kill_around_events(place, point, nth)


@pytest.mark.soak
@pytest.mark.covers("USERS-EVENT-KILL")
@pytest.mark.parametrize("nth", range(1, 8))
@pytest.mark.parametrize("point", ["after_settle", "inside_settle", "after_answer", "after_park"])
async def test_each_event_is_applied_once_when_workers_die_at_any_commit(
    place: Place, point: str, nth: int
) -> None:
    await kill_around_events(place, point, nth, may_miss=True)


async def kill_around_events(place: Place, point: str, nth: int, *, may_miss: bool = False) -> None:
    hf = await place.hf()
    await (await hf.service()).create(PAID.compile(), {"key": "A17", "times": 3}, run_id=RUN)
    sender = await queues(await place.hf())
    await sender.send_event("payment.received", 0, key="A17", id="e0")

    async def work() -> None:
        await Worker(PAID, on=hf).run_until_idle()
        await (await queues(hf)).send_event("payment.received", 1, key="A17", id="e1")
        await Worker(PAID, on=hf).run_until_idle()

    await place.die_at(point, nth, work, may_miss=may_miss)
    for number in (1, 2):
        await sender.send_event("payment.received", number, key="A17", id=f"e{number}")
    later = await place.finish(PAID)
    assert (await PAID.result(RUN, on=later)).expect().state["got"] == [0, 1, 2]


@pytest.mark.covers("USERS-PROGRESS")
async def test_progress_of_a_node_is_part_of_its_visit_and_numbers_are_checked(place: Place) -> None:
    flow = Flow("counts", effect="read")

    @flow.script
    async def count(ctx: Context) -> None:
        ctx.progress(3, 12)
        with suppress(InputError):
            ctx.progress(-1, 12)
        await ctx.ask("On?", options=["yes"])

    hf = await place.hf()
    result = await flow.run(on=hf)
    service = await hf.service()
    line = await make_timeline(service, await service.get(result.run_id))
    (visit,) = line.visits.all()
    assert visit.progress == 0.25


@pytest.mark.covers("USERS-EVENT-NODE")
async def test_an_event_node_waits_for_the_event_of_its_key(place: Place) -> None:
    flow = Flow("shipped", effect="read")
    flow.event("paid", "payment.received", key="{{order}}", match="event.amount >= least", into="payment")

    @flow.node
    async def ship(s: dict[str, Any]) -> dict[str, Any]:
        return {"shipped": s["payment"]["data"]["amount"]}

    flow.edge("paid", "ship")
    hf = await place.hf()
    service = await queues(hf)
    await service.send_event("payment.received", {"amount": 50}, key="B18")
    result = await flow.run({"order": "A17", "least": 10}, on=hf)
    assert result.status is RunStatus.pending_input
    row = await (await hf.service()).get(result.run_id)
    (waits,) = (await shown_run(await hf.open(), row)).waits_for
    assert (waits.event, waits.key) == ("payment.received", "A17")
    await service.send_event("payment.received", {"amount": 5}, run=result.run_id)
    assert (await flow.resume(result.run_id, on=await place.hf())).status is RunStatus.pending_input
    await service.send_event("payment.received", {"amount": 15}, key="A17")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.expect().state["shipped"] == 15


@pytest.mark.covers("USERS-EVENT-NODE", "USERS-BAD-EVENT")
async def test_an_event_node_takes_its_way_out_in_time_and_needs_a_key_that_is_there(place: Place) -> None:
    flow = Flow("late", effect="read")
    flow.event("paid", "payment.received", key="{{order}}", timeout="1h", on_timeout="branch:remind")

    @flow.node
    async def remind() -> dict[str, Any]:
        return {"reminded": True}

    @flow.node
    async def ship() -> None:
        pass

    flow.edge("paid", "ship", when="received == 'received'")
    flow.edge("paid", "remind", otherwise=True)
    hf = await place.hf()
    result = await flow.run({"order": "A17"}, on=hf)
    place.clock.advance(hours=2)
    await (await hf.service()).runtime.sweep_holds()
    assert (await flow.resume(result.run_id, on=hf)).expect().state["reminded"] is True
    for given in ({}, {"order": " "}):
        failed = await flow.run(given, on=hf)
        assert (failed.status, "key" in str(failed.error)) == (RunStatus.failed, True)
    wrong = Flow("wrong")
    wrong.event("paid", " ", match="event.amount >")
    assert {"event-name"} <= {problem.rule for problem in wrong.problems()}


@pytest.mark.covers("USERS-EVENT-QUERY")
async def test_the_state_of_a_run_is_read_without_touching_it(place: Place) -> None:
    flow = Flow("read", effect="read")

    @flow.node
    async def count() -> dict[str, Any]:
        return {"counted": 3}

    flow.event("paid", "payment.received", into="payment")
    flow.edge("count", "paid")
    hf = await place.hf()
    result = await flow.run(on=hf)
    store, run = await hf.open(), RunId(result.run_id)
    # A worker has it while it is read.
    (claim,) = await store.claim(ClaimRequest(worker="other", ttl=60 * MICROS, run=run))
    before = (await store.get_run(run), await store.pending(run), len(await store.read(run)))
    reader = await place.hf()
    place.clock.advance(seconds=1)
    assert (await flow.result(run, on=reader)).state["counted"] == 3
    assert (await store.get_run(run), await store.pending(run), len(await store.read(run))) == before
    assert (await store.extend([claim.lease], 60 * MICROS)) == [True]
    place.lapse()
