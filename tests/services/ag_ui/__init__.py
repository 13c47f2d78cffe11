"""The official JavaScript client of AG-UI, from npm."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

from tests.services.node import PATIENCE, program
from tests.services.npm import installed

HERE = Path(__file__).parent


async def front_end(**given: Any) -> list[dict[str, Any]]:
    """What it has seen, run by run. Ends the test where it cannot be had."""
    place = installed("ag-ui", HERE)
    script = shutil.copy(HERE / "front_end.mjs", place)  # beside its packages, where Node looks for them
    process = await asyncio.create_subprocess_exec(
        str(program()),
        str(script),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        | {"GIVEN": json.dumps(given)},
    )
    async with asyncio.timeout(PATIENCE):
        out, complaint = await process.communicate()
    assert process.returncode == 0, complaint.decode()
    return [json.loads(line) for line in out.decode().splitlines()]
