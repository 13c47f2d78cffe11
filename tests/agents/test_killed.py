"""A process of an agent is killed for real, in the middle of an answer, and another goes on."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.testing.clock import FakeClock
from tests.agents.helpers import turns_listed
from tests.agents.provider import Answer, Provider, Refusal
from tests.deadlines import HANG
from tests.flows.places import told

pytestmark = pytest.mark.anyio

FLOW = '''
import os
from pathlib import Path

from holdfast import Flow, OpenAI, Retries, tool

WORLD = Path(os.environ["AGENT_WORLD"])


@tool
def post(letter: str) -> str:
    """Posts a letter."""
    with WORLD.open("a") as world:
        world.write(letter + "\\n")
    return f"posted {letter}"


async def no_wait(_seconds: float) -> None:
    return None


flow = Flow("posting")
flow.agent(
    "clerk",
    model=OpenAI(
        "m", base_url=os.environ["AGENT_URL"], key="AGENT_KEY", retries=Retries(attempts=3), sleep=no_wait
    ),
    instructions="Post what you are given.",
    tools=[post],
    output="answer",
)
'''


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("posting_flow", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.flow


@pytest.mark.covers("TOOL-AGENT-05", "TOOL-AGENT-12", "TOOL-AGENT-11", "RS-AGENT-2")
async def test_nothing_settled_is_repeated_and_the_prompt_is_the_same_when_a_process_is_killed(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, store, code = tmp_path / "world", f"sqlite:{tmp_path / 'k.db'}", tmp_path / "posting.py"
    code.write_text(FLOW)
    monkeypatch.setenv("AGENT_WORLD", str(world))
    monkeypatch.setenv("AGENT_URL", f"{provider.url}/v1")
    monkeypatch.setenv("AGENT_KEY", "sk-1")
    process: list[asyncio.subprocess.Process] = []

    def kill() -> None:
        os.kill(process[0].pid, signal.SIGKILL)

    provider.says(
        Answer("First.", [("c1", "post", '{"letter": "a"}'), ("c2", "post", '{"letter": "b"}')]),
        Refusal(503),
        Answer("Second.", [("c3", "post", '{"letter": "c"}')]),
        Answer("Never heard.", before=kill),
        Answer("All posted."),
    )
    process.append(
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "holdfast", "run", str(code), "--store", store,
            "--input", '{"prompt": "Post"}',
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    )  # fmt: skip
    _, said = await asyncio.wait_for(process[0].communicate(), HANG)
    assert process[0].returncode == -signal.SIGKILL, said.decode()
    # The lease of the dead process has lapsed long ago on this clock.
    async with Holdfast(store, clock=FakeClock()) as hf:
        (row,) = await (await hf.open()).find_runs("")
        result = await load(code).resume(row.id, on=hf)
        assert result.completed
        assert result.state["answer"] == "All posted."
        assert await turns_listed(hf, result) == [1, 2, 3]
        tried = [e for e in await told(hf, result, "node.emitted") if e.data["kind"] == "retry"]
        assert len(tried) == 1
    assert sorted(world.read_text().split()) == ["a", "b", "c"]
    first, busy, second, unheard, again = provider.bodies
    assert busy == second
    assert unheard == again
    assert len({first, second, again}) == 3
    assert result.totals["tokens"] == 45
