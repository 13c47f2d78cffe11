"""Permissions of the Claude Agent SDK: requests of a process that speaks its control protocol."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip(
    "claude_agent_sdk", reason="claude-agent-sdk is not installed; `make partners` runs these tests"
)

from claude_agent_sdk import ToolPermissionContext

from holdfast import Holdfast
from holdfast.errors import InputError
from holdfast.integrations.claude_agent import ClaudeOutcome, PermissionHolds, ask_claude
from holdfast.types.ids import HoldId
from holdfast.types.terms import operator
from tests.crash.stores import address_on
from tests.integrations.claude_agent.program import Claude

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
PAY = ["Bash", {"command": "pay A17 250"}]
OTHER = ["Bash", {"command": "pay B2 3"}]


@pytest.fixture
async def hf(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Holdfast]:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as found:
        yield found


def holds_of(hf: Holdfast, **options: Any) -> PermissionHolds:
    return PermissionHolds(hf, "order-A17", poll=0.02, **options)


async def parked(claude: Claude, hf: Holdfast, resume: str | None = None, **options: Any) -> ClaudeOutcome:
    """A turn that ends as soon as a person is asked."""
    found = await ask_claude("Go on", claude.options(resume), holds_of(hf, **options), patience=0.3)
    assert found.waiting, found
    return found


async def decide(hf: Holdfast, hold: str, decision: str, **more: Any) -> None:
    await (await hf.service()).answer(hold, decision, **more)


async def shown(hf: Holdfast, hold: str) -> Any:
    return await (await hf.holds()).get(operator(), HoldId(hold))


@pytest.mark.covers("USERS-CLAUDE")
async def test_a_request_is_answered_while_its_process_lives(tmp_path: Path, hf: Holdfast) -> None:
    claude = Claude(tmp_path, PAY)
    holds = holds_of(hf, hold={"assignee": "group:finance"})

    async def person() -> str:
        while not holds.waiting:
            await holds.changed.wait()
        (hold,) = holds.waiting
        row = await shown(hf, hold)
        await decide(hf, hold, "approve")
        return f"{row.assignee}: {row.prompt}"

    asked = asyncio.ensure_future(person())
    outcome = await ask_claude("Pay them", claude.options(), holds, patience=30)
    assert await asked == "group:finance: The agent wants to run Bash: command pay A17 250. Allow it?"
    assert outcome.result is not None
    assert outcome.result.result == 'ran {"command": "pay A17 250"}'
    assert len(claude.calls) == 1


@pytest.mark.covers("USERS-CLAUDE")
async def test_a_decision_is_given_to_the_resumed_session(tmp_path: Path, hf: Holdfast) -> None:
    claude = Claude(tmp_path, PAY)
    first = await parked(claude, hf)
    assert claude.calls == []
    again = await parked(claude, hf, first.session_id)
    # The same question, asked once.
    assert (again.waiting, again.session_id) == (first.waiting, first.session_id)
    await decide(hf, first.waiting[0], "approve")
    outcome = await ask_claude("Go on", claude.options(first.session_id), holds_of(hf))
    assert outcome.result is not None
    assert len(claude.calls) == 1


@pytest.mark.covers("USERS-CLAUDE")
async def test_changed_input_and_refusals_reach_claude(tmp_path: Path, hf: Holdfast) -> None:
    claude = Claude(tmp_path, PAY, OTHER)
    first = await parked(claude, hf)
    changed = {"arguments": {"command": "pay A17 80"}}
    await decide(hf, first.waiting[0], "approve", data=changed)
    second = await parked(claude, hf, first.session_id)
    assert second.waiting != first.waiting
    await decide(hf, second.waiting[0], "reject", comment="Not theirs")
    outcome = await ask_claude("Go on", claude.options(first.session_id), holds_of(hf))
    assert outcome.result is not None
    assert outcome.result.result == (
        'ran {"command": "pay A17 80"}; denied: A person refused this call, and it was not made: Not theirs'
    )
    assert claude.calls == ['Bash ran {"command": "pay A17 80"}']


@pytest.mark.covers("USERS-CLAUDE")
@pytest.mark.parametrize("later", [PAY, OTHER], ids=["equal", "other"])
async def test_an_approval_allows_no_later_request(tmp_path: Path, hf: Holdfast, later: Any) -> None:
    claude = Claude(tmp_path, PAY, later)
    first = await parked(claude, hf)
    await decide(hf, first.waiting[0], "approve")
    second = await parked(claude, hf, first.session_id)
    assert len(claude.calls) == 1
    assert second.waiting != first.waiting


@pytest.mark.covers("USERS-CLAUDE")
async def test_an_approval_allows_no_other_input_that_is_asked_for_instead(
    tmp_path: Path, hf: Holdfast
) -> None:
    """The resumed model does not repeat its request."""
    first = await parked(Claude(tmp_path, PAY), hf)
    await decide(hf, first.waiting[0], "approve")
    claude = Claude(tmp_path, OTHER)
    second = await parked(claude, hf, first.session_id)
    assert second.waiting != first.waiting
    assert claude.calls == []


@pytest.mark.covers("USERS-CLAUDE")
async def test_an_approval_that_may_have_been_used_is_asked_for_again(tmp_path: Path, hf: Holdfast) -> None:
    """Claude Code dies after the call and before it keeps its result: the model makes the call again."""
    claude = Claude(tmp_path, PAY)
    first = await parked(claude, hf)
    await decide(hf, first.waiting[0], "approve")
    with pytest.raises(Exception, match="exit code 9"):
        await ask_claude("Go on", claude.options(first.session_id, FAKE_CLAUDE_DIES="0"), holds_of(hf))
    assert len(claude.calls) == 1
    second = await parked(claude, hf, first.session_id)
    assert second.waiting != first.waiting
    assert len(claude.calls) == 1


async def test_of_two_requests_at_the_same_time_one_gets_the_answer(tmp_path: Path, hf: Holdfast) -> None:
    first = await parked(Claude(tmp_path, PAY), hf)
    await decide(hf, first.waiting[0], "approve")
    both = [holds_of(hf), holds_of(hf)]
    asked = [asyncio.ensure_future(each(*PAY, ToolPermissionContext())) for each in both]
    done, open_ones = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    assert [each.result().behavior for each in done] == ["allow"]
    (loser,) = open_ones
    holds = both[asked.index(loser)]
    while not holds.waiting:
        holds.changed.clear()
        await holds.changed.wait()
    assert set(holds.waiting).isdisjoint(first.waiting)
    loser.cancel()
    await asyncio.gather(loser, return_exceptions=True)
    await holds.settle()


async def test_a_conversation_has_its_own_answers(tmp_path: Path, hf: Holdfast) -> None:
    claude = Claude(tmp_path, PAY)
    first = await parked(claude, hf)
    await decide(hf, first.waiting[0], "approve")
    other = PermissionHolds(hf, "order-B2", poll=0.02)
    outcome = await ask_claude("Go on", claude.options(), other, patience=0.3)
    assert outcome.waiting
    assert outcome.waiting != first.waiting
    assert claude.calls == []


async def test_a_conversation_without_a_name_is_refused(hf: Holdfast) -> None:
    with pytest.raises(InputError, match="the conversation ''"):
        PermissionHolds(hf, "")


@pytest.mark.covers("USERS-CLAUDE", "IN-5")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("point", ["after_park", "after_answer"])
async def test_a_killed_process_leaves_the_question_and_its_answer(
    tmp_path: Path, store: str, point: str
) -> None:
    """Killed when the hold is open, and when it is decided but not yet given to Claude Code."""
    claude, address = Claude(tmp_path, PAY), address_on(store, tmp_path)
    program = (
        "import asyncio\n"
        "from pathlib import Path\n"
        "from holdfast import Holdfast\n"
        "from holdfast.telemetry import arm\n"
        "from tests.integrations.claude_agent.test_permission_holds import *\n"
        "async def main():\n"
        f"    async with Holdfast({address!r}) as hf:\n"
        f"        arm({point!r})\n"
        f"        claude = Claude(Path({str(tmp_path)!r}), PAY)\n"
        "        found = await parked(claude, hf)\n"
        "        await decide(hf, found.waiting[0], 'approve')\n"
        "        await ask_claude('Go on', claude.options(found.session_id), holds_of(hf))\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    words = [sys.executable, "-c", program]
    done = await anyio.run_process(words, cwd=ROOT, env=environment, check=False)
    assert done.returncode not in (0, 1), done.stderr
    assert claude.calls == []
    async with Holdfast(address) as hf:
        outcome = await ask_claude("Go on", claude.options(), holds_of(hf), patience=0.5)
        if outcome.waiting:
            assert point == "after_park"
            await decide(hf, outcome.waiting[0], "approve")
            outcome = await ask_claude("Go on", claude.options(outcome.session_id), holds_of(hf))
        assert outcome.result is not None
    assert len(claude.calls) == 1


async def test_the_program_of_claude_code_ends_when_the_turn_is_stopped(tmp_path: Path, hf: Holdfast) -> None:
    claude = Claude(tmp_path, PAY)
    text = claude.program.read_text()
    claude.program.write_text(text.replace("exec", f"echo $$ > {tmp_path}/pid\nexec"))
    await parked(claude, hf)
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIG_DFL)


@pytest.mark.covers("IN-5")
async def test_the_example_runs_the_command_after_an_approval(
    tmp_path: Path, hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from examples.claude_agent_refund import refund

    claude = Claude(tmp_path, PAY)
    monkeypatch.setenv("CLAUDE_PROGRAM", str(claude.program))
    first = await refund(hf, patience=0.3)
    assert claude.calls == []
    await decide(hf, first.waiting[0], "approve")
    outcome = await refund(hf, resume=first.session_id)
    assert outcome.result is not None
    assert len(claude.calls) == 1
