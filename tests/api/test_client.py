"""The Python client against a server that listens."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from holdfast import Flow, Worker
from holdfast.client import (
    AsyncClient,
    Client,
    StillRunningError,
)
from holdfast.client.aio import pages
from holdfast.client.aio.group import AsyncGroup
from holdfast.errors import (
    ConflictError,
    HoldDecidedError,
    InputError,
    KeyReusedError,
    RunNotFoundError,
    SettingsError,
)
from tests.api.conftest import Server
from tests.api.flows import refund
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio
ORDER = {"order": "A1", "amount": 7}


# ---------------------------------------------------------------------- a run
@pytest.mark.covers("SERVER-SDK-01")
async def test_run_is_started_answered_and_followed_to_its_end(client: AsyncClient) -> None:
    run = await client.start("refund", ORDER)
    waiting = await run.result(timeout=HANG)
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
async def test_a_caller_who_comes_back_later_is_asked_again_and_the_run_completes(server: Server) -> None:
    async with Worker(refund(), on=server.hf, hot_hold=0):
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
        assert (await again.result(timeout=HANG)).status == "pending_input"
        while "run.resumed" not in [each.type for each in (await client.runs.events(run.id)).items]:
            await again.resume()  # its worker may be about to leave it
        seen = []
        async for each in again.follow(after=int(events.last)):
            seen.append(each)
            if each.type == "hold.asked_again" and "hold.asked_again" not in [one.type for one in seen[:-1]]:
                assert each.data["data"]["is_resumed"] is True
                assert each.data["data"]["hold_id"] == event.data["data"]["hold_id"]
                await again.answer("approve")
        assert [each.number for each in seen] == list(range(event.number + 1, seen[-1].number + 1))
        assert (await again.result()).status == "completed"


async def test_end_waits_for_people_and_result_does_not(client: AsyncClient) -> None:
    run = await client.start("refund", ORDER, wait=20)
    with pytest.raises(StillRunningError, match="waiting for input"):
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
    message = await client.queues.publish_message("s", "q", {"a": 1})
    view = (await client.views.list())[0]
    known = {"run": run.id, "hold": hold, "checkpoint": hold, "flow": "refund", "version": "latest",
             "thread": "t", "view": view.id, "to": run.id, "name": "daily", "metric": "runs",
             "scope": "s", "queue": "q", "message": message.id, "seq": "1",
             "stage": "a", "output": "response",
             "graphId": (await client.runs.get(run.id)).version}  # fmt: skip
    walk = "digraph { start [shape=Mdiamond]; end [shape=Msquare]; start -> a -> end }"
    pipeline = await client.pipelines.submit(walk, simulate=True)
    assert (await client.run(pipeline.id).end(timeout=20)).status == "completed"
    read = 0
    for method in reading(client):
        wanted = inspect.signature(method).parameters.values()
        here = known | ({"run": pipeline.id} if "Pipelines." in method.__qualname__ else {})
        if method.__name__ == "get_schema":
            here = {"version": "1"}
        found = method(*(here[each.name] for each in wanted if each.default is each.empty))
        assert (await found if inspect.isawaitable(found) else await found.all()) is not None, method
        read += 1
    assert read > 40


NOT_THERE = (
    "Runs.artifact", "Holds.read_file", "Dead.get", "Deployments.get", "Directory.person",
    "Directory.get_own_person", "Flows.get_document", "Flows.get_layout", "Documents.get",
)  # fmt: skip
ENDLESS = ("Runs.stream", "Holds.stream", "Pipelines.stream")


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


async def test_hold_of_a_list_is_decided_only_as_it_was_seen_there(client: AsyncClient) -> None:
    run = await client.start("refund", {"order": "A1", "amount": 7}, wait=20)
    seen = await run.holds().first()
    assert seen is not None
    await client.holds.reassign(seen.id, "user:erin", reason="away")
    with pytest.raises(ConflictError):
        await client.holds.resolve(seen.id, "approve", if_match=seen.etag)


TWICE = """
import asyncio
from holdfast.client import AsyncClient

client = AsyncClient()
for _ in range(2):
    print(len(asyncio.run(client.runs.list().all())))
"""


async def test_client_outlives_the_event_loop_that_it_began_in(shop: Server) -> None:
    """In a process of its own: what the first loop leaves open is nobody's here."""
    env = {**os.environ, "HOLDFAST_URL": shop.serving.address, "HOLDFAST_TOKEN": shop.token}
    result = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", TWICE], env=env, capture_output=True, text=True, check=True
    )
    assert result.stdout == "0\n0\n"


async def test_run_knows_what_its_result_said(client: AsyncClient) -> None:
    run = await client.start("refund", {"order": "A1", "amount": 7})
    assert (await run.result(timeout=HANG)).status == run.status == "pending_input"
    assert (await run.cancel()).status == run.status


async def test_key_of_the_caller_makes_one_run(client: AsyncClient) -> None:
    first = await client.start("refund", ORDER, idempotency_key="k")
    assert (await client.start("refund", ORDER, idempotency_key="k")).id == first.id
    assert (await client.start("refund", ORDER)).id != first.id
    with pytest.raises(KeyReusedError):
        await client.start("refund", {**ORDER, "amount": 8}, idempotency_key="k")


# ---------------------------------------------------------------------- files
async def test_files_go_both_ways(client: AsyncClient, shop: Server) -> None:
    flow = Flow("papers", effect="pure")
    paper = {"type": "input", "field": "paper", "kind": "file"}
    flow.hold("ask", prompt="?", sections=[paper, {"type": "decision", "options": ["ok"]}])
    asked = await flow.run({}, on=shop.hf)
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
    with pytest.raises(InputError, match="has no time zone"):
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
    with pytest.raises(SettingsError, match="not an address"):
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
            assert run.result(timeout=HANG).status == "pending_input"
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
