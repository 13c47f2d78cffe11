"""A million waiting runs, with a hold each, in one store: beside ten thousand, in one run, as ratios."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest

from holdfast import Holdfast
from tests.services import postgres
from tests.soak.waiting_costs import WaitingRuns
from tests.waiting_runs import fill_postgres, fill_sqlite, refund

pytestmark = [pytest.mark.soak, pytest.mark.anyio, pytest.mark.timeout(3600)]

FEW, MANY = 10_000, 1_000_000
ROUNDS = 200
MOST = 1.5
BYTES = 6_000
_SIZE = """
SELECT sum(pg_total_relation_size(oid)) FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"""


@asynccontextmanager
async def on_sqlite(count: int, folder: Path) -> AsyncIterator[tuple[WaitingRuns, int]]:
    file = folder / f"{count}.db"
    parked = await fill_sqlite(str(file), count, refund())
    db = apsw.Connection(str(file))
    db.set_busy_timeout(60_000)

    async def set_due(key: int) -> None:
        db.execute("UPDATE timers SET fire_at = 0 WHERE run_key = ?", (key,))

    async with Holdfast(f"sqlite:{file}") as hf:
        yield WaitingRuns(hf, parked, count, set_due), file.stat().st_size
    db.close()


@asynccontextmanager
async def on_postgres(count: int, _folder: Path) -> AsyncIterator[tuple[WaitingRuns, int]]:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    driver: Any = asyncpg
    schema = f"waiting_{secrets.token_hex(4)}"
    parked = await fill_postgres(postgres.database(), schema, count, refund())
    conn = await driver.connect(postgres.database(), server_settings={"search_path": schema})

    async def set_due(key: int) -> None:
        await conn.execute("UPDATE timers SET fire_at = 0 WHERE run_key = $1", key)

    try:
        async with Holdfast(postgres.with_setting(postgres.database(), schema=schema)) as hf:
            yield WaitingRuns(hf, parked, count, set_due), int(await conn.fetchval(_SIZE))
    finally:
        await conn.execute(f"DROP SCHEMA {schema} CASCADE")
        await conn.close()


STORES: dict[str, Callable[[int, Path], Any]] = {"sqlite": on_sqlite, "postgres": on_postgres}


@pytest.mark.covers("SC2-5")
@pytest.mark.parametrize("store", STORES)
async def test_actions_cost_the_same_when_a_million_runs_wait(
    store: str, record_property: Callable[[str, float], None]
) -> None:
    # Not `tmp_path`, which is in memory: such a file is as large as that.
    with TemporaryDirectory(prefix="holdfast-waiting-") as folder:
        await _compare(store, Path(folder), record_property)


async def _compare(store: str, folder: Path, record_property: Callable[[str, float], None]) -> None:
    async with AsyncExitStack() as open_stores:
        few, _ = await open_stores.enter_async_context(STORES[store](FEW, folder))
        many, size = await open_stores.enter_async_context(STORES[store](MANY, folder))
        record_property(f"soak:{store}, bytes a waiting run", size // MANY)
        costly: list[str] = []
        for name, act in few.acts.items():
            small, large = await _medians(act, many.acts[name])
            record_property(f"soak:{store}, {name}, ms among {FEW:,}", round(small * 1000, 3))
            record_property(f"soak:{store}, {name}, ms among {MANY:,}", round(large * 1000, 3))
            record_property(f"soak:{store}, {name}, ratio", round(large / small, 2))
            if large > MOST * small:
                costly.append(f"{name}: {large / small:.2f}x, {large * 1000:.2f} ms")
    assert not costly
    assert size <= BYTES * MANY


async def _medians(one: Callable[[], Awaitable[float]], other: Callable[[], Awaitable[float]]) -> list[float]:
    """In turn, so that both meet the machine as it is in that moment, and neither is always the first."""
    ones: list[float] = []
    others: list[float] = []
    for nth in range(ROUNDS):
        if nth % 2:
            ones.append(await one())
        others.append(await other())
        if not nth % 2:
            ones.append(await one())
    return [median(ones), median(others)]
