"""The fault-injecting proxy, over real sockets on loopback: each fault is seen from both of its sides."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.deadlines import HANG
from tests.proxy import Proxy, ProxyProcess

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-PROOF-01")]


class Echo:
    """A server that gives back what it gets, and keeps what it got."""

    def __init__(self, mark: bytes = b"") -> None:
        self.mark = mark
        self.got = b""
        self.ends: list[type[Exception] | None] = []

    async def __aenter__(self) -> Echo:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self.server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65_536):
                self.got += piece
                writer.write(self.mark + piece)
                await writer.drain()
            self.ends.append(None)
        except ConnectionError as error:
            self.ends.append(type(error))
        writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    async with Echo() as server:
        yield server


@pytest.fixture
async def proxy(echo: Echo) -> AsyncIterator[Proxy]:
    async with Proxy(echo.address) as made:
        yield made


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, piece: bytes) -> None:
        self.writer.write(piece)
        await self.writer.drain()

    async def hear(self, size: int, seconds: float = HANG) -> bytes:
        async with asyncio.timeout(seconds):
            return await self.reader.readexactly(size)


Connect = Callable[[str], Awaitable[Client]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    made: list[Client] = []

    async def open_(address: str) -> Client:
        host, port = address.split(":")
        made.append(Client(*await asyncio.open_connection(host, int(port))))
        return made[-1]

    yield open_
    for client in made:
        client.writer.close()


async def until(met: Callable[[], bool], seconds: float = HANG) -> None:
    async with asyncio.timeout(seconds):
        while not met():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_everything_passes_both_ways_and_an_end_is_an_end(
    proxy: Proxy, echo: Echo, connect: Connect
) -> None:
    client = await connect(proxy.address)
    large = bytes(range(256)) * 4096
    sending = asyncio.create_task(client.say(large))
    assert await client.hear(len(large)) == large
    await sending
    client.writer.write_eof()
    assert await client.reader.read() == b""
    await until(lambda: echo.ends == [None])
    assert (proxy.counts.up, proxy.counts.down, proxy.counts.cuts) == (len(large), len(large), 0)
    await until(lambda: proxy.counts.open == 0)


async def test_pieces_arrive_later_and_in_order_when_delayed(proxy: Proxy, connect: Connect) -> None:
    client = await connect(proxy.address)
    proxy.delay(0.1, jitter=0.05)
    # Each way once, and not once for each piece, which would take four seconds every time. The quickest
    # counts: a busy machine only makes some of them slower.
    took = HANG
    async with asyncio.timeout(HANG):
        while took > 3:
            began = time.monotonic()
            for number in range(20):
                await client.say(b"%02d" % number)
                await asyncio.sleep(0)
            assert await client.hear(40) == b"".join(b"%02d" % number for number in range(20))
            took = time.monotonic() - began
            assert took >= 0.2
    assert proxy.counts.delayed >= 2
    proxy.clear()
    before = proxy.counts.delayed
    await client.say(b"x")
    await client.hear(1)
    assert proxy.counts.delayed == before


async def test_nothing_arrives_and_nobody_is_reported_while_swallowed(
    proxy: Proxy, echo: Echo, connect: Connect
) -> None:
    client = await connect(proxy.address)
    await client.say(b"a")
    await client.hear(1)
    proxy.swallow()
    await client.say(b"b")
    with pytest.raises(TimeoutError):
        await client.hear(1, 0.15)
    late = await connect(proxy.address)
    await late.say(b"c")
    with pytest.raises(TimeoutError):
        await late.hear(1, 0.1)
    assert echo.got == b"a"
    assert proxy.counts.swallowed >= 2
    proxy.clear()
    assert await client.hear(1) == b"b"
    assert await late.hear(1) == b"c"


async def test_only_answers_are_swallowed_when_asked_so(proxy: Proxy, echo: Echo, connect: Connect) -> None:
    client = await connect(proxy.address)
    proxy.swallow("down")
    proxy.clear()
    await client.say(b"a")
    await client.hear(1)
    proxy.swallow("down")
    await client.say(b"b")
    await until(lambda: echo.got == b"ab")
    with pytest.raises(TimeoutError):
        await client.hear(1, 0.1)


async def test_both_sides_meet_a_reset_when_cut(proxy: Proxy, echo: Echo, connect: Connect) -> None:
    client = await connect(proxy.address)
    await client.say(b"a")
    await client.hear(1)
    assert proxy.cut() == 1
    with pytest.raises(ConnectionResetError):
        await client.reader.read()
    await until(lambda: echo.ends == [ConnectionResetError])
    assert proxy.counts.cuts == 1
    again = await connect(proxy.address)
    await again.say(b"b")
    assert await again.hear(1) == b"b"


async def test_connection_is_cut_in_the_middle_of_a_statement(
    proxy: Proxy, echo: Echo, connect: Connect
) -> None:
    client, other = await connect(proxy.address), await connect(proxy.address)
    struck = proxy.cut_after(6, "up")
    await other.say(b"1234")
    await other.hear(4)
    await client.say(b"abc")
    await client.hear(3)
    await client.say(b"defghi")
    async with asyncio.timeout(HANG):
        await struck.wait()
    with pytest.raises(ConnectionResetError):
        await client.reader.readexactly(6)
    await until(lambda: len(echo.ends) == 1)
    assert echo.got == b"1234abcdef"
    await other.say(b"5678")
    assert await other.hear(4) == b"5678", "only one connection is struck, and only once"


async def test_question_arrives_and_its_answer_does_not(proxy: Proxy, echo: Echo, connect: Connect) -> None:
    client = await connect(proxy.address)
    proxy.cut_after(0, "down")
    await client.say(b"commit")
    with pytest.raises(ConnectionResetError):
        await client.reader.read()
    assert echo.got == b"commit"
    assert proxy.counts.down == 0


async def test_newcomers_are_refused_and_others_stay(proxy: Proxy, connect: Connect) -> None:
    client = await connect(proxy.address)
    await client.say(b"a")
    await client.hear(1)
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        await connect(proxy.address)
    await client.say(b"b")
    assert await client.hear(1) == b"b"
    proxy.clear()
    again = await connect(proxy.address)
    await again.say(b"c")
    assert await again.hear(1) == b"c"


async def test_newcomers_are_reset_when_nobody_listens_at_the_target(proxy: Proxy, connect: Connect) -> None:
    async with Echo() as gone:
        proxy.switch(gone.address)
    client = await connect(proxy.address)
    with pytest.raises(ConnectionError):
        await client.reader.readexactly(1)
    assert proxy.counts.refused == 1


async def test_newcomers_go_to_the_new_target(proxy: Proxy, connect: Connect) -> None:
    client = await connect(proxy.address)
    async with Echo(mark=b"!") as other:
        proxy.switch(other.address)
        new = await connect(proxy.address)
        await new.say(b"a")
        assert await new.hear(2) == b"!a"
        await client.say(b"a")
        assert await client.hear(1) == b"a"
        proxy.switch(other.address, cut=True)
        with pytest.raises(ConnectionResetError):
            await client.reader.read()


async def test_address_goes_by_way_of_it_and_nothing_else_of_it_changes() -> None:
    async with Proxy("127.0.0.1:5432") as proxy:
        url = proxy.between("postgresql://ada:p%40ss@db.example:5432/d?schema=s")
    assert url == f"postgresql://ada:p%40ss@127.0.0.1:{proxy.port}/d?schema=s"


@pytest.mark.parametrize("target", ["nowhere", ":5", "host:port"])
async def test_target_that_is_no_place_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        Proxy(target)


async def test_process_of_its_own_does_the_same_when_reported(echo: Echo, connect: Connect) -> None:
    with ProxyProcess(echo.address) as process:
        client = await connect(process.address)
        await client.say(b"a")
        assert await client.hear(1) == b"a"
        await asyncio.to_thread(process.tell, "swallow")
        await client.say(b"b")
        with pytest.raises(TimeoutError):
            await client.hear(1, 0.1)
        assert (await asyncio.to_thread(process.tell, "pass")).swallowed == 1
        assert await client.hear(1) == b"b"
        await asyncio.to_thread(process.tell, "delay", 0.1, 0.05)
        assert (await asyncio.to_thread(process.tell, "cut")).cuts == 1
        with pytest.raises(ConnectionResetError):
            await client.reader.read()
        await asyncio.to_thread(process.tell, "refuse")
        with pytest.raises(ConnectionRefusedError):
            await connect(process.address)
        for wrong in ("explode", "delay", "delay soon", "swallow sideways", "target nowhere"):
            with pytest.raises(ValueError, match=r"no such command|cannot be done"):
                await asyncio.to_thread(process.tell, *wrong.split())
