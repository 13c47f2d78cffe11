"""The Python client against a server that listens."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from holdfast import Flow, Worker
from holdfast.client import (
    AnswerUnreadableError,
    AsyncClient,
    Client,
    Retries,
    ServerError,
    StillRunningError,
    UnauthenticatedError,
    UnreachableError,
)
from holdfast.client.aio import pages
from holdfast.client.aio.group import AsyncGroup
from holdfast.errors import (
    AnswerInvalidError,
    ConflictError,
    FlowNotFoundError,
    HoldDecidedError,
    InputError,
    KeyReusedError,
    RateLimitedError,
    RunNotFoundError,
    SettingsError,
)
from tests.server.conftest import Server
from tests.server.flows import refund
from tests.server.lossy import Lossy, lossy, refusal

pytestmark = pytest.mark.anyio
ORDER = {"order": "A1", "amount": 7}
QUICK = Retries(attempts=4, first=0.01, longest=5)


@pytest.fixture
async def client(shop: Server) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(shop.serving.address, shop.token, retries=QUICK) as found:
        yield found


@pytest.fixture
async def road(shop: Server) -> AsyncIterator[Lossy]:
    async with lossy(shop.serving.address) as found:
        yield found


@pytest.fixture
async def far(shop: Server, road: Lossy) -> AsyncIterator[AsyncClient]:
    """A client whose requests meet what the road's script says."""
    async with AsyncClient(road.address, shop.token, retries=QUICK) as found:
        yield found


# ---------------------------------------------------------------------- a run
@pytest.mark.covers("SERVER-SDK-01")
async def test_run_is_started_answered_and_followed_to_its_end(client: AsyncClient) -> None:
    run = await client.start("refund", ORDER)
    waiting = await run.result(timeout=20)
    assert (waiting.status, waiting.state["checked"]) == ("pending_input", True)
    (asked,) = await run.holds().all()
    assert (asked.id, asked.prompt) == (waiting.open_holds[0], "Refund 7?")
    seen = []
    async with run.follow() as events:
        async for event in events:
            seen.append(event)
            if event.type == "hold.opened":
                taken = await run.answer("Approve")
                assert (taken.checkpoint_id, taken.decision) == (asked.id, "approve")
    # It ended by itself, behind the last event: none is missing and none is there twice.
    assert [event.number for event in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].type == "checkpoint.created"
    assert "run.completed" in [event.type for event in seen]
    done = await run.end(timeout=20)
    assert (done.status, done.state["paid"]) == ("completed", 7)
    assert await client.runs.artifact(run.id, "raw") == b"\x00\x01"
    assert (await run.refresh()).status == run.status == "completed"
    assert "AsyncRun" in repr(run)


async def test_hold_is_decided_once_and_the_second_learns_by_whom(client: AsyncClient) -> None:
    run = await client.start("refund", ORDER, wait=20)
    assert run.detail is not None
    hold = await client.holds.get(run.detail.metadata.checkpoint_id or "")
    done = await client.holds.resolve(hold.id, "reject", comment="no", if_match=hold.etag)
    assert (done.status, (done.resolution or {})["decision"]) == ("resolved", "reject")
    with pytest.raises(HoldDecidedError) as found:
        await client.holds.resolve(hold.id, "approve")
    assert found.value.facts["decision"] == "reject"
    assert found.value.facts["resolved_by"] == done.resolved_by
    assert found.value.facts["http"] == 409
    assert found.value.facts["request_id"]


@pytest.mark.covers("R-24-http")
async def test_whoever_comes_back_later_is_asked_again_and_the_run_completes(server: Server) -> None:
    async with Worker(refund(), on=server.house, hot_hold=0):
        await comes_back_later(server)


async def comes_back_later(server: Server) -> None:
    async with AsyncClient(server.serving.address, server.token) as browser:
        run = await browser.start("refund", ORDER)
        async with run.follow() as events:
            async for event in events:
                if event.type == "hold.opened":
                    break
    # Nobody looks any more. Later another program is started, and knows the run and what it saw last.
    async with AsyncClient(server.serving.address, server.token) as client:
        again = client.run(run.id)
        assert (await again.result(timeout=20)).status == "pending_input"
        while "run.resumed" not in [each.type for each in (await client.runs.events(run.id)).items]:
            await again.resume()  # its worker may be about to leave it
        seen = []
        async for each in again.follow(after=int(events.last)):
            seen.append(each)
            if each.type == "hold.asked_again" and "hold.asked_again" not in [one.type for one in seen[:-1]]:
                assert each.data["data"]["is_resumed"] is True
                assert each.data["data"]["checkpoint_id"] == event.data["data"]["checkpoint_id"]
                await again.answer("approve")
        assert [each.number for each in seen] == list(range(event.number + 1, seen[-1].number + 1))
        assert (await again.result()).status == "completed"


async def test_end_waits_for_people_and_result_does_not(client: AsyncClient) -> None:
    run = await client.start("refund", ORDER, wait=20)
    with pytest.raises(StillRunningError, match="pending_input"):
        await run.end(timeout=0.1)
    async with anyio.create_task_group() as group:
        group.start_soon(run.answer, "approve")
        assert (await run.end(timeout=30)).status == "completed"


async def test_stream_of_holds_tells_what_becomes_of_them(client: AsyncClient) -> None:
    async with client.holds.stream(after=0) as events:
        await client.start("refund", ORDER, wait=20)
        event = await anext(events)
    assert event.type == "checkpoint.created"
    assert event.data["seq"] == event.number


async def test_stream_goes_on_behind_a_number(client: AsyncClient) -> None:
    run = await client.start("refund", ORDER, wait=20)
    await run.answer("approve")
    await run.end(timeout=20)
    whole = [event async for event in run.follow()]
    assert [event async for event in run.follow(after=whole[2].number)] == whole[3:]
    assert [event async for event in run.follow(after=whole[-1].number)] == []


# ---------------------------------------------------------------------- lists
async def test_pages_are_read_as_one_list(client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [(await client.start("refund", {**ORDER, "order": f"A{number}"})).id for number in range(5)]
    monkeypatch.setattr(pages, "AT_ONCE", 2)
    assert [run.id async for run in client.runs.list()] == made[::-1]
    assert [run.id for run in await client.runs.list(limit=3).all()] == made[:1:-1]
    first = await client.runs.list().page(size=4)
    assert first.next is not None
    assert [run.id for run in await client.runs.list(cursor=first.next).all()] == made[:1]
    newest = await client.runs.list(flow="refund").first()
    assert newest is not None
    assert newest.id == made[-1]
    assert await client.runs.list(flow="nothing").first() is None
    assert await client.runs.list(status=["failed", "cancelled"]).all() == []


async def test_every_read_is_understood(client: AsyncClient) -> None:
    """Each answer of a real server fits its model."""
    run = await client.start("refund", ORDER, wait=20, thread="t")
    assert run.detail is not None
    hold = run.detail.metadata.checkpoint_id or ""
    await client.holds.comment(hold, "look")
    await client.holds.save_draft(hold, decision="approve")
    await client.views.save("mine", {"status": ["pending"]})
    await client.schedules.put("daily", "refund", cron="0 9 * * *", input=ORDER)
    view = (await client.views.list())[0]
    known = {"run": run.id, "hold": hold, "checkpoint": hold, "flow": "refund", "version": "latest",
             "thread": "t", "view": view.id, "to": run.id, "name": "daily"}  # fmt: skip
    read = 0
    for method in reading(client):
        wanted = inspect.signature(method).parameters.values()
        found = method(*(known[each.name] for each in wanted if each.default is each.empty))
        assert (await found if inspect.isawaitable(found) else await found.all()) is not None, method
        read += 1
    assert read > 40


NOT_THERE = ("Runs.artifact", "Holds.read_file", "Dead.get", "Deployments.get", "Directory.person")
ENDLESS = ("Runs.stream", "Holds.stream")


def reading(client: AsyncClient) -> Iterator[Any]:
    """Methods that only look, at what is there."""
    groups = [group for group in vars(client).values() if isinstance(group, AsyncGroup)]
    for _, method in (each for group in groups for each in inspect.getmembers(group, inspect.ismethod)):
        if '"GET"' in inspect.getsource(method) and not method.__qualname__.endswith(NOT_THERE + ENDLESS):
            yield method


# ---------------------------------------------------------------------- versions and keys
async def test_change_of_something_that_has_moved_on_is_refused(client: AsyncClient) -> None:
    run = await client.start("refund", ORDER, wait=20)
    seen = await client.runs.get(run.id)
    await run.answer("approve")
    await run.end(timeout=20)
    with pytest.raises(ConflictError) as found:
        await client.runs.cancel(run.id, if_match=seen.etag)
    assert found.value.facts["http"] == 412


async def test_key_of_the_caller_makes_one_run(client: AsyncClient) -> None:
    first = await client.start("refund", ORDER, idempotency_key="k")
    assert (await client.start("refund", ORDER, idempotency_key="k")).id == first.id
    assert (await client.start("refund", ORDER)).id != first.id
    with pytest.raises(KeyReusedError):
        await client.start("refund", {**ORDER, "amount": 8}, idempotency_key="k")


# ---------------------------------------------------------------------- trouble
@pytest.mark.covers("SERVER-SDK-01")
async def test_run_is_made_once_when_the_answer_is_lost(
    client: AsyncClient, far: AsyncClient, road: Lossy
) -> None:
    road.plan("lose", "cut", refusal(503), "pass")
    run = await far.start("refund", ORDER)
    assert [each.id for each in await client.runs.list().all()] == [run.id]
    keys = {headers["idempotency-key"] for _, _, headers in road.seen}
    assert (len(road.seen), len(keys)) == (4, 1)


async def test_decision_stands_when_its_answer_is_lost(far: AsyncClient, road: Lossy) -> None:
    run = await far.start("refund", ORDER, wait=20)
    assert run.detail is not None
    hold = run.detail.metadata.checkpoint_id or ""
    road.plan("lose")
    done = await far.holds.resolve(hold, "approve")
    assert (done.status, (done.resolution or {})["decision"]) == ("resolved", "approve")
    entries = [entry.action for entry in await far.holds.history(hold)]
    assert entries.count("resolved") == 1


async def test_what_may_have_been_done_is_not_done_again(far: AsyncClient, road: Lossy) -> None:
    run = await far.start("refund", ORDER, wait=20)
    assert run.detail is not None
    hold = run.detail.metadata.checkpoint_id or ""
    road.plan("lose")
    with pytest.raises(UnreachableError) as found:
        await far.holds.comment(hold, "once")
    assert found.value.facts["sent"] is True
    assert [note.text for note in await far.holds.comments(hold)] == ["once"]
    # Sent away at the door it was not done, whatever it is.
    road.plan(refusal(429, "Retry-After: 0"))
    await far.holds.comment(hold, "twice")
    assert [note.text for note in await far.holds.comments(hold)] == ["once", "twice"]


async def test_reads_are_tried_again_until_it_is_enough(far: AsyncClient, road: Lossy) -> None:
    road.plan("cut", refusal(502), refusal(429, "Retry-After: 0"))
    assert await far.runs.list().all() == []
    assert len(road.seen) == 4
    road.plan(*[refusal(503)] * 9)
    with pytest.raises(ServerError, match="answered with 503"):
        await far.runs.list().all()
    assert len(road.seen) == QUICK.attempts
    road.plan(refusal(429, "Retry-After: 3600"))
    with pytest.raises(RateLimitedError) as found:
        await far.runs.list().all()
    assert found.value.facts["retry_after"] == 3600
    assert len(road.seen) == 1


async def test_server_says_what_is_wrong_and_the_client_raises_it(
    client: AsyncClient, shop: Server, road: Lossy, far: AsyncClient
) -> None:
    with pytest.raises(RunNotFoundError):
        await client.runs.get("nothing")
    with pytest.raises(FlowNotFoundError, match="nothing") as missing:
        await client.start("nothing")
    assert missing.value.hint
    with pytest.raises(InputError) as wrong:
        await client.runs.list(limit=3, cursor="never given out").all()
    assert wrong.value.facts["http"] == 422
    run = await client.start("refund", ORDER, wait=20)
    with pytest.raises(AnswerInvalidError):
        await run.answer("perhaps")
    async with AsyncClient(shop.serving.address, "wrong") as nobody:
        with pytest.raises(UnauthenticatedError) as unknown:
            await nobody.runs.list().all()
    assert "wrong" not in str(unknown.value)
    road.plan(refusal(302, "Location: https://elsewhere.example/"))
    with pytest.raises(AnswerUnreadableError, match=r"sent on to https://elsewhere\.example/"):
        await far.runs.get(run.id)
    road.plan("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
    with pytest.raises(AnswerUnreadableError, match="cannot be read"):
        await far.runs.get(run.id)


async def test_what_cannot_be_sent_is_said_before_it_is(client: AsyncClient) -> None:
    with pytest.raises(InputError, match="JSON"):
        await client.start("refund", {"order": object()})
    with pytest.raises(InputError, match="run is empty"):
        await client.runs.get("")


async def test_nobody_listens_there(unused_tcp_port_address: str) -> None:
    async with AsyncClient(unused_tcp_port_address, retries=Retries(attempts=2, first=0.01)) as client:
        with pytest.raises(UnreachableError, match="gave no answer to GET /v1/flows") as found:
            await client.flows.list()
    assert "holdfast serve" in (found.value.hint or "")


@pytest.fixture
def unused_tcp_port_address() -> str:
    import socket

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{bound.getsockname()[1]}"


async def test_stream_comes_back_after_every_kind_of_break(
    client: AsyncClient, far: AsyncClient, road: Lossy
) -> None:
    run = await client.start("refund", ORDER, wait=20)
    await run.answer("approve")
    await run.end(timeout=20)
    whole = [event async for event in run.follow()]
    # Three events and all of the fourth but its end, then nothing more; then busy; then gone; then the rest.
    frames = [f"id: {each.id}\nevent: {each.type}\ndata: {{}}\n\n" for each in whole[:4]]
    part = "".join(frames)[:-1]
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99999\r\n\r\n"
    road.plan(head + "retry: 10\n\n" + part, refusal(503, "Retry-After: 0"), "cut")
    seen = [event async for event in far.run(run.id).follow()]
    assert [event.id for event in seen] == [event.id for event in whole]
    assert seen[3:] == whole[3:]
    asked = [headers.get("last-event-id") for _, _, headers in road.seen]
    assert asked == [None, "3", "3", "3", whole[-1].id]


async def test_stream_that_cannot_come_back_says_so(far: AsyncClient, road: Lossy, shop: Server) -> None:
    with pytest.raises(RunNotFoundError):
        await anext(far.run("nothing").follow())
    road.plan(*["cut"] * 50)
    async with AsyncClient(road.address, shop.token, retries=QUICK, patience=0.05) as hasty:
        with pytest.raises(UnreachableError):
            await anext(hasty.holds.stream())


async def test_server_that_says_nothing_is_given_up(shop: Server) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as listens:
        address = f"http://127.0.0.1:{listens.sockets[0].getsockname()[1]}"
        async with AsyncClient(address, shop.token, timeout=0.2, retries=Retries(attempts=1)) as client:
            with pytest.raises(UnreachableError, match="Timeout") as found:
                await client.flows.list()
    assert shop.token not in str(found.value)


# ---------------------------------------------------------------------- files
async def test_files_go_both_ways(client: AsyncClient, shop: Server) -> None:
    flow = Flow("papers", effect="pure")
    paper = {"type": "input", "field": "paper", "kind": "file"}
    flow.hold("ask", prompt="?", sections=[paper, {"type": "decision", "options": ["ok"]}])
    asked = await flow.run({}, on=shop.house)
    (hold,) = await client.run(asked.run_id).holds().all()
    (kept,) = await client.holds.attach_file(hold.id, {"paper": ("note.txt", b"hello", "text/plain")})
    assert kept.file["name"] == "note.txt"
    assert await client.holds.read_file(hold.id, kept.file["sha256"]) == b"hello"
    run = await client.start("refund", ORDER, wait=20)
    assert (await client.runs.drawing(run.id)).startswith("<svg")
    await run.answer("approve")
    await run.end(timeout=20)
    taken = await client.runs.take_in(await client.runs.export(run.id), as_new_run=True)
    assert (taken.flow, taken.id == run.id) == ("refund", False)


async def test_moments_are_sent_with_their_zone(client: AsyncClient) -> None:
    run = await client.start("refund", ORDER, wait=20)
    assert run.detail is not None
    hold = run.detail.metadata.checkpoint_id or ""
    later = datetime.now(UTC) + timedelta(hours=1)
    assert (await client.holds.extend(hold, later)).expires_at is not None
    with pytest.raises(InputError, match="timezone"):
        await client.holds.extend(hold, datetime(2027, 1, 1))  # noqa: DTZ001
    with pytest.raises(InputError, match="has no zone"):
        await client.holds.list(created_from=datetime(2027, 1, 1)).all()  # noqa: DTZ001


# ---------------------------------------------------------------------- settings
async def test_address_and_token_come_from_the_environment(
    shop: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", shop.serving.address + "/")
    monkeypatch.setenv("HOLDFAST_TOKEN", f" {shop.token}\n")
    async with AsyncClient() as client:
        assert await client.flows.list()
        assert shop.token not in repr(client)
    async with AsyncClient(token=lambda: shop.token) as client:
        assert (await client.session.get()).subject
    async with AsyncClient(shop.serving.address + "/api") as client:  # below a proxy's path
        assert await client.flows.list()
    monkeypatch.setenv("HOLDFAST_URL", "localhost:8420")
    with pytest.raises(SettingsError, match="no address"):
        AsyncClient()
    async with AsyncClient(shop.serving.address, "two words") as client:
        with pytest.raises(SettingsError, match="characters") as found:
            await client.flows.list()
    assert "two words" not in str(found.value)


# ---------------------------------------------------------------------- without an event loop
@pytest.mark.covers("SERVER-SDK-02")
async def test_sync_form_does_the_same_in_a_thread_without_a_loop(shop: Server) -> None:
    def story() -> tuple[list[int], str, int]:
        with Client(shop.serving.address, shop.token) as client:
            run = client.start("refund", ORDER)
            assert run.result(timeout=20).status == "pending_input"
            (asked,) = run.holds()
            with run.follow() as events:
                first = next(events)
            client.holds.resolve(asked.id, "approve")
            numbers = [first.number, *(event.number for event in run.follow(after=first.number))]
            with pytest.raises(RunNotFoundError):
                client.runs.get("nothing")
            assert "Run(" in repr(run)
            return numbers, run.end(timeout=20).status, len(client.runs.list().all())

    numbers, status, runs = await anyio.to_thread.run_sync(story)
    assert numbers == list(range(1, len(numbers) + 1))
    assert (status, runs) == ("completed", 1)
