"""One of two processes at the same holds: `python -m tests.holds.races.rival DATABASE DEED`, ids on stdin.

Both begin with each hold at the same moment of the wall clock. One line of JSON for what it came to.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.holds.service import HoldService
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.types.clock import SystemClock
from holdfast.types.ids import RunId
from tests.holds.races.acts import ADMIN, PEOPLE

PACE = 0.006


async def deed(store: Store, name: str, hold: str, run: str) -> Any:
    service = HoldService(store)
    if name == "sweep":
        return (await HoldSweeper(store, SystemClock()).sweep(RunId(run))).expired
    if name == "cancel":
        return str((await service.cancel(ADMIN, hold)).status)
    who = PEOPLE[int(name)]
    return (await service.resolve(who, hold, {"decision": "approve", "comment": "mine"})).row.resolved_by


async def main(address: str, name: str) -> None:
    store = await open_store(address)
    print("ready", flush=True)
    begin, holds = json.loads(sys.stdin.readline())
    for number, (hold, run) in enumerate(holds):
        while time.time() < begin + number * PACE:
            pass
        try:
            said: Any = {"done": await deed(store, name, hold, run)}
        except HoldfastError as error:
            facts = {key: str(value) for key, value in error.facts.items() if value is not None}
            said = {"code": error.code, **facts}
        print(json.dumps(said))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
