"""A process that calls one effect until it has its result, and may be killed: ADDRESS WORLD NAME."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from holdfast import EffectInDoubtError, EffectWaitingError, Holdfast
from tests.crash import life
from tests.crash.world import World

WORLD = World(Path(sys.argv[2]))
RUN = "effect"
hf = Holdfast(sys.argv[1], settings=life.SETTINGS)


def pay(order: str, amount: int) -> dict[str, Any]:
    WORLD.happens("pay", RUN, key=order)
    return {"order": order, "paid": amount}


async def pay_async(order: str, amount: int) -> dict[str, Any]:
    return pay(order, amount)


def look(order: str, amount: int) -> dict[str, Any] | None:
    return {"order": order, "paid": amount} if WORLD.find(RUN, order) else None


FUNCTIONS = {
    "sync": hf.effect(key="pay-{{order}}", name="sync")(pay),
    "async": hf.effect(key="pay-{{order}}", name="async")(pay_async),
    "held": hf.effect(key="pay-{{order}}", name="held", hold="Pay {{amount}}?")(pay_async),
    "probed": hf.effect(key="pay-{{order}}", name="probed", probe=look)(pay_async),
}


async def main(name: str) -> None:
    async with hf:
        for _ in range(10):
            try:
                found = FUNCTIONS[name]("A17", 250)
                result = await found if asyncio.iscoroutine(found) else found
                os.write(1, (json.dumps(["result", result]) + "\n").encode())
                return
            except EffectInDoubtError as error:
                os.write(1, b'["doubt"]\n')
                happened = WORLD.find(RUN, "A17") is not None
                data = {"value": {"order": "A17", "paid": 250}} if happened else None
                decision = "happened" if happened else "not_happened"
                await (await hf.service()).answer(str(error.facts["hold"]), decision, data=data)
            except EffectWaitingError as error:
                os.write(1, b'["asked"]\n')
                await (await hf.service()).answer(str(error.facts["hold"]), "approve")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[3]))
