"""A worker process whose flow may kill it: `python -m tests.fleet.poison ADDRESS LEDGER`.

The node `blend` ends its process with SIGKILL, where its run is poisoned and no file `mended` lies beside the
ledger. The node before it has an effect outside, a line in the ledger.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from holdfast import Flow, Holdfast, RunSettings, Worker

SETTINGS = RunSettings(lease_ttl=1.0, lease_margin=0.2, poll=0.05)
BOUND = 2


def smoothies(ledger: Path) -> Flow:
    flow = Flow("smoothies", effect="pure")

    async def charge(s: Any, ctx: Any) -> dict[str, Any]:
        with ledger.open("a") as file:
            file.write(f"{ctx.idempotency_key}\n")
        return {"charged": True}

    async def blend(s: Any) -> dict[str, Any]:
        if s.get("poisoned") and not ledger.with_name("mended").exists():
            # As one that eats up memory does: not in its first moment, so that what was before is durable and
            # what others do in this process comes to its end, also on a slow machine.
            await asyncio.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        if s.get("slow"):
            # Longer than a poisoned run beside it lets its worker live.
            await asyncio.sleep(0.9)
        return {"blended": True}

    flow.node(id="charge", effect="external", idempotency_key="{{order}}")(charge)
    flow.node(id="blend")(blend)
    flow.edge("charge", "blend")
    return flow


async def serve(address: str, ledger: Path) -> None:
    flow = smoothies(ledger)
    how = {"poll": 0.05, "max_recoveries": BOUND, "recovery_backoff": 0.3}
    async with Holdfast(address, settings=SETTINGS) as hf, Worker(flow, on=hf, **how):
        print("serving", flush=True)
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
