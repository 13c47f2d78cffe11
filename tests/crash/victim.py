"""A process to kill: `python -m tests.crash.victim ADDRESS WORLD FLOW RUN`, or `... DEED RUN BRANCH`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from holdfast import Holdfast
from tests.crash import flows, life, resume
from tests.crash.world import World


def say(what: str, *facts: Any, **more: Any) -> None:
    """In one write, so that a kill leaves whole lines."""
    os.write(1, (json.dumps([what, *facts, more] if more else [what, *facts]) + "\n").encode())


async def main(address: str, name: str, run: str, branch: str = "") -> None:
    async with Holdfast(address, settings=life.SETTINGS) as hf:
        if branch:
            await resume.DEEDS[name](hf, run, branch, say, asyncio.sleep)
        else:
            await life.live(hf, name, run, say, asyncio.sleep)


if __name__ == "__main__":
    flows.settle_in(World(Path(sys.argv[2])))
    asyncio.run(main(sys.argv[1], *sys.argv[3:]))
