"""One of two processes at the same holds: `python -m tests.holds.races.rival DATABASE DEED`, ids on stdin,
some on each line.

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
    while line := sys.stdin.readline():
        begin, holds = json.loads(line)
        for number, (hold, run) in enumerate(holds):
            while time.time() < begin + number * PACE:
                pass
            print(json.dumps(await tried(store, name, hold, run)))
        sys.stdout.flush()
    await store.close()


async def tried(store: Store, name: str, hold: str, run: str) -> dict[str, Any]:
    try:
        return {"done": await deed(store, name, hold, run)}
    except HoldfastError as error:
        facts = {key: str(value) for key, value in error.facts.items() if value is not None}
        return {"code": error.code, **facts}


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
