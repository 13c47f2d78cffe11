"""WebSockets: several runs by one socket, answers on the way back, the events of the stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from holdfast import Flow, Holdfast, Worker
from holdfast.api.app import ApiSettings
from holdfast.api.auth.sessions import OpenSession, Sessions
from holdfast.api.live import follower
from holdfast.api.live.hub import hub_of
from holdfast.api.live.messages import read_message
from holdfast.api.problems import HttpError
from tests.api.conftest import Server, serving
from tests.api.flows import refund
from tests.api.live import asking, follow
from tests.api.sign_in import session
from tests.api.test_sse import started
from tests.deadlines import HANG
from tests.fleet.workers import until

pytestmark = pytest.mark.anyio


class Talk:
    """One socket: what it is told, and what answers to what."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.events: list[dict[str, Any]] = []
        self._number = 100

    async def hear(self) -> dict[str, Any]:
        async with asyncio.timeout(HANG):
            said: dict[str, Any] = json.loads(await self.socket.recv())
        if said["type"] == "event":
            self.events.append(said)
        return said

    async def until(self, kind: str, **wanted: Any) -> dict[str, Any]:
        while True:
            said = await self.hear()
            if said["type"] == kind and all(said.get(name) == value for name, value in wanted.items()):
                return said

    async def ask(self, kind: str, **more: Any) -> dict[str, Any]:
        self._number += 1
        await self.socket.send(json.dumps({"type": kind, "id": self._number, **more}))
        while True:
            said = await self.hear()
            if said.get("id") == self._number and said["type"] in ("ack", "error"):
                return said

    def of(self, run: str) -> list[int]:
        return [each["id"] for each in self.events if each["run"] == run]


@asynccontextmanager
async def talking(server: Server, path: str, **more: Any) -> AsyncIterator[Talk]:
    headers = more.pop("headers", {"Authorization": f"Bearer {server.token}"})
    address = server.serving.address.replace("http:", "ws:")
    async with connect(f"{address}{path}", additional_headers=headers, **more) as socket:
        yield Talk(socket)


@pytest.mark.covers("SERVER-LIVE-02", "R-7")
async def test_question_is_answered_by_the_socket_that_asked_it(server: Server) -> None:
    flow = asking()
    async with Worker(flow, on=server.hf, poll=0.05):
        run = await started(server, flow)
        async with talking(server, f"/v1/runs/{run}/stream/ws") as talk:
            asked = await talk.until("event", event="hold.opened")
            assert asked["data"]["data"]["prompt"] == "Pay 500?"
            said = await talk.ask("answer", run=run, content="approve")
            assert said["type"] == "ack", said
            ended = await talk.until("end", run=run)
        async with follow(server.client, f"/v1/runs/{run}/stream") as source:
            sent = await source.rest()
    # The same events as the stream has: numbers, names and bodies.
    lines = [(each["id"], each["event"], each["data"]) for each in talk.events]
    assert lines == [(each.number, each.type, each.data) for each in sent]
    assert ended["after"] == sent[-1].number


@pytest.mark.covers("SERVER-LIVE-02")
async def test_several_runs_are_followed_cancelled_and_left_by_one_socket(server: Server) -> None:
    flow = asking()
    async with Worker(flow, on=server.hf, poll=0.05):
        runs = [await started(server, flow) for _ in range(3)]
        async with talking(server, "/v1/stream/ws") as talk:
            for run in runs:
                assert (await talk.ask("subscribe", run=run))["result"]["run"] == run
            assert (await talk.ask("subscribe", run=runs[0]))["problem"]["status"] == 409
            assert (await talk.ask("unsubscribe", run=runs[2]))["result"]["was_followed"]
            while not all(
                any(each["run"] == run and each["event"] == "hold.opened" for each in talk.events)
                for run in runs[:2]
            ):
                await talk.hear()
            assert (await talk.ask("cancel", run=runs[0], reason="no need"))["type"] == "ack"
            await talk.until("end", run=runs[0])
            assert (await talk.ask("ping"))["type"] == "ack"
        assert (await server.json("GET", f"/v1/runs/{runs[0]}"))["status"] == "cancelled"
    for run in runs[:2]:
        assert talk.of(run) == list(range(1, len(talk.of(run)) + 1))


@pytest.mark.covers("SERVER-LIVE-02", "SERVER-LIVE-03")
async def test_socket_goes_on_after_a_number(server: Server, greeting: Flow) -> None:
    async with Worker(greeting, on=server.hf, poll=0.05):
        run = await started(server, greeting, name="Ada")
        async with talking(server, f"/v1/runs/{run}/stream/ws") as talk:
            last = (await talk.until("end"))["after"]
    for seen in range(last):
        async with talking(server, f"/v1/runs/{run}/stream/ws?after={seen}") as talk:
            await talk.until("end")
            assert talk.of(run) == list(range(seen + 1, last + 1))
    async with talking(server, "/v1/stream/ws") as talk:
        await talk.ask("subscribe", run=run, after=last - 1, names="seed")
        await talk.until("end")
        assert talk.of(run) == [last]
        assert talk.events[-1]["event"] == "checkpoint_created"


async def test_failed_request_says_what_http_would_say(server: Server) -> None:
    flow = asking()
    run = await started(server, flow)
    async with talking(server, "/v1/stream/ws") as talk:
        for kind, more, status in (
            ("subscribe", {"run": "nosuchrun"}, 404),
            ("subscribe", {}, 422),
            ("subscribe", {"run": run, "after": -1}, 422),
            ("subscribe", {"run": run, "names": "x"}, 422),
            ("answer", {"run": run}, 422),
            ("answer", {"run": run, "content": "approve"}, 404),
            ("cancel", {"run": "nosuchrun"}, 404),
            ("resume", {"run": run, "mode": "x"}, 422),
            ("auth", {"token": "x"}, 409),
        ):
            said = await talk.ask(kind, **more)
            assert said["type"] == "error", (kind, more, said)
            assert said["problem"]["status"] == status, (kind, more, said)
            assert said["problem"]["detail"]
        for text in ("{", "[]", '{"type": "other"}', '{"type": "ping", "other": 1}', "null", '"\\ud800"'):
            await talk.socket.send(text)
            assert (await talk.until("error"))["problem"]["status"] in (400, 422)
        assert (await talk.ask("resume", run=run))["result"]["id"] == run


@pytest.mark.covers("SERVER-BAD-01")
async def test_credential_may_come_with_the_first_message(server: Server, greeting: Flow) -> None:
    run = await started(server, greeting, name="Ada")
    async with talking(server, f"/v1/runs/{run}/stream/ws", headers={}) as talk:
        await talk.socket.send(json.dumps({"type": "auth", "token": server.token}))
        assert (await talk.hear())["type"] == "hello"
        await talk.until("event", event="run.created")
    for first in ({"type": "auth", "token": "wrong"}, {"type": "ping"}, {"type": "subscribe", "run": run}):
        async with talking(server, f"/v1/runs/{run}/stream/ws", headers={}) as talk:
            await talk.socket.send(json.dumps(first))
            said = await talk.hear()
            assert (said["type"], said["problem"]["status"]) == ("error", 401)
            with pytest.raises(ConnectionClosed) as closed:
                await talk.hear()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008


async def test_page_of_another_site_gets_no_socket(server: Server) -> None:
    own = server.serving.address
    bearer = {"Authorization": f"Bearer {server.token}"}
    async with talking(server, "/v1/stream/ws", headers={**bearer, "Origin": own}) as talk:
        assert (await talk.hear())["type"] == "hello"
    for headers, status in (
        ({**bearer, "Origin": "https://elsewhere.example"}, 403),
        ({**bearer, "Origin": "null"}, 403),
        ({"Authorization": "Bearer wrong"}, 401),
    ):
        with pytest.raises(InvalidStatus) as refused:
            async with talking(server, "/v1/stream/ws", headers=headers):
                pass
        assert refused.value.response.status_code == status
        assert json.loads(refused.value.response.body)["status"] == status


async def test_message_that_is_too_large_or_one_of_too_many_is_refused(server: Server) -> None:
    async with talking(server, "/v1/stream/ws") as talk:
        await talk.hear()
        for number in range(60):
            await talk.socket.send(json.dumps({"type": "ping", "id": number}))
        heard = [await talk.hear() for _ in range(60)]
        slowed = [each for each in heard if each["type"] == "error"]
        assert slowed
        assert {each["problem"]["status"] for each in slowed} == {429}
        await talk.socket.send(json.dumps({"type": "ping", "token": "x" * (1 << 20)}))
        with pytest.raises(ConnectionClosed) as closed:
            await talk.hear()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


@pytest.mark.covers("SERVER-BAD-01")
def test_message_that_is_nested_too_deeply_is_a_problem() -> None:
    with pytest.raises(HttpError) as caught:
        read_message('{"type":"ping","input_data":' + '{"a":' * 20_000)
    assert (caught.value.given_status, caught.value.given_code) == (422, "too_deep")


@pytest.mark.covers("SAFE-EDGE-02")
@pytest.mark.parametrize("path", ["/v1/stream/ws?after=1", "/v1/runs/{run}/stream/ws?aftr=1"])
async def test_socket_with_a_parameter_that_it_does_not_have_is_refused(server: Server, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with talking(server, path.format(run="r")):
            pass
    assert refused.value.response.status_code == 422


@pytest.mark.covers("WB-6-topic")
async def test_a_socket_follows_the_holds_and_goes_on_after_the_last_change_it_saw(shop: Server) -> None:
    run = await started(shop, refund(), order="A", amount=10)
    async with talking(shop, "/v1/stream/ws") as talk:
        told = await talk.ask("subscribe", topic="holds", after=0)
        assert told["result"] == {"topic": "holds", "after": 0}
        opened = await talk.until("event", topic="holds")
        assert (opened["data"]["run"], opened["data"]["status"]) == (run, "pending")
        assert (await talk.ask("subscribe", topic="holds"))["problem"]["status"] == 409
        assert (await talk.ask("subscribe", topic="holds", run=run))["problem"]["status"] in (409, 422)
        assert (await talk.ask("unsubscribe", topic="holds"))["result"]["was_followed"] is True
        await talk.ask("answer", run=run, content="approve")
        told = await talk.ask("subscribe", topic="holds", after=opened["id"])
        later = await talk.until("event", topic="holds")
        assert later["id"] > opened["id"]
        assert later["data"]["hold_id"] == opened["data"]["hold_id"]


@pytest.mark.covers("WB-64")
async def test_a_socket_follows_the_runs_of_its_tenant_and_misses_none(shop: Server) -> None:
    before = await started(shop, refund(), order="A", amount=10)
    async with talking(shop, "/v1/stream/ws") as talk:
        told = await talk.ask("subscribe", topic="runs")
        # From now on: what happened before is not sent.
        run = await started(shop, refund(), order="B", amount=10)
        changed = await talk.until("event", topic="runs")
        assert changed["data"]["id"] == run != before
        assert changed["id"] > told["result"]["after"]
        assert (await talk.ask("subscribe", topic="runs"))["problem"]["status"] == 409
        await talk.ask("unsubscribe", topic="runs")
        await talk.ask("answer", run=run, content="approve")
        # After the last change that it saw: the answer is found.
        await talk.ask("subscribe", topic="runs", after=changed["id"])
        while changed["data"]["status"] != "completed":
            changed = await talk.until("event", topic="runs")
            assert changed["data"]["id"] == run


@pytest.mark.covers("WB-64")
async def test_a_follower_of_the_runs_is_woken_and_does_not_wait_for_its_own_next_read(
    shop: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "FEED_WAIT", 3600.0)
    async with talking(shop, "/v1/stream/ws") as talk:
        await talk.ask("subscribe", topic="runs")
        for order in "AB":
            run = await started(shop, refund(), order=order, amount=10)
            changed = await talk.until("event", topic="runs")
            while changed["data"]["id"] != run:
                changed = await talk.until("event", topic="runs")
    await until(lambda: not hub_of(shop.hf).followed)


async def test_a_socket_closes_when_its_credential_is_revoked(tmp_path: Path) -> None:
    async with (
        Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf,
        serving(hf, ApiSettings(heartbeat=0.05)) as server,
    ):
        made = await server.json("POST", "/v1/tokens", 201, json={"subject": "user:ann", "roles": ["admin"]})
        headers = {"Authorization": f"Bearer {made['token']}"}
        async with talking(server, "/v1/stream/ws", headers=headers) as talk:
            assert (await talk.ask("subscribe", topic="runs"))["type"] == "ack"
            await talk.until("beat")
            await server.json("DELETE", f"/v1/tokens/{made['id']}")
            with pytest.raises(ConnectionClosed) as closed:
                await talk.until("no such message")
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, "not valid" in closed.value.rcvd.reason) == (1008, True)


@pytest.mark.parametrize("how", ["signed out", "ended by an administrator"])
async def test_a_socket_closes_at_once_when_its_session_ends_on_any_server(tmp_path: Path, how: str) -> None:
    """The keep-alive message, before which it is checked too, is an hour away."""
    store = f"sqlite:{tmp_path / 's.db'}"
    async with (
        Holdfast(store) as hf,
        Holdfast(store) as elsewhere,
        serving(hf, ApiSettings(heartbeat=3600)) as server,
    ):
        ours, other = [await session(server, f"user:{name}", "admin") for name in ("ann", "bob")]
        sessions = Sessions(await elsewhere.open())

        def headers(opened: OpenSession) -> dict[str, str]:
            return {"Cookie": f"holdfast_session={opened.id}", "Origin": server.serving.address}

        async with (
            talking(server, "/v1/stream/ws", headers=headers(ours)) as talk,
            talking(server, "/v1/stream/ws", headers=headers(other)) as stays,
        ):
            assert (await talk.ask("subscribe", topic="runs"))["type"] == "ack"
            assert (await stays.ask("ping"))["type"] == "ack"
            if how == "signed out":
                await sessions.end(ours.id)
            else:
                await sessions.end_all("user:ann", "default", by="user:bob")
            with pytest.raises(ConnectionClosed) as closed:
                await talk.until("no such message")
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, "not valid" in closed.value.rcvd.reason) == (1008, True)
            assert (await stays.ask("ping"))["type"] == "ack"
    await until(lambda: not hub_of(server.hf).followed)


async def test_a_binary_message_is_refused_and_the_socket_stays_open(server: Server) -> None:
    async with talking(server, "/v1/stream/ws") as talk:
        await talk.hear()
        await talk.socket.send(b"\xff\xfe")
        said = await talk.hear()
        assert (said["type"], said["problem"]["code"]) == ("error", "not_json")
        assert (await talk.ask("ping"))["type"] == "ack"
    async with talking(server, "/v1/stream/ws", headers={}) as talk:
        await talk.socket.send(b"\xff\xfe")
        assert (await talk.hear())["problem"]["code"] == "not_json"
        with pytest.raises(ConnectionClosed) as closed:
            await talk.hear()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008


@pytest.mark.parametrize("origin", ["http://[", "https://[::1", "null", "https://evil.example", "//"])
async def test_handshake_of_another_site_is_refused_however_its_origin_is_written(
    server: Server, origin: str
) -> None:
    assert await refusal(server, {"Origin": origin}) == "cross_site"


@pytest.mark.covers("SERVER-LIVE-02")
async def test_handshakes_count_as_requests(server: Server) -> None:
    """Whoever tries credentials is not faster over sockets."""
    async with serving(server.hf, ApiSettings(anonymous_pace=0.001, burst=2000)) as slow:
        codes = [await refusal(slow, {"Authorization": "Bearer hf_guess"}) for _ in range(4)]
    assert codes == ["unauthenticated", "unauthenticated", "rate_limited", "rate_limited"]


async def refusal(server: Server, headers: dict[str, str]) -> str:
    with pytest.raises(InvalidStatus) as refused:
        async with talking(server, "/v1/stream/ws", headers=headers):
            pass
    return json.loads(refused.value.response.body)["code"]


@pytest.mark.covers("SAFE-READ-01")
async def test_subscription_after_a_number_that_is_not_there_yet_leaves_nothing_out(
    server: Server, greeting: Flow
) -> None:
    run = await started(server, greeting, name="Ada")
    async with talking(server, "/v1/stream/ws") as talk:
        said = await talk.ask("subscribe", run=run, after=1000)
        assert said["problem"]["code"] == "bad_last_event_id"
        for topic in ("holds", "runs"):
            now = (await talk.ask("subscribe", topic=topic))["result"]["after"]
            await talk.ask("unsubscribe", topic=topic)
            assert (await talk.ask("subscribe", topic=topic, after=now))["result"]["after"] == now
            await talk.ask("unsubscribe", topic=topic)
            assert (await talk.ask("subscribe", topic=topic, after=now + 1000))["result"]["after"] == now
