"""The flow of the stored files in golden/stores: it asks, and does what it is told. Never to be changed.

`python -m tests.upgrade.questions FILE` makes such a file with the release that is installed.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from holdfast import Flow, Holdfast


def asking_flow() -> Flow:
    flow = Flow("asking", effect="pure")
    ask = flow.hold(
        "ask",
        prompt="Refund {{amount}}?",
        options=["approve", "reject"],
        assignee="user:Dana@Acme.example",
        timeout="2d",
        on_timeout="cancel",
    )

    async def act(s: dict[str, Any]) -> dict[str, Any]:
        return {"done": s["decision"]}

    last = flow.node()(act)
    flow.start(ask)
    flow.edge(ask, last)
    return flow


async def make(file: str) -> None:
    """Runs that wait, that were answered and went on, that were answered and did not go on yet, and one that
    was cancelled."""
    async with Holdfast(f"sqlite:{file}") as hf:
        service = await hf.service()
        flow = asking_flow()
        names = ("waits", "ended", "answered", "cancelled")
        runs = {name: await flow.run({"amount": 250}, on=hf, thread=name) for name in names}
        for name in ("ended", "answered"):
            await service.answer(runs[name].holds[0].id, "approve", by="user:ada")
        await service.cancel(runs["cancelled"].run_id, reason="not needed")
        for name in ("ended", "cancelled"):
            await flow.resume(runs[name].run_id, on=hf)


if __name__ == "__main__":
    asyncio.run(make(sys.argv[1]))
