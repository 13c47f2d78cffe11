"""Limits of a coding agent's conversation: loops, turns, the window of its model; and its first words."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast import Agent, AgentLoopError, Context, Flow, Holdfast, Scripted, TurnLimitError, tool, tool_call
from holdfast.agents.coding.kit import coding_tools
from holdfast.agents.coding.prompt import CUT, MOST, coding_prompt, project_instructions
from holdfast.agents.loop_detection import WARNING, is_loop
from holdfast.agents.messages import TokenUsage
from tests.agents.helpers import results
from tests.flows.places import Place, told

pytestmark = pytest.mark.anyio


@tool(effect="read")
def look(place: str) -> str:
    """Looks at a place."""
    return f"{place} is calm. " + "x" * 400


def a_flow(model: Scripted, **options: Any) -> Flow:
    flow = Flow("coding")
    flow.agent("bot", Agent("bot", model=model, tools=[look], **options), output="answer")
    return flow


def calls(*places: str) -> list[Any]:
    return [tool_call("look", place=place) for place in places]


# ---------------------------------------------------------------------- loops
@pytest.mark.covers("CP2-A9")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aaaaaaaaaa", True),
        ("ababababab", True),
        ("abcabcabca", True),
        ("xabcabcabc", True),
        ("xaaaaaaaaa", True),  # nine of one are three times three
        ("aaaaaaaaa", False),
        ("abababababx", False),
        ("abcdabcdab", False),
        ("xyababababab"[-10:], True),
        ("abcabxabcabc", False),
    ],
)
def test_ten_calls_that_repeat_one_to_three_are_a_loop(text: str, expected: bool) -> None:
    assert is_loop(list(text)[-10:]) is expected


@pytest.mark.covers("CP2-A9")
@pytest.mark.parametrize("pattern", ["a", "ab", "abc"])
async def test_a_model_in_a_loop_is_warned_once_and_then_fails(hf: Holdfast, pattern: str) -> None:
    places = (pattern * 20)[:20]
    model = Scripted(*(call for place in places for call in calls(place)), "never")
    flow = a_flow(model, detect_loops=True, max_turns=0)
    result = await flow.run({"prompt": "Go"}, on=hf)
    assert result.error is not None
    assert result.error.code == AgentLoopError.code
    assert len(model.requests) == 20
    texts = [message.text for message in model.requests[-1].messages if message.role == "user"]
    assert texts == ["Go", WARNING]
    # The warning comes after the results of the tenth call.
    before = model.requests[10].messages
    assert before[-1].text == WARNING
    assert before[-2].role == "tool"


@pytest.mark.covers("CP2-A9")
async def test_a_model_that_takes_the_warning_continues(place: Place) -> None:
    model = Scripted(*calls(*"aaaaaaaaaa"), *calls("b", "c"), "done")
    flow = a_flow(model, detect_loops=True)
    # Also where another process builds the same messages again.
    await place.crash(flow, {"prompt": "Go"}, "after_substep", nth=23)
    hf = await place.finish(flow)
    (row,) = await (await hf.open()).find_runs("")
    assert row.status == "completed"
    assert [m.text for m in model.requests[-1].messages if m.role == "user"] == ["Go", WARNING]


async def test_agents_of_the_library_are_not_watched_unless_they_ask_for_it(hf: Holdfast) -> None:
    model = Scripted(*calls(*"a" * 25), "done")
    result = await a_flow(model, max_turns=30).run({"prompt": "Go"}, on=hf)
    assert result.state["answer"] == "done"


# ---------------------------------------------------------------------- turns and the window
@pytest.mark.covers("CP2-A10")
async def test_no_turns_means_any_number_of_them(hf: Holdfast) -> None:
    model = Scripted(*calls(*map(str, range(60))), "done")
    result = await a_flow(model, max_turns=0).run({"prompt": "Go"}, on=hf)
    assert result.state["answer"] == "done"
    result = await a_flow(Scripted(*model.turns), max_turns=20).run({"prompt": "Go"}, on=hf)
    assert result.error is not None
    assert result.error.code == TurnLimitError.code


@pytest.mark.covers("CP2-A10")
async def test_old_results_shrink_to_a_line_near_the_end_of_the_window(place: Place) -> None:
    """About a hundred tokens a result: the window has room for ten of them."""
    model = Scripted(*calls(*map(str, range(12))), "done", tokens=TokenUsage(0, 0))
    flow = a_flow(model, window=1200)
    hf = await place.hf()
    result = await flow.run({"prompt": "Go"}, on=hf)
    assert result.state["answer"] == "done"
    last = results(model.requests[-1])
    shrunk = [each.text for each in last if each.text.startswith("[This result of")]
    assert 0 < len(shrunk) < 12
    assert [each.text for each in last][: len(shrunk)] == shrunk
    assert "\n" not in shrunk[0]
    # The latest result is whole.
    assert last[-1].text.startswith("11 is calm")
    # What was shrunk once stays so: a turn begins with the turn before it.
    first = next(number for number, each in enumerate(model.requests) if "left out" in str(each.messages))
    assert (
        model.requests[first + 1].messages[: len(model.requests[first].messages)]
        == model.requests[first].messages
    )
    logs = [e.data["data"] for e in await told(hf, result, "node.emitted") if e.data["kind"] == "log"]
    assert len([each for each in logs if "of its model's context" in each]) == 1


@pytest.mark.covers("CP2-A10")
async def test_what_was_shrunk_is_the_same_in_another_process_with_another_window(place: Place) -> None:
    script = (*calls(*map(str, range(12))), "done")
    alone = Scripted(*script, tokens=TokenUsage(0, 0))
    await a_flow(alone, window=1200).run({"prompt": "Go"}, on=await place.hf())
    model = Scripted(*script, tokens=TokenUsage(0, 0))
    agent = Agent("bot", model=model, tools=[look], window=1200)
    flow = Flow("coding2")
    flow.agent("bot", agent, output="answer")
    await place.crash(flow, {"prompt": "Go"}, "after_substep", nth=38)
    assert any("left out" in str(each.messages) for each in model.requests)
    agent.window = 0
    await place.finish(flow)
    assert model.requests[-1].messages == alone.requests[-1].messages


async def test_the_tokens_that_a_model_counted_decide(hf: Holdfast) -> None:
    """The texts are short; what the model counts is near its window."""
    model = Scripted(*calls("a", "b", "c"), "done", tokens=TokenUsage(960, 10))
    await a_flow(model, window=1000).run({"prompt": "Go"}, on=hf)
    assert [each.text[:14] for each in results(model.requests[-1])][:2] == ["[This result o"] * 2


# ---------------------------------------------------------------------- the first words
def a_project(root: Path) -> Path:
    inner = root / "packages/web"
    (inner / ".codex").mkdir(parents=True)
    (root / ".codex").mkdir()
    subprocess.run(["git", "init", "-q", "-b", "trunk", root], check=True)
    subprocess.run(
        [
            "git",
            "-C",
            root,
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "First",
        ],
        check=True,
    )
    for folder, name in ((root, "root"), (root / "packages", "packages"), (inner, "web")):
        (folder / "AGENTS.md").write_text(f"agents of {name}")
        (folder / "CLAUDE.md").write_text(f"claude of {name}")
        (folder / "GEMINI.md").write_text(f"gemini of {name}")
    (root / ".codex/instructions.md").write_text("codex of root")
    return inner


@pytest.mark.covers("CP2-A7")
@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("anthropic", ["agents of root", "claude of root", "agents of packages", "claude of packages",
                       "agents of web", "claude of web"]),
        ("gemini", ["agents of root", "gemini of root", "agents of packages", "gemini of packages",
                    "agents of web", "gemini of web"]),
        ("openai", ["agents of root", "codex of root", "agents of packages", "agents of web"]),
        ("", ["agents of root", "agents of packages", "agents of web"]),
    ],
)  # fmt: skip
def test_project_files_are_read_root_first_and_by_family(
    tmp_path: Path, family: str, expected: list[str]
) -> None:
    text = project_instructions(a_project(tmp_path), family)
    assert [line for line in text.splitlines() if " of " in line] == expected
    assert "# packages/web/AGENTS.md" in text


@pytest.mark.covers("CP2-A7")
def test_project_files_end_at_32_kib_and_lead_nowhere_else(tmp_path: Path) -> None:
    root = tmp_path / "project"
    inner = a_project(root)
    (tmp_path / "secret").write_text("secret of outside")
    (inner / "AGENTS.md").unlink()
    (inner / "AGENTS.md").symlink_to(tmp_path / "secret")
    (inner / "CLAUDE.md").unlink()
    (inner / "CLAUDE.md").symlink_to("../../AGENTS.md")
    text = project_instructions(inner, "anthropic")
    assert "secret" not in text
    assert text.count("agents of root") == 1
    (root / "CLAUDE.md").write_text("\u00e4" * MOST)
    text = project_instructions(inner, "anthropic")
    assert text.endswith(CUT)
    assert MOST - 10 < len(text.removesuffix(CUT).encode()) < MOST + 10
    assert "\ufffd" not in text
    assert "of packages" not in text


@pytest.mark.covers("CP2-A7")
@pytest.mark.parametrize("family", ["openai", "anthropic", "gemini", ""])
async def test_the_first_words_tell_of_family_environment_git_tools_and_project(
    tmp_path: Path, family: str
) -> None:
    inner = a_project(tmp_path)
    tools = coding_tools(inner, family=family)
    day = 1_790_000_000_000_000
    text = await coding_prompt(inner, family=family, model="m-1", tools=tools, now=day)
    order = ["You are a coding agent", "<environment>", "<git>", "Tools: read_file", "# AGENTS.md"]
    assert sorted(order, key=text.index) == order
    assert f"Working folder: {inner}" in text
    assert "Date: 2026-09-21" in text
    assert "Model: m-1" in text
    assert "Branch: trunk" in text
    assert "First" in text.partition("Latest commits:")[2]
    assert ("apply_patch" in text) == (family == "openai")
    assert ("list_dir" in text) == (family == "gemini")


@pytest.mark.covers("CP2-A7")
async def test_the_first_words_are_read_once_and_recorded(place: Place) -> None:
    read: list[str] = []

    async def preface(ctx: Context) -> str:
        read.append(ctx.node)
        return f"Read {len(read)} times. {{{{not a template}}}}"

    model = Scripted(*calls("a", "b"), "done")
    flow = a_flow(model, preface=preface, instructions="Do {{prompt}}.")
    await place.crash(flow, {"prompt": "Go"}, "after_substep", nth=4)
    await place.finish(flow)
    assert read == ["bot"]
    system = {request.messages[0].text for request in model.requests}
    assert system == {"Read 1 times. {{not a template}}\n\nDo Go."}
