"""`doctor`: the command-line agents that pipelines may run here, and whether their versions were tested."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

from holdfast.agents.tool_environment import tool_environment
from holdfast.attractor.backends.agents.adapter import AgentAdapter
from holdfast.attractor.backends.agents.backend import ADAPTERS, installed_agents
from holdfast.cli.doctor.finding import OK, WARN, Finding

_PATIENCE = 15.0
_VERSION = re.compile(r"\b(\d+(?:\.\d+)+)")


async def agent_findings() -> AsyncIterator[Finding]:
    """No finding without an agent on PATH."""
    names = installed_agents()
    if not names:
        return
    found = await asyncio.gather(*(_checked(ADAPTERS[name]) for name in names))
    odd = [said for said, tested in found if not tested]
    if not odd:
        yield Finding("agents", OK, f"agents of pipelines: {', '.join(said for said, _ in found)}")
        return
    yield Finding(
        "agents",
        WARN,
        f"{len(odd)} of {len(found)} agents of pipelines have a version that was not tested",
        "install a tested version, or try a pipeline before you rely on it",
        odd,
    )


async def _checked(adapter: AgentAdapter) -> tuple[str, bool]:
    low, below = (".".join(map(str, version)) for version in adapter.tested)
    version = await _version(adapter.program)
    if not version:
        return f"{adapter.name} does not report its version (tested: {low} to before {below})", False
    parts = tuple(int(part) for part in version.split("."))
    if adapter.tested[0] <= parts < adapter.tested[1]:
        return f"{adapter.name} {version}", True
    return f"{adapter.name} {version} (tested: {low} to before {below})", False


async def _version(program: str) -> str:
    """Empty if it does not tell."""
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            "--version",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=tool_environment(),
        )
    except OSError:
        return ""
    try:
        out, _ = await asyncio.wait_for(process.communicate(), _PATIENCE)
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    found = _VERSION.search(out.decode(errors="replace"))
    return found[1] if found else ""
