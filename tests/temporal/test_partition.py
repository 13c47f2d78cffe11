"""A worker that is cut off from the cluster, the store or both performs no further effect when it is back."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from holdfast import Context, Flow, Holdfast
from tests.deadlines import HANG
from tests.flows.conftest import address_of
from tests.proxy.proxy import Proxy
from tests.services import temporal
from tests.temporal.runs import assert_same, engine_of, settled, workers

pytestmark = pytest.mark.anyio

# Whose code it is: all of them are in this process.
worker_name: ContextVar[str] = ContextVar("worker_name", default="")


class Shop:
    def __init__(self) -> None:
        self.ledger: list[tuple[str, str]] = []
        self.entered = asyncio.Event()
        self.may_continue = asyncio.Event()
        self.left = asyncio.Event()
        self.flow = Flow("cut")
        self.flow.script(self.script)

    async def script(self, _state: Any, ctx: Context) -> dict[str, Any]:
        who = worker_name.get()
        await ctx.step("ship", lambda: self.ledger.append((who, "ship")), effect="external")
        try:
            if who == "cut":
                self.entered.set()
                # A worker that hears nothing of the cluster for long cancels it here.
                await self.may_continue.wait()
            await ctx.step("thank", lambda: self.ledger.append((who, "thank")), effect="external")
        finally:
            if who == "cut":
                self.left.set()
        return {"done": True}


@pytest.mark.covers("TD-47")
@pytest.mark.parametrize(
    ("lost", "how"),
    [
        ("cluster", "reset"),
        ("both", "reset"),
        # Tasks that were given to its connections wait for their own time limit.
        pytest.param("both", "swallowed", marks=pytest.mark.soak),
    ],
)
async def test_worker_that_was_cut_off_performs_no_further_effect(
    lost: str, how: str, tmp_path: Path
) -> None:
    server, shop, store = temporal.own(), Shop(), await address_of("postgres", tmp_path)
    async with Proxy(server.target) as to_cluster, Proxy(_host(store)) as to_store:
        cut_store = to_store.between(store)
        cut_engine = server.address("1s").replace(server.target, to_cluster.address)
        async with (
            Holdfast(store, engine=server.address("1s")) as hf,
            Holdfast(cut_store, engine=cut_engine) as away,
        ):
            created = await shop.flow.submit({}, on=hf)
            async with _as("cut", away, shop.flow):
                async with asyncio.timeout(HANG):
                    await shop.entered.wait()
                    for proxy in (to_cluster, to_store) if lost == "both" else (to_cluster,):
                        if how == "swallowed":
                            proxy.swallow()
                            continue
                        proxy.refuse()
                        proxy.cut()
                    async with _as("well", hf, shop.flow):
                        done = await settled(shop.flow, hf, created)
                        assert dict(done.state) == {"done": True}
                        to_cluster.clear()
                        to_store.clear()
                        shop.may_continue.set()
                        await shop.left.wait()
                        await assert_same(hf, created)
            assert Counter(what for _, what in shop.ledger) == {"ship": 1, "thank": 1}
            assert ("well", "thank") in shop.ledger


@pytest.mark.covers("TD-46")
@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=pytest.mark.soak)])
async def test_runs_wait_while_the_store_is_away_and_continue(seconds: float, tmp_path: Path) -> None:
    server, store, ledger = temporal.own(), await address_of("postgres", tmp_path), list[str]()
    flow, begun = Flow("patient"), asyncio.Event()

    async def work(_state: Any, ctx: Context) -> None:
        ledger.append(f"{ctx.run_id} {ctx.node}")
        begun.set()

    flow.chain(*(flow.node(id=f"n{number}")(work) for number in range(6)))
    async with (
        Proxy(_host(store)) as to_store,
        Holdfast(to_store.between(store), engine=server.address("10s")) as hf,
        Holdfast(store, engine=server.address("10s")) as well,
    ):
        created = [await flow.submit({}, on=well) for _ in range(4)]
        async with workers(hf, flow), asyncio.timeout(seconds + HANG):
            await begun.wait()
            to_store.refuse()
            to_store.cut()
            await asyncio.sleep(seconds)
            assert len(ledger) < 24
            to_store.clear()
            for each in created:
                assert (await settled(flow, well, each)).completed
                await assert_same(well, each)
        assert Counter(ledger) == {f"{each} n{number}": 1 for each in created for number in range(6)}


@pytest.mark.covers("TD-47")
async def test_worker_that_was_cut_off_from_the_store_waits_and_continues(tmp_path: Path) -> None:
    server, shop, store = temporal.own(), Shop(), await address_of("postgres", tmp_path)
    async with (
        Proxy(_host(store)) as to_store,
        Holdfast(to_store.between(store), engine=server.address("2s")) as hf,
        Holdfast(store, engine=server.address("2s")) as well,
    ):
        created = await shop.flow.submit({}, on=well)
        async with _as("cut", hf, shop.flow), asyncio.timeout(HANG):
            await shop.entered.wait()
            to_store.refuse()
            to_store.cut()
            shop.may_continue.set()
            await asyncio.sleep(0.5)
            assert shop.ledger == [("cut", "ship")]
            to_store.clear()
            done = await settled(shop.flow, well, created)
            assert dict(done.state) == {"done": True}
        assert Counter(what for _, what in shop.ledger) == {"ship": 1, "thank": 1}
        await _ends(well, created)


async def _ends(hf: Holdfast, run: str) -> None:
    client = await (await engine_of(hf)).client()
    assert await client.get_workflow_handle(run).result() == "completed"


def _host(store: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(store)
    return f"{parts.hostname}:{parts.port or 5432}"


class _as:  # noqa: N801
    """Workers whose code knows its name."""

    def __init__(self, name: str, hf: Holdfast, flow: Flow) -> None:
        self._name, self._workers = name, workers(hf, flow)

    async def __aenter__(self) -> None:
        token = worker_name.set(self._name)
        await self._workers.__aenter__()
        worker_name.reset(token)

    async def __aexit__(self, *error: Any) -> None:
        await self._workers.__aexit__(*error)
