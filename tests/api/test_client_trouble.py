"""The Python client where requests are refused, lost, cut and kept waiting."""

from __future__ import annotations

import asyncio
import socket
from asyncio import timeout

import pytest

from holdfast.client import (
    AnswerUnreadableError,
    AsyncClient,
    Retries,
    ServerError,
    UnauthenticatedError,
    UnreachableError,
)
from holdfast.client.problems import problem_of
from holdfast.errors import (
    AnswerInvalidError,
    FlowNotFoundError,
    ForbiddenError,
    InputError,
    RateLimitedError,
    RunNotFoundError,
    SettingsError,
)
from tests.api.conftest import QUICK, Server
from tests.api.lossy_proxy import Lossy, refusal
from tests.api.relay import relay
from tests.api.sign_in import token

pytestmark = pytest.mark.anyio
ORDER = {"order": "A1", "amount": 7}


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


async def test_wait_for_a_run_outlasts_a_server_that_is_away(far: AsyncClient, road: Lossy) -> None:
    run = await far.start("refund", ORDER, wait=20)
    await run.answer("approve")
    road.plan(*["cut"] * (QUICK.attempts + 1))
    assert (await run.end(timeout=20)).status == "completed"
    assert len(road.seen) > QUICK.attempts
    road.plan(*["cut"] * 50)
    with pytest.raises(UnreachableError):
        await run.end(timeout=0.1)
    road.plan()
    with pytest.raises(RunNotFoundError):
        await far.run("nothing").result()


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
    reader = await token(shop, "service:reader", rights=("runs:read",))
    async with AsyncClient(shop.serving.address, reader) as less:
        with pytest.raises(ForbiddenError, match="--right runs:write"):
            await less.start("refund", ORDER)
    road.plan(refusal(302, "Location: https://elsewhere.example/"))
    with pytest.raises(AnswerUnreadableError, match=r"redirected to https://elsewhere\.example/"):
        await far.runs.get(run.id)
    road.plan("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
    with pytest.raises(AnswerUnreadableError, match="cannot be read"):
        await far.runs.get(run.id)


async def test_what_cannot_be_sent_is_said_before_it_is(client: AsyncClient) -> None:
    with pytest.raises(InputError, match="JSON"):
        await client.start("refund", {"order": object()})
    with pytest.raises(InputError, match="nan is not a JSON number"):
        await client.start("refund", {"order": None, "amounts": [1, (2, {"x": float("nan")})]})
    with pytest.raises(InputError, match="run is empty"):
        await client.runs.get("")
    with pytest.raises(InputError, match=r"run is '\.\.'"):
        await client.runs.cancel("..")
    with pytest.raises(InputError, match="part of an address"):
        await client.runs.get("\ud800")
    for key in ("two\nlines", "schlüssel"):
        with pytest.raises(InputError, match="idempotency_key"):
            await client.start("refund", ORDER, idempotency_key=key)
    assert await client.runs.list().all() == []


@pytest.mark.parametrize("address", ["http://", "http://[::1", "http://a:99999", "ftp://a", "a:80"])
def test_address_that_leads_nowhere_is_said_at_once(address: str) -> None:
    with pytest.raises(SettingsError, match="not an address of a server"):
        AsyncClient(address)


async def test_password_of_an_address_is_shown_nowhere(unused_tcp_port_address: str) -> None:
    address = unused_tcp_port_address.replace("//", "//me:hushhush@")
    async with AsyncClient(address, retries=Retries(attempts=1)) as client:
        with pytest.raises(UnreachableError) as found:
            await client.flows.list()
        assert "hushhush" not in f"{found.value} {client!r} {client.runs!r}"


def test_gateway_that_answers_in_json_of_its_own_is_quoted() -> None:
    error = problem_of(502, b'{"code": 502, "message": "no upstream", "hint": 1}', "GET /v1/runs", {})
    assert isinstance(error, ServerError)
    assert "no upstream" in str(error)


async def test_nobody_listens_there(unused_tcp_port_address: str) -> None:
    async with AsyncClient(unused_tcp_port_address, retries=Retries(attempts=2, first=0.01)) as client:
        with pytest.raises(UnreachableError, match="gave no answer to GET /v1/flows") as found:
            await client.flows.list()
    assert "holdfast serve" in (found.value.hint or "")


@pytest.fixture
def unused_tcp_port_address() -> str:
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


async def test_stream_goes_on_and_ends_behind_a_proxy_that_hides_its_place(
    client: AsyncClient, shop: Server
) -> None:
    run = await client.start("refund", ORDER, wait=20)
    await run.answer("approve")
    await run.end(timeout=20)
    whole = [event.id async for event in run.follow()]
    async with (
        relay(shop.serving.address, 900, 1200, None, hides="last-event-id") as between,
        AsyncClient(between.address, shop.token, retries=QUICK) as hidden,
        timeout(20),
    ):
        assert [event.id async for event in hidden.run(run.id).follow()] == whole
        assert [event.id async for event in hidden.run(run.id).follow(after=3)] == whole[3:]
    assert between.connections >= 3


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
