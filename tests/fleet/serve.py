"""A worker process: `python -m tests.fleet.serve ADDRESS LEDGER`. Its flow writes lines to a file outside."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from holdfast import Flow, Holdfast, RunSettings, Worker

SETTINGS = RunSettings(lease_ttl=1.5, lease_margin=0.3, poll=0.1)


def orders(ledger: Path) -> Flow:
    flow = Flow("orders", effect="pure")

    async def check(s: Any) -> dict[str, Any]:
        await asyncio.sleep(0.02)
        return {"checked": True}

    async def ship(s: Any, ctx: Any) -> dict[str, Any]:
        with ledger.open("a") as file:
            file.write(f"{ctx.idempotency_key}\n")
        await asyncio.sleep(0.02)
        return {"shipped_by": os.getpid()}

    flow.node(id="check", effect="read")(check)
    flow.node(id="ship", effect="external", idempotency_key="{{order}}")(ship)
    flow.edge("check", "ship")
    return flow


async def serve(address: str, ledger: Path) -> None:
    flow = orders(ledger)
    async with Holdfast(address, settings=SETTINGS) as hf, Worker(flow, on=hf, poll=0.1):
        print("serving", flush=True)
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
