"""A worker beside others of another release. Only what the public interface has had since then.

`python -m tests.upgrade.aside ADDRESS LEDGER` works until its input ends, and does what it is told there, a
line each: `start FIRST LAST` (runs of the orders with these numbers), `answer FIRST LAST`. It says `done`.

Each step of a run writes a line to the ledger: which order, which step, which release.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from holdfast import Flow, Holdfast, RunSettings, Worker

try:
    from holdfast.store.rows import RunFilter
except ImportError:
    # The last release has it under its old name; pyright sees only today's package.
    from holdfast.store.base import RunFilter  # type: ignore[no-redef]

SETTINGS = RunSettings(lease_ttl=2.0, lease_margin=0.5, poll=0.1)


def orders(ledger: Path) -> Flow:
    flow = Flow("orders", effect="pure")

    def told(s: Any, what: str) -> None:
        with ledger.open("a") as file:
            file.write(f"{s['order']} {what} {os.environ['SIDE']}\n")

    async def check(s: Any) -> dict[str, Any]:
        told(s, "checked")
        return {"checked": True}

    async def ship(s: Any) -> dict[str, Any]:
        told(s, "shipped")
        return {"by": os.environ["SIDE"]}

    first = flow.node(id="check", effect="read")(check)
    ask = flow.hold(
        "approve", prompt="Ship {{order}}?", options=["approve", "reject"], assignee="user:dana@acme"
    )
    last = flow.node(id="ship", effect="external", idempotency_key="{{order}}")(ship)
    flow.start(first)
    flow.edge(first, ask)
    flow.edge(ask, last)
    return flow


async def start(hf: Holdfast, ledger: Path, numbers: range) -> None:
    service = await hf.service()
    for number in numbers:
        await service.create(orders(ledger).program(), {"order": number}, thread=f"o-{number}")


async def answer(hf: Holdfast, _ledger: Path, numbers: range) -> None:
    service = await hf.service()
    for number in numbers:
        (run,) = await service.store.list_runs(RunFilter(thread=f"o-{number}"), after=None, limit=2)
        (hold,) = await service.holds(run.id)
        await service.answer(hold.id, "approve", by="user:dana@acme")


async def serve(address: str, ledger: Path) -> None:
    async with Holdfast(address, settings=SETTINGS) as hf, Worker(orders(ledger), on=hf, poll=0.1):
        print("serving", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            what, first, last = line.split()
            act = {"start": start, "answer": answer}[what]
            await act(hf, ledger, range(int(first), int(last) + 1))
            print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
