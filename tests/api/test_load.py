"""A server under requests that come by themselves: the small form of the benchmark's row S."""

from __future__ import annotations

import asyncio

import pytest

from bench.load import MIX, Load, measure
from bench.serving import running_server


@pytest.mark.covers("SERVER-PROOF-04")
def test_mixed_requests_are_all_answered_and_none_goes_wrong() -> None:
    with running_server() as server:
        outcome = asyncio.run(measure(server.address, server.people, rate=50, seconds=4, warm=20))
    whole = outcome.all
    assert not whole.wrong
    assert set(outcome.kinds) == set(MIX)
    assert all(told.seconds for told in outcome.kinds.values()), "each kind came"
    assert 120 < len(whole.seconds) < 280
    asked = len(outcome.kinds["decide a hold"].seconds)
    assert outcome.decided > asked * 0.8, "it was a list in their place"
    shares = [whole.percentile(share) for share in (50, 90, 99, 99.9)]
    assert 0 < shares[0] <= shares[1] <= shares[2] <= shares[3] <= max(whole.seconds)


class Standing(asyncio.Protocol):
    """A server that is silent for a while once, and answers everything then."""

    silent_until = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        body = b"\ndata:" if b"event-stream" in data else b'{"items":[],"metadata":{"checkpoint_ids":[]}}'
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
        loop.call_at(max(loop.time(), Standing.silent_until), self.transport.write, answer)


async def _while_it_stands_still() -> list[float]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Standing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    load = Load(f"http://127.0.0.1:{port}", ["t"])
    load.runs, load.decided = ["r"], ["h"]
    Standing.silent_until = loop.time() + 1.1
    async with server:
        outcome = await load.run(rate=100, seconds=1)
    assert not outcome.all.wrong
    return outcome.kinds["list runs"].seconds + outcome.kinds["get a hold"].seconds


def test_server_that_stands_still_shows_in_every_request_that_was_due_meanwhile() -> None:
    """A generator that waits for an answer before it sends the next would show one slow request."""
    seconds = asyncio.run(_while_it_stands_still())
    assert len(seconds) > 8
    slow = [each for each in seconds if each > 0.1]
    assert len(slow) > len(seconds) * 0.8
