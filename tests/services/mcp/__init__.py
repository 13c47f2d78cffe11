"""The public conformance tool of the Model Context Protocol, from npm."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from tests.services import npm

HERE = Path(__file__).parent
TOOL = "node_modules/@modelcontextprotocol/conformance/dist/index.js"

_WHEN = re.compile(r"-\d{4}-\d\d-\d\dT[\dZ-]+\Z")


@cache
def installed() -> Path:
    """Ends the test where it cannot be had."""
    return npm.installed("mcp", HERE, seconds=45)


async def checks(address: str, revision: str, into: Path) -> dict[str, list[dict[str, Any]]]:
    """What it finds out about a server, by scenario: all that a revision requires of one."""
    process = await asyncio.create_subprocess_exec(
        *npm.NODE, TOOL, "server", "--url", address, "--requirements", revision, "--output-dir", str(into),
        cwd=installed(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    found = _saved(into)
    assert found, said.decode()
    return found


def _saved(into: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        _WHEN.sub("", place.parent.name).removeprefix("server-"): msgspec.json.decode(place.read_bytes())
        for place in into.glob("*/checks.json")
    }
