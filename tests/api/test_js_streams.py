"""Streams and sockets of the JavaScript client: cut, silent, killed, and nothing is missed or told twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from holdfast import Worker
from holdfast.api.app import ApiSettings
from tests.api.conftest import Server, serving
from tests.api.live import asking, talking
from tests.api.relay import relay
from tests.api.tenants import Town
from tests.api.test_sse import started
from tests.services.node import script

JS = Path(__file__).parent / "js"
pytestmark = pytest.mark.anyio


def whole(lines: list[dict[str, Any]], begin: int = 1) -> None:
    """Nothing is missing, nothing is there twice."""
    numbers = [each["id"] for each in lines if "id" in each]
    assert numbers == list(range(begin, begin + len(numbers)))
    assert any(each.get("type") == "run.completed" for each in lines)


async def talked(server: Server, words: int) -> str:
    """A run that has told so many words and is over."""
    gate = asyncio.Event()
    gate.set()
    flow = talking(gate, words)
    async with Worker(flow, on=server.hf, poll=0.05):
        run = await started(server, flow)
        await server.json("GET", f"/v1/runs/{run}/result?wait=60")
    return run


@pytest.mark.covers("SERVER-SDK-03")
async def test_stream_that_is_cut_wherever_it_is_goes_on_where_it_was(server: Server) -> None:
    run = await talked(server, 60)
    # In the headers, in a number, in a word, behind an event: each connection gets a little further.
    cuts = [0, 10, 150, *range(400, 9000, 397), None]
    given = {"token": server.token, "run": run}
    async with (
        relay(server.serving.address, *cuts) as between,
        script(JS / "following.mjs", address=between.address, **given) as it,
    ):
        result = await it.rest()
    whole(result)
    assert sum(each.get("type") == "node.emitted" for each in result) == 60
    assert between.connections > 10
    assert {"connecting", "open", "waiting", "closed"} == set(result[-1]["states"])


@pytest.mark.covers("SERVER-SDK-03")
async def test_stream_goes_on_and_ends_behind_a_proxy_that_hides_its_place(server: Server) -> None:
    run = await talked(server, 20)
    given = {"token": server.token, "run": run}
    async with (
        relay(server.serving.address, 1500, 3000, 4500, None, hides="last-event-id") as between,
        script(JS / "following.mjs", address=between.address, **given) as it,
    ):
        result = await it.rest()
    whole(result)
    assert between.connections >= 3


@pytest.mark.covers("SERVER-SDK-03")
async def test_stream_ends_as_its_reader_wants(server: Server) -> None:
    run = await talked(server, 20)
    given = {"address": server.serving.address, "token": server.token, "run": run}

    async def follow(**more: Any) -> list[dict[str, Any]]:
        async with script(JS / "following.mjs", **given, **more) as it:
            return await it.rest()

    broken, closed, aborted, listening, later, strange = await asyncio.gather(
        follow(stops={"break": 5}),
        follow(stops={"close": 6}),
        follow(stops={"abort": 7}),
        follow(listens=True),
        follow(query={"after": 12}),
        follow(fails=True, options={"patience": 3}, query={"after": -4}),
    )
    assert ([each["id"] for each in broken[:-1]], broken[-1]["last"]) == ([1, 2, 3, 4, 5], 5)
    assert [each["id"] for each in closed[:-1]] == [1, 2, 3, 4, 5, 6]
    assert aborted[-2] == {"thrown": "enough", "code": None}
    assert [each["id"] for each in aborted[:-2]] == [1, 2, 3, 4, 5, 6, 7]
    assert listening[0]["all"] == list(range(1, len(listening[0]["all"]) + 1))
    assert listening[0]["emitted"] == 20
    whole(later, 13)
    assert strange[0]["code"] == "invalid_input"


@pytest.mark.covers("SERVER-SDK-03")
async def test_stream_gives_up_a_connection_that_shows_no_life_and_comes_back(server: Server) -> None:
    """Of a server that ends streams early, and of a relay that passes nothing on."""
    gate = asyncio.Event()
    flow = talking(gate, 3)
    silent = asyncio.Event()

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if silent.is_set():
            await between.take(reader, writer)
            return
        silent.set()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        await reader.read(-1)
        writer.transport.abort()

    hasty = ApiSettings(heartbeat=0.1, stream_life=0.5)
    async with (
        serving(server.hf, hasty) as short,
        relay(short.serving.address) as between,
        await asyncio.start_server(swallow, "127.0.0.1", 0) as front,
        Worker(flow, on=server.hf, poll=0.05),
    ):
        run = await started(server, flow)
        address = f"http://127.0.0.1:{front.sockets[0].getsockname()[1]}"
        given = {"address": address, "token": short.token, "run": run, "options": {"idle": 600}}
        async with script(JS / "following.mjs", **given, tells=True) as it:
            lines: list[dict[str, Any]] = []
            while sum(each.get("state") == "open" for each in lines) < 4:
                lines.append(await it.said())
            gate.set()
            lines += await it.rest()
    whole(lines)


@pytest.mark.covers("SERVER-SDK-03")
async def test_server_is_killed_in_the_middle_of_a_stream_and_comes_back(tmp_path: Path) -> None:
    async with Town(tmp_path, f"sqlite:{tmp_path / 's.db'}") as town:
        server, _ = await asyncio.gather(town.serve(), town.start())
        run = await server.start("talks", words=200)
        given = {"address": server.address, "token": town.tokens["dana"], "run": run}
        async with script(JS / "following.mjs", **given) as it:
            lines = [await it.said() for _ in range(30)]
            await server.kill()
            await town.serve("--port", str(urlsplit(server.address).port))
            lines += await it.rest()
    whole(lines)
    words = [each["text"] for each in lines if each.get("type") == "node.emitted"]
    assert words == [f"word {number} " for number in range(200)]
    assert "waiting" in lines[-1]["states"]


@pytest.mark.covers("SERVER-SDK-03")
@pytest.mark.parametrize("cuts", [(), (500, 1500, 2500, 4000, 6000)], ids=["whole", "cut"])
async def test_socket_follows_several_runs_answers_and_stops(server: Server, cuts: tuple[int, ...]) -> None:
    run = await talked(server, 40)
    async with (
        Worker(asking(), on=server.hf, poll=0.05),
        relay(server.serving.address, *cuts, None) as between,
    ):
        asks, stops = await started(server, asking()), await started(server, asking())
        given = {"address": between.address, "token": server.token}
        async with script(JS / "socket.mjs", **given, asks=asks, stops=stops, talks=run) as it:
            said: dict[str, Any] = {}
            for each in await it.rest():
                said |= each
    assert said["answered"] == "resolved"
    # Whether a cancel was done is not known where the connection was lost; here it always was.
    assert said["cancelled"] is True or (cuts and said["cancelled"] == "unknown")
    for numbers in (said["asked"], said["stopped"], said["talked"]):
        assert numbers == list(range(1, len(numbers) + 1))
    found = {each: (await server.json("GET", f"/v1/runs/{each}")) for each in (asks, stops)}
    assert [each["status"] for each in found.values()] == ["completed", "cancelled"]
    assert len(said["asked"]) == found[asks]["event_seq"]
    assert said["nothing"] == "run_not_found"
    assert said["ping"] == {}
    assert said["after"] == "HoldfastError"
    assert said["stranger"] == "unauthenticated"
    assert said["over"] == "closed"
    assert ("waiting" in said["states"]) == bool(cuts)


@pytest.mark.covers("SERVER-SDK-03")
async def test_slow_reader_of_a_socket_leaves_the_rest_in_the_log(server: Server) -> None:
    run = await talked(server, 1300)
    given = {"address": server.serving.address, "token": server.token, "run": run}
    async with script(JS / "slow.mjs", **given) as it:
        (said,) = await it.rest()
    assert said["kept"] == 1000
    assert (
        said["seen"]
        == said["anew"]
        == list(range(1, (await server.json("GET", f"/v1/runs/{run}"))["event_seq"] + 1))
    )


@pytest.mark.covers("SERVER-SDK-03")
async def test_follower_of_holds_hears_what_is_done_to_them(server: Server) -> None:
    async with script(JS / "holds.mjs", address=server.serving.address, token=server.token) as it:
        assert await it.said() == {"state": "open"}
        await asking().run({}, on=server.hf)
        hold = await it.until("hold")
        await server.json("POST", f"/v1/holds/{hold}/resolve", json={"decision": "approve"})
        assert await it.until("types") == ["checkpoint.created", "checkpoint.resolved"]
