"""What the driver says of lost connections, in words for whoever reads it."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import suppress
from typing import Any

import asyncpg
import pytest

from holdfast.errors import StoreUnavailableError
from holdfast.store.sql.postgres.errors import DRIVER_ERRORS, translated
from tests.services import postgres

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("small_heap")]


async def _broken_transaction(address: str) -> BaseException:
    """What the driver raises when somebody's transaction ends after his connection did."""
    connection: Any = await asyncpg.connect(address)
    try:
        async with connection.transaction():
            pid = connection.get_server_pid()
            await asyncio.to_thread(postgres.execute, f"SELECT pg_terminate_backend({pid})")
            while not connection.is_closed():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    except DRIVER_ERRORS as error:
        return error
    finally:
        connection.terminate()
    raise AssertionError("it went well")


@pytest.mark.covers("FLEET-DEGR-01")
async def test_lost_connection_is_reported_without_the_drivers_names() -> None:
    error = await _broken_transaction(postgres.database())
    assert "__aexit__" in str(error)
    said = translated(error, "ada@db")
    assert isinstance(said, StoreUnavailableError)
    assert said.message == "the database ada@db cannot be reached: the connection was lost."
    assert said.facts["away"]


async def _connect(address: str) -> Any:
    return await asyncpg.connect(address)


def _left_behind() -> list[str]:
    """Errors that this loop finds and nobody asked for; they go their way as ever."""
    found: list[str] = []

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        found.append(str(context.get("exception")))
        loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(handle)
    return found


@pytest.mark.covers("FLEET-DEGR-01")
async def test_connection_that_nobody_waits_for_any_more_ends_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Called off at every moment, one of which leaves an error behind that nobody fetches."""

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    address = f"postgresql://ada@127.0.0.1:{port}/d?sslmode=prefer"
    left = _left_behind()
    with caplog.at_level(logging.ERROR, "asyncio"):
        for moments in range(12):
            connecting = asyncio.ensure_future(_connect(address))
            for _ in range(moments):
                await asyncio.sleep(0)
            connecting.cancel()
            with suppress(asyncio.CancelledError, OSError, asyncpg.PostgresError):
                await connecting
            await asyncio.sleep(0.01)
            del connecting
            gc.collect()
    server.close()
    assert any("connection_lost()" in error for error in left)
    assert caplog.records == []
