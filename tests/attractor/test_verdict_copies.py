"""A verdict that an agent only repeats from its request is not its own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import AgentBackend
from holdfast.attractor.backends.cli import CommandBackend
from holdfast.attractor.verdict import block_in, stray_in, structured_in
from holdfast.attractor.verdict_id import VerdictRequest
from tests.attractor.fake_agents import FakeAgents, agents, claude
from tests.attractor.run import dot, line, run

__all__ = ["agents"]
pytestmark = [pytest.mark.anyio, pytest.mark.covers("CP2-V5")]

# The gate gets what the stage before it said.
SAID = r'prompt="It said:\n{{stages.first.response}}"'
GATED = line(
    f"first [verdict=true]; gate [goal_gate=true, fail_closed=true, {SAID}];",
    "first",
    "gate",
)
REPEATS = "sed '/^End your answer with a verdict/,$d'"
ID = re.compile(r'"verdict_id": "(v[0-9a-f]{7})"')


def block(**fields: Any) -> str:
    return f"```json\n{json.dumps(fields)}\n```"


def agent(folder: Path, *, first: str, gate: str) -> CommandBackend:
    """What each of the two stages runs, in a shell."""
    script = folder / "agent"
    script.write_text(f'#!/bin/sh\nif [ "$HOLDFAST_NODE" = first ]; then\n{first}\nelse\n{gate}\nfi\n')
    script.chmod(0o755)
    return CommandBackend(str(script))


# As asked: with the id, which is in the form.
OBEYS = (
    """form=$(cat); id=$(echo "$form" | grep -o '"verdict_id": "[^"]*"' | tail -n 1); """
    """printf 'Seen.\\n```json\\n{"outcome": "success", "preferred_label": "Ship", %s}\\n```\\n' "$id" """
)
FORGETS = """printf 'Seen.\\n```json\\n{"outcome": "success"}\\n```\\n'"""


@pytest.mark.parametrize("first", [OBEYS, FORGETS], ids=["obeys", "forgets"])
@pytest.mark.parametrize("gate", [REPEATS, f"{REPEATS}; echo I did nothing."])
async def test_a_gate_that_repeats_the_beginning_of_its_request_is_not_satisfied(
    hf: Holdfast, tmp_path: Path, first: str, gate: str
) -> None:
    result = await run(hf, GATED, tmp_path / "logs", backend=agent(tmp_path, first=first, gate=gate))
    assert '"outcome": "success"' in (tmp_path / "logs" / "gate" / "response.md").read_text()
    assert (result.status, result.context["failure_class"]) == ("fail", "verdict")


@pytest.mark.parametrize("first", [OBEYS, FORGETS], ids=["obeys", "forgets"])
async def test_its_own_verdict_counts_after_what_it_repeats(hf: Holdfast, tmp_path: Path, first: str) -> None:
    gate = f'request=$(cat); echo "$request" | {REPEATS}; echo "$request" | ({OBEYS})'
    result = await run(hf, GATED, tmp_path / "logs", backend=agent(tmp_path, first=first, gate=gate))
    assert result.succeeded


async def test_the_verdict_of_an_earlier_visit_is_not_that_of_this_one(hf: Holdfast, tmp_path: Path) -> None:
    text = dot(
        r'first [goal_gate=true, fail_closed=true, prompt="Before:\n{{stages.first.response}}"]; '
        "again [shape=parallelogram, tool_command=true];",
        "start -> first; first -> again [label=Ship]; again -> first; first -> done [label=End]",
    )
    backend = agent(
        tmp_path,
        first=f"if [ -e {tmp_path}/once ]; then {REPEATS}; else touch {tmp_path}/once; {OBEYS}; fi",
        gate=":",
    )
    result = await run(hf, text, tmp_path / "logs", backend=backend)
    assert (result.status, result.context["failure_class"]) == ("fail", "verdict")


async def test_a_label_that_is_repeated_chooses_no_edge(hf: Holdfast, tmp_path: Path) -> None:
    text = dot(
        f"first [verdict=true]; gate [{SAID}]; ship; ask;",
        "start -> first -> gate; gate -> ship [label=Ship]; gate -> ask [weight=2]; ship -> done; "
        "ask -> done",
    )
    result = await run(hf, text, tmp_path / "logs", backend=agent(tmp_path, first=OBEYS, gate=REPEATS))
    assert "ask" in result.completed_nodes


async def test_an_agent_that_reports_what_it_repeats_in_its_stream(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    """As claude does: the stream is its own, and the text in it that of another stage."""
    text = line("first [verdict=true]; gate [goal_gate=true, fail_closed=true];", "first", "gate")
    said = f"Seen.\n{block(outcome='success', verdict_id='v0000000')}"
    agents.plays("claude", claude(said))
    result = await run(hf, text, tmp_path / "logs", backend=AgentBackend("claude"))
    assert said in (tmp_path / "logs" / "gate" / "response.md").read_text()
    assert (result.status, result.context["failure_class"]) == ("fail", "verdict")


@pytest.mark.parametrize(
    ("outcome", "given", "counts"),
    [
        ("success", "v1111111", True),
        ("success", "v2222222", False),
        ("success", "v3333333", False),
        ("fail", "v1111111", True),
        ("fail", "v2222222", True),  # in its own words, with the id of another stage
        ("fail", "v3333333", True),  # of nobody: a mistake in the id
        ("success", "v4444444", True),  # the same, with the id of an earlier visit of the stage
    ],
)
def test_whose_a_verdict_is_says_its_id(outcome: str, given: str, counts: bool) -> None:
    asked = block(outcome="success", verdict_id="v2222222")
    request = VerdictRequest(id="v1111111", asked=asked, former=frozenset({"v4444444"}))
    body = {"outcome": outcome, "verdict_id": given}
    text = f"Well.\n{block(**body)}"
    expected = (body if counts else None, "")
    assert block_in(text, request) == expected
    assert structured_in(json.dumps(body), request) == expected
    stray = expected if outcome == "fail" else (None, "")
    assert stray_in(f"{text}\n```diff\n-a\n```", request) == stray


def test_a_verdict_without_an_id_is_no_proof_if_the_request_has_it() -> None:
    body = block(outcome="success", preferred_label="Ship")
    asked = f"{'The review of yesterday. ' * 9}\n{body}\nGo on."
    for strict in (True, False):
        request = VerdictRequest(id="v1111111", asked=asked, strict=strict)
        assert block_in(f"Mine.\n{block(outcome='success')}", request)[0] is not None
        # A copy of the request, or an answer in the words of its example.
        assert block_in(asked.removesuffix("\nGo on."), request) == (None, "")
        assert (block_in(f"Mine.\n{body}", request)[0] is None) is strict


@pytest.mark.parametrize("outcome", ["success", "fail"])
def test_a_verdict_that_stands_in_the_request_is_no_answer(outcome: str) -> None:
    """A failure of an earlier visit of the stage is one: it may have failed in the same way."""
    said = block(outcome=outcome, verdict_id="v2222222")
    for former in (frozenset[str](), frozenset({"v2222222"})):
        request = VerdictRequest(id="v1111111", asked=f"It said: {said}", former=former)
        counts = bool(former) and outcome == "fail"
        assert (block_in(f"Seen.\n{said}", request)[0] is not None) is counts


@pytest.mark.covers("CP2-V4")
@pytest.mark.parametrize("second", ["fail", "success"])
async def test_a_verdict_with_the_id_of_the_visit_before_is_the_stages_own(
    hf: Holdfast, tmp_path: Path, second: str
) -> None:
    """A model that reviews twice in one conversation gives the id that it was asked for first."""
    first: list[str] = []

    def answer(node: Any, prompt: str, context: Any, *, verdict: str) -> str:
        if node.id != "review":
            return "Fixed."
        first.append(verdict)
        known = first[0].split('"verdict_id": "')[1][:8]
        again = "fail" if len(first) == 1 else second
        label = "Change" if again == "success" else ""
        return f"Visit {len(first)}.\n{block(outcome=again, preferred_label=label, verdict_id=known)}"

    text = dot(
        "review [fidelity=full, thread_id=t, max_visits=2]; fix; ship; change;",
        'start -> review; review -> ship [label="Ship", weight=9]; review -> change [label="Change"];'
        'review -> fix [condition="outcome=fail"]; fix -> review; ship -> done; change -> done',
    )
    result = await run(hf, text, tmp_path / "logs", backend=answer)
    assert "ship" not in result.completed_nodes
    assert ("change" in result.completed_nodes) == (second == "success")
