"""`worker`: advances what others start, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib

from holdfast.app.flow import Flow
from holdfast.app.worker import Worker
from holdfast.cli.driving import Signals
from holdfast.cli.locating import address_in, load_flows
from holdfast.cli.main import Exit
from holdfast.cli.observing import start_logging
from holdfast.cli.opening import open_house, remember_source
from holdfast.cli.screen import note, to_json

LEASE = 30.0


async def work(
    specs: list[str],
    lanes: list[str] | None,
    concurrency: int,
    *,
    until_idle: bool,
    store: str | None,
    json: bool,
) -> Exit:
    """With `json`: one line on stdout that says what it carries, and logs as JSON lines."""
    with start_logging("json" if json else "text"):
        return await _work(specs, lanes, concurrency, until_idle=until_idle, store=store, json=json)


async def _work(
    specs: list[str],
    lanes: list[str] | None,
    concurrency: int,
    *,
    until_idle: bool,
    store: str | None,
    json: bool,
) -> Exit:
    carried = [(spec, flow) for spec in specs for flow in load_flows(spec)]
    flows = [flow for _, flow in carried]
    async with open_house(store, must_exist=False, lease=LEASE) as house:
        worker = Worker(*flows, on=house, lanes=lanes, concurrency=concurrency)
        await house.open()
        for spec, flow in carried:
            remember_source(store, flow.program().version, address_in(spec, flow))
        if json:
            versions = {flow.name: flow.program().version for flow in flows}
            print(to_json({"flows": versions, "lanes": lanes, "concurrency": concurrency}), flush=True)
        else:
            note(_greeting(flows, lanes))
        await _live(worker, until_idle=until_idle)
    return Exit.ok


def _greeting(flows: list[Flow], lanes: list[str] | None) -> str:
    where = f" in {', '.join(lanes)}" if lanes else ""
    names = ", ".join(f"{flow.name} {flow.label}".strip() for flow in flows)
    return f"This worker carries {names}{where}. Ctrl-C or SIGTERM drains it."


async def _live(worker: Worker, *, until_idle: bool) -> None:
    serving = asyncio.ensure_future(worker.run_until_idle() if until_idle else worker.serve())
    stops = 0

    def stop() -> None:
        nonlocal stops
        stops += 1
        if stops > 1:
            serving.cancel()
            return
        note("Draining: steps that run may finish, then their runs are given back. Once more stops at once.")
        tasks.append(asyncio.ensure_future(worker.stop()))

    tasks: list[asyncio.Future[None]] = []
    with Signals(stop):
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        await asyncio.gather(*tasks)
    await worker.close()
