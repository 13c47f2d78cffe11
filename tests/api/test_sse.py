"""Server-sent events of runs: from the stored log, by number."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.api.app import ApiSettings
from holdfast.types.ids import RunId
from tests.api.conftest import Server, serving
from tests.api.live import asking, follow, numbers, talking
from tests.api.sign_in import browser
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio


async def started(server: Server, flow: Flow, **given: object) -> str:
    """Created for any worker."""
    service = await server.hf.service()
    row, _ = await service.create(flow.program(), given)
    return row.id


async def answer(server: Server, run: str, decision: str = "approve") -> None:
    service = await server.hf.service()
    (hold,) = await service.holds(RunId(run))
    await service.answer(hold.id, decision)


@pytest.mark.covers("SERVER-LIVE-01", "R-19-http", "R-18")
async def test_stream_tells_the_log_from_its_beginning_and_ends_with_the_run(
    server: Server, greeting: Flow
) -> None:
    async with Worker(greeting, on=server.hf, poll=0.05):
        run = await started(server, greeting, name="Ada")
        async with follow(server.client, f"/v1/runs/{run}/stream") as source:
            sent = await source.rest()
    assert source.retry == 1000
    stored = await (await server.hf.service()).events(run)
    assert [(each.number, each.type) for each in sent] == [(each.number, each.type) for each in stored]
    assert numbers(sent) == list(range(1, len(sent) + 1))
    assert sent[0].type == "run.created"
    ends = next(each for each in sent if each.type == "run.completed")
    assert ends.data["data"]["status"] == "completed"
    assert ends.data["run"] == run
    assert ends.data["at"].endswith("Z")


@pytest.mark.covers("SERVER-LIVE-01", "R-19-http")
async def test_a_caller_who_comes_back_with_any_number_gets_exactly_what_follows(
    server: Server, greeting: Flow
) -> None:
    async with Worker(greeting, on=server.hf, poll=0.05):
        run = await started(server, greeting, name="Ada")
        async with follow(server.client, f"/v1/runs/{run}/stream") as source:
            whole = numbers(await source.rest())
    for seen in whole[:-1]:
        async with follow(server.client, f"/v1/runs/{run}/stream", last=seen) as source:
            assert numbers(await source.rest()) == list(range(seen + 1, whole[-1] + 1))
    for name in ("after", "after_sequence"):
        async with follow(server.client, f"/v1/runs/{run}/stream?{name}={whole[-2]}") as source:
            assert numbers(await source.rest()) == whole[-1:]
    # What the browser saw is newer than the address, which it keeps.
    async with follow(server.client, f"/v1/runs/{run}/stream?after=1", last=whole[-2]) as source:
        assert numbers(await source.rest()) == whole[-1:]


@pytest.mark.covers("SAFE-READ-01")
@pytest.mark.parametrize("keep", [1, 2])
async def test_list_and_stream_of_a_pruned_run_say_what_is_gone_and_end(
    server: Server, greeting: Flow, keep: int
) -> None:
    run = (await greeting.run({"name": "Ada"}, on=server.hf)).run_id
    service = await server.hf.service()
    assert await service.prune(run, keep=keep) > 0
    last = (await service.get(run)).event_seq
    async with follow(server.client, f"/v1/runs/{run}/stream") as source:
        sent = await source.rest()
    page = await server.json("GET", f"/v1/runs/{run}/events")
    assert [each.data for each in sent] == page["items"]
    assert (page["ended"], page["next"], page["last"]) == (True, None, last)
    first = page["items"][0]
    assert first["type"] == "events.pruned"
    assert (first["data"]["first"], first["data"]["last"]) == (1, first["number"])
    assert [each["number"] for each in page["items"][1:]] == list(range(first["number"] + 1, last + 1))


@pytest.mark.covers("SERVER-LIVE-01")
async def test_browser_is_reported_that_nothing_more_will_come(server: Server, greeting: Flow) -> None:
    async with Worker(greeting, on=server.hf, poll=0.05):
        run = await started(server, greeting, name="Ada")
        async with follow(server.client, f"/v1/runs/{run}/stream") as source:
            last = (await source.rest())[-1].id
    # 204 is what makes an EventSource stop coming back.
    found = await server.client.get(f"/v1/runs/{run}/stream", headers={"Last-Event-ID": last})
    assert (found.status_code, found.content) == (204, b"")


@pytest.mark.covers("SERVER-LIVE-03", "R-16-http", "R-15-http")
async def test_run_that_waits_for_somebody_keeps_its_stream_open(server: Server) -> None:
    flow = asking()
    async with Worker(flow, on=server.hf, poll=0.05):
        run = await started(server, flow)
        async with follow(server.client, f"/v1/runs/{run}/stream") as source:
            first = await source.until("hold.opened")
            assert first[-1].data["data"]["prompt"] == "Pay 500?"
            # Nobody was told to stop: what comes later comes by the same stream.
            await answer(server, run)
            rest = await source.rest()
    assert numbers(first + rest) == list(range(1, len(first + rest) + 1))
    types = [each.type for each in rest]
    assert "hold.resolved" in types
    assert "run.completed" in types
    created = [each for each in first + rest if each.type == "checkpoint.created"]
    assert created
    assert all(each.data["data"]["checkpoint_id"] for each in created)


@pytest.mark.covers("SERVER-LIVE-04")
async def test_tokens_come_while_their_node_still_runs(server: Server) -> None:
    gate = asyncio.Event()
    flow = talking(gate)
    async with Worker(flow, on=server.hf, poll=0.05):
        run = await started(server, flow)
        async with follow(server.client, f"/v1/runs/{run}/stream") as source:
            seen: list[str] = []
            async with asyncio.timeout(HANG):
                async for each in source:
                    if each.type == "node.emitted":
                        seen.append(each.data["data"]["data"]["text"])
                    if len(seen) == 5:
                        break
            assert (await server.json("GET", f"/v1/runs/{run}"))["status"] == "running"
            gate.set()
            assert "node.completed" in [each.type for each in await source.rest()]
    assert seen == [f"word {number} " for number in range(5)]


@pytest.mark.covers("SERVER-SEED-07", "R-15-http", "R-17-http")
@pytest.mark.parametrize("path", ["/runs/{}/stream", "/v2/runs/{}/stream", "/v1/runs/{}/stream?names=seed"])
async def test_events_have_the_names_and_fields_of_the_proposal(server: Server, path: str) -> None:
    flow = asking()
    async with Worker(flow, on=server.hf, poll=0.05):
        run = await started(server, flow)
        async with follow(server.client, path.format(run)) as source:
            sent = await source.until("approval")
            await answer(server, run)
            sent += await source.rest()
    assert numbers(sent) == list(range(1, len(sent) + 1))
    created = [each.data for each in sent if each.type == "checkpoint_created"]
    assert [each["node_id"] for each in created][:3] == ["", "look", "approve"]
    assert {"checkpoint_id", "status", "node_id"} <= created[0].keys()
    assert {each["status"] for each in created} == {"active", "pending_input", "completed"}
    (asked,) = [each.data for each in sent if each.type == "approval"]
    assert asked["prompt"] == "Pay 500?"
    assert asked["entity_id"] == "approve"
    assert asked["is_resumed"] is False
    (hold,) = await (await server.hf.service()).holds(RunId(run), open_only=False)
    assert asked["checkpoint_id"] == hold.id


@pytest.mark.covers("SERVER-SEED-07", "R-17-http", "R-16-http")
async def test_question_is_asked_again_behind_the_announcement_of_a_resume(server: Server) -> None:
    flow = asking()
    run = await started(server, flow)
    async with follow(server.client, f"/runs/{run}/stream") as source:
        async with Worker(flow, on=server.hf, poll=0.05):
            first = (await source.until("approval"))[-1]
        # Its worker is gone. Somebody comes back and resumes it, as section 4.1 has it.
        await server.json("POST", f"/runs/{run}/resume")
        async with Worker(flow, on=server.hf, poll=0.05):
            again = await source.until("approval")
    assert [each.type for each in again] == ["checkpoint_created", "checkpoint_resumed", "approval"][
        -len(again) :
    ]
    assert again[-1].data["is_resumed"] is True
    same = ("checkpoint_id", "entity_id", "prompt", "options")
    assert [again[-1].data[name] for name in same] == [first.data[name] for name in same]


@pytest.mark.covers("SERVER-LIVE-06", "R-20")
async def test_silent_stream_shows_that_it_lives(tmp_path: Path) -> None:
    flow = asking()
    async with (
        Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf,
        serving(hf, ApiSettings(heartbeat=0.05)) as server,
    ):
        run = await started(server, flow)
        seen = (await server.json("GET", f"/v1/runs/{run}"))["event_seq"]
        path = f"/v1/runs/{run}/stream?after={seen}"
        async with follow(server.client, path) as source, asyncio.timeout(HANG):
            beats = 0
            async for line in source.answer.aiter_lines():
                beats += line.startswith(":")
                assert line.startswith((":", "retry:")) or not line
                if beats == 3:
                    break


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("?after=-1", {}),
        ("?after=x", {}),
        ("?after=4294967296", {}),
        ("?names=other", {}),
        ("", {"Last-Event-ID": "x"}),
        ("", {"Last-Event-ID": "-1"}),
        ("", {"Last-Event-ID": "99999999999999999999999"}),
    ],
)
@pytest.mark.covers("SERVER-BAD-01")
async def test_place_that_is_none_is_refused(
    server: Server, greeting: Flow, path: str, headers: dict[str, str]
) -> None:
    run = await started(server, greeting, name="Ada")
    found = await server.client.get(f"/v1/runs/{run}/stream{path}", headers=headers)
    assert found.status_code == 422, found.text
    assert found.headers["content-type"] == "application/problem+json"


@pytest.mark.covers("SAFE-READ-01")
async def test_number_that_the_run_does_not_have_is_refused(server: Server, greeting: Flow) -> None:
    """Of another run, or of a store that was restored: its events would be left out up to that number."""
    run = await started(server, greeting, name="Ada")
    seen = (await server.json("GET", f"/v1/runs/{run}"))["event_seq"]
    for path, headers in ((f"?after={seen + 1}", {}), ("", {"Last-Event-ID": str(seen + 1)})):
        found = await server.client.get(f"/v1/runs/{run}/stream{path}", headers=headers)
        assert (found.status_code, found.json()["code"]) == (422, "bad_last_event_id")
    async with server.client.stream("GET", f"/v1/runs/{run}/stream?after={seen}") as found:
        assert found.status_code == 200


async def test_stream_of_no_run_is_a_problem_and_needs_a_credential(server: Server, greeting: Flow) -> None:
    await server.json("GET", "/v1/runs/nosuchrun/stream", 404)
    run = await started(server, greeting, name="Ada")
    async with httpx2.AsyncClient(base_url=server.serving.address) as stranger:
        assert (await stranger.get(f"/v1/runs/{run}/stream")).status_code == 401
    head = await server.client.head(f"/v1/runs/{run}/stream")
    assert head.status_code == 200
    assert head.headers["content-type"].startswith("text/event-stream")


async def test_stream_ends_when_its_run_is_deleted(server: Server, greeting: Flow) -> None:
    run = await started(server, greeting, name="Ada")
    async with follow(server.client, f"/v1/runs/{run}/stream") as source:
        await source.until("run.created")
        store = await server.hf.open()
        assert await store.delete_run(RunId(run))
        await source.rest()


async def test_server_with_too_many_streams_says_so(tmp_path: Path, greeting: Flow) -> None:
    async with (
        Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf,
        serving(hf, ApiSettings(most_streams=1)) as server,
    ):
        run = await started(server, greeting, name="Ada")
        async with follow(server.client, f"/v1/runs/{run}/stream") as source:
            await source.until("run.created")
            found = await server.client.get(f"/v1/runs/{run}/stream")
            assert found.status_code == 503
            assert found.headers["retry-after"] == "5"
            assert found.json()["code"] == "too_many_streams"


@pytest.mark.parametrize("path", ["/v1/holds/stream", "/v1/runs/{run}/stream"])
@pytest.mark.parametrize("way", ["token", "session"])
@pytest.mark.parametrize("heartbeat", [0.05, 3600])
async def test_stream_ends_when_its_token_is_revoked_or_its_session_signs_out(
    tmp_path: Path, path: str, way: str, heartbeat: float
) -> None:
    """Also where the keep-alive comment, before which it is checked too, is an hour away."""
    flow = asking()
    async with (
        Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf,
        serving(hf, ApiSettings(heartbeat=heartbeat)) as server,
    ):
        run = await started(server, flow)
        made = await server.json("POST", "/v1/tokens", 201, json={"subject": "user:ann", "roles": ["admin"]})
        async with browser(server) as client:
            if way == "session":
                opened = await client.post("/v1/session", json={"token": made["token"]})
                assert opened.status_code == 204
            else:
                client.headers["Authorization"] = f"Bearer {made['token']}"
            async with follow(client, path.format(run=run)) as source:
                if way == "token":
                    await server.json("DELETE", f"/v1/tokens/{made['id']}")
                else:
                    csrf = (await client.get("/v1/session")).json()["csrf"]
                    ended = await client.delete("/v1/session", headers={"X-CSRF-Token": csrf})
                    assert ended.status_code == 204
                # Ends by itself: `rest` fails after a time, the life of a stream is an hour.
                await source.rest()
            assert (await client.get(path.format(run=run))).status_code == 401
