"""The coding tools in an agent: what the model gets, what is recorded, and in which order."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast import Agent, Flow, Holdfast, InputError, RunStatus, Scripted, coding_tools, tool_call
from holdfast.agents import command
from holdfast.agents.coding import kit, search
from holdfast.agents.command import KeptOutput
from holdfast.agents.tool_environment import without_secrets
from holdfast.agents.tools import Approval, ToolError
from holdfast.agents.truncation import LIMITS
from tests.agents.coding import use
from tests.agents.helpers import results
from tests.deadlines import HANG
from tests.flows.places import Place, told

pytestmark = pytest.mark.anyio


def a_flow(model: Scripted, root: Path, *, more: dict[str, Any] | None = None, **options: Any) -> Flow:
    flow = Flow("coding")
    tools = coding_tools(root, **options)
    flow.agent("bot", model=model, tools=tools, output="answer", **(more or {}))
    return flow


def last_results(model: Scripted) -> list[tuple[str, bool]]:
    return [(each.text, each.failed) for each in results(model.requests[-1])]


COMMON = ["read_file", "write_file", "shell", "grep", "glob"]


@pytest.mark.covers("CP2-A1")
@pytest.mark.parametrize(
    ("family", "more"),
    [
        ("openai", ["apply_patch"]),
        ("anthropic", ["edit_file"]),
        ("gemini", ["edit_file", "list_dir"]),
        ("", ["edit_file"]),
    ],
)
def test_each_family_gets_the_tools_that_its_models_know(
    tmp_path: Path, family: str, more: list[str]
) -> None:
    assert sorted(each.name for each in coding_tools(tmp_path, family=family)) == sorted([*COMMON, *more])


@pytest.mark.covers("CP2-A1")
async def test_unknown_tools_and_bad_arguments_are_error_results(hf: Holdfast, tmp_path: Path) -> None:
    model = Scripted(
        [
            tool_call("apply_patch", patch="x"),
            tool_call("read_file", path="a"),
            tool_call("grep", pattern="("),
            tool_call("read_file", file_path="missing.txt"),
            tool_call("write_file", file_path="a.txt", content="kept"),
        ],
        "done",
    )
    result = await a_flow(model, tmp_path).run({"prompt": "Go"}, on=hf)
    assert result.state["answer"] == "done"
    unknown, bad, expression, missing, good = last_results(model)
    assert "there is no tool 'apply_patch'" in unknown[0]
    assert "do not fit 'read_file'" in bad[0]
    assert "the search failed" in expression[0]
    assert "missing.txt" in missing[0]
    assert [failed for _, failed in (unknown, bad, expression, missing, good)] == [True] * 4 + [False]
    assert (tmp_path / "a.txt").read_text() == "kept"


# ---------------------------------------------------------------------- limits
def test_the_limits_are_those_of_the_specification() -> None:
    assert {name: (each.characters, each.lines) for name, each in LIMITS.items()} == {
        "read_file": (50_000, None),
        "shell": (30_000, 256),
        "grep": (20_000, 200),
        "glob": (20_000, 500),
        "list_dir": (20_000, 500),
        "edit_file": (10_000, None),
        "apply_patch": (10_000, None),
        "write_file": (1_000, None),
        "sub-agent": (20_000, None),
    }


@pytest.mark.covers("CP2-A2")
async def test_a_long_result_is_cut_for_the_model_and_whole_as_an_artifact(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "big.txt").write_text("x" * 100_000)
    for number in range(600):
        (tmp_path / f"file-{number:03}.txt").write_text("needle\n")
    model = Scripted(
        [
            tool_call("read_file", file_path="big.txt"),
            tool_call("shell", command="seq 1 1000"),
            tool_call("shell", command="head -c 90000 /dev/zero | tr '\\0' y"),
            tool_call("grep", pattern="needle", max_results=500),
            tool_call("glob", pattern="*.txt"),
        ],
        tool_call("write_file", file_path="end.txt", content="end"),
        "done",
    )
    result = await a_flow(model, tmp_path).run({"prompt": "Go"}, on=await place.hf())
    read, lines, long, grep, glob = [text for text, _ in last_results(model)[:5]]
    assert 50_000 < len(read) < 50_200
    assert read.startswith("1 | xxx")
    assert (
        "[50,004 characters are left out here; all of it is the artifact bot.1.agent.1.tool.0.read_file]"
        in read
    )
    assert lines.count("\n") == 256
    assert lines.splitlines()[0] == "1"
    assert lines.splitlines()[-1] == "[exit code 0]"
    assert "745 lines are left out" in lines
    assert 30_000 < len(long) < 30_200
    assert grep.count("\n") == 200
    assert glob.count("\n") == 500
    made = result.artifacts
    assert made["bot.1.agent.1.tool.0.read_file"]["data"] == "1 | " + "x" * 100_000
    assert made["bot.1.agent.1.tool.1.shell"]["data"].splitlines()[:1000] == [str(n) for n in range(1, 1001)]
    assert made["bot.1.agent.1.tool.2.shell"]["data"].startswith("y" * 90_000)
    assert len(made) == 5


@pytest.mark.covers("CP2-A2")
async def test_the_whole_result_is_kept_when_another_process_ends_the_run(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "big.txt").write_text("x" * 100_000)
    model = Scripted(tool_call("read_file", file_path="big.txt"), tool_call("shell", command="true"), "done")
    flow = a_flow(model, tmp_path, approval={"shell": True})
    result = await flow.run({"prompt": "Go"}, on=await place.hf())
    assert result.status is RunStatus.pending_input
    other = await place.hf()
    (hold,) = result.holds
    await (await other.service()).answer(hold.id, "approve")
    ended = await flow.resume(result.run_id, on=other)
    assert ended.artifacts["bot.1.agent.1.tool.0.read_file"]["data"] == "1 | " + "x" * 100_000


@pytest.mark.covers("CP2-A2")
async def test_the_long_report_of_a_sub_agent_is_cut_and_whole_as_an_artifact(hf: Holdfast) -> None:
    helper = Agent("helper", model=Scripted("z" * 50_000))
    model = Scripted(tool_call("helper", task="Report"), "done")
    flow = Flow("helped")
    flow.agent("bot", model=model, tools=[helper.as_tool()], output="answer")
    result = await flow.run({"prompt": "Go"}, on=hf)
    ((text, failed),) = last_results(model)
    assert not failed
    assert 20_000 < len(text) < 20_200
    assert "[30,000 characters are left out here" in text
    assert result.artifacts["bot.1.agent.1.tool.0.helper"]["data"] == "z" * 50_000


# ---------------------------------------------------------------------- commands
@pytest.mark.covers("CP2-A3")
async def test_a_command_has_a_time_limit_that_the_model_may_raise_to_ten_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []

    async def run(*_: Any, timeout: float, **__: Any) -> command.CommandResult:
        seen.append(timeout)
        return command.CommandResult(0, "")

    monkeypatch.setattr(kit, "run_command", run)
    for family in ("openai", "anthropic", "gemini"):
        (shell,) = (each for each in coding_tools(tmp_path, family=family) if each.name == "shell")
        await shell(command="true")
        await shell(command="true", timeout_ms=90_000)
        await shell(command="true", timeout_ms=9_000_000)
    assert seen == [10, 90, 600, 120, 90, 600, 10, 90, 600]


@pytest.mark.covers("CP2-A3")
async def test_a_command_that_takes_too_long_is_asked_to_end_then_ended_with_its_group(
    hf: Holdfast, tmp_path: Path
) -> None:
    polite = "trap 'echo cleaned > polite; exit 0' TERM; echo begun; while :; do sleep 0.05; done"
    stubborn = (
        "trap '' TERM; (trap '' TERM; sleep 1000) & echo $! > child; echo on; while :; do sleep 0.05; done"
    )
    model = Scripted(
        [
            tool_call("shell", command=polite, timeout_ms=300),
            tool_call("shell", command=stubborn, timeout_ms=300),
        ],
        "done",
    )
    await a_flow(model, tmp_path).run({"prompt": "Go"}, on=hf)
    first, second = last_results(model)
    assert first[0].startswith("begun\n")
    assert "[It took longer than 0.3 s and was stopped" in first[0]
    assert second[0].startswith("on\n[It took longer")
    assert first[1]
    assert (tmp_path / "polite").read_text() == "cleaned\n"
    assert not is_alive(int((tmp_path / "child").read_text()))


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def test_a_command_does_not_wait_for_what_it_leaves_running(hf: Holdfast, tmp_path: Path) -> None:
    model = Scripted(
        [
            tool_call("shell", command="sleep 1000 & echo $! > child; echo left"),
            tool_call("shell", command="false"),
            tool_call("shell", command="printf '\\377\\376 bytes'; exit 3"),
        ],
        "done",
    )
    await a_flow(model, tmp_path).run({"prompt": "Go"}, on=hf)
    assert last_results(model) == [
        ("left\n[exit code 0]", False),
        ("[exit code 1]", True),
        ("\ufffd\ufffd bytes\n[exit code 3]", True),
    ]
    assert not is_alive(int((tmp_path / "child").read_text()))


@pytest.mark.covers("CP2-A3")
async def test_a_command_gets_no_variable_that_is_named_like_a_secret(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["X_API_KEY", "X_SECRET", "X_TOKEN", "X_PASSWORD", "X_CREDENTIAL", "x_token", "HARMLESS"]
    for name in names:
        monkeypatch.setenv(name, "hush")
    monkeypatch.setenv("HOLDFAST_TOOL_ENV", ",".join(names))
    model = Scripted(tool_call("shell", command="env"), "done")
    await a_flow(model, tmp_path).run({"prompt": "Go"}, on=hf)
    ((text, _),) = last_results(model)
    assert text.count("hush") == 1
    assert "HARMLESS=hush" in text
    assert without_secrets({"My_Api_Key": "1", "TOKENS": "2"}) == {"TOKENS": "2"}


def test_output_without_end_is_kept_at_both_ends() -> None:
    kept = KeptOutput(100)
    for number in range(1000):
        kept.add(f"{number:03},".encode())
    text = kept.text()
    assert text.startswith("000,001,")
    assert text.endswith("998,999,")
    assert "[3,900 bytes were not kept]" in text


@pytest.mark.parametrize("most", range(20, 28))
def test_no_character_is_cut_where_output_is_left_out(most: int) -> None:
    kept = KeptOutput(most)
    kept.add(b"a" + "é😀".encode() * 20)
    assert set(kept.text()) <= set("aé😀\n[0123456789 bytes were not kept]")


# ---------------------------------------------------------------------- order and approval
@pytest.mark.covers("CP2-A6")
async def test_writes_of_a_reply_are_made_in_order_and_reads_together(hf: Holdfast, tmp_path: Path) -> None:
    append = "sleep 0.0$((5 - {0})); echo {0} >> log; cat log | tr '\\n' ' '"
    model = Scripted(
        [
            tool_call("write_file", file_path="a.txt", content="one"),
            tool_call("edit_file", file_path="a.txt", old_string="one", new_string="two"),
            tool_call("read_file", file_path="a.txt"),
            tool_call("edit_file", file_path="a.txt", old_string="two", new_string="three"),
            *(tool_call("shell", command=append.format(number)) for number in (1, 2, 3)),
            tool_call("read_file", file_path="a.txt"),
            tool_call("read_file", file_path="log"),
        ],
        "done",
    )
    await a_flow(model, tmp_path).run({"prompt": "Go"}, on=hf)
    assert [text for text, _ in last_results(model)] == [
        "a.txt: 3 bytes",
        "a.txt: replaced 1 time",
        "1 | two",
        "a.txt: replaced 1 time",
        "1 \n[exit code 0]",
        "1 2 \n[exit code 0]",
        "1 2 3 \n[exit code 0]",
        "1 | three",
        "1 | 1\n2 | 2\n3 | 3",
    ]


@pytest.mark.covers("CP2-A6")
async def test_reads_of_one_reply_run_at_the_same_time(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: list[str] = []
    all_there = asyncio.Event()

    async def find(_folder: Any, pattern: str, *_: Any, **__: Any) -> str:
        running.append(pattern)
        if len(running) == 3:
            all_there.set()
        # Would wait for ever if one ran after the other.
        await asyncio.wait_for(all_there.wait(), HANG)
        return pattern

    monkeypatch.setattr(kit, "find_text", find)
    model = Scripted([tool_call("grep", pattern=each) for each in ("a", "b", "c")], "done")
    await a_flow(model, tmp_path).run({"prompt": "Go"}, on=hf)
    assert [text for text, _ in last_results(model)] == ["a", "b", "c"]


@pytest.mark.covers("CP2-A6")
async def test_an_approval_of_a_tool_is_a_hold(place: Place, tmp_path: Path) -> None:
    model = Scripted(
        [
            tool_call("write_file", file_path="a.txt", content="one"),
            tool_call("shell", command="touch b.txt"),
            tool_call("read_file", file_path="a.txt"),
        ],
        "done",
    )
    flow = a_flow(model, tmp_path, approval=True)
    result = await flow.run({"prompt": "Go"}, on=await place.hf())
    assert result.status is RunStatus.pending_input
    (hold,) = result.holds
    assert "write_file" in hold.prompt
    assert not (tmp_path / "a.txt").exists()
    hf = await place.hf()
    await (await hf.service()).answer(hold.id, "approve")
    result = await flow.resume(result.run_id, on=hf)
    assert (tmp_path / "a.txt").read_text() == "one"
    (hold,) = result.holds
    assert "touch b.txt" in hold.prompt
    await (await hf.service()).answer(hold.id, "reject", comment="not now")
    result = await flow.resume(result.run_id, on=hf)
    assert result.state["answer"] == "done"
    assert not (tmp_path / "b.txt").exists()
    written, refused, read = last_results(model)
    assert written[0] == "a.txt: 3 bytes"
    assert "refused this call" in refused[0]
    assert read[0] == "1 | one"
    with pytest.raises(InputError, match="no tool 'hammer'"):
        coding_tools(tmp_path, approval={"hammer": True})


@pytest.mark.parametrize("named", ["edit_file", "apply_patch"])
@pytest.mark.parametrize(
    ("condition", "asks"),
    [
        (True, True),
        ("file_path == 'a'", True),
        (Approval(assignee="role:x"), True),
        (False, False),
        ("never", False),
    ],
)
def test_an_approval_of_edits_is_that_of_every_family(
    tmp_path: Path, named: str, condition: Any, asks: bool
) -> None:
    family = "openai" if named == "edit_file" else "anthropic"
    tools = {each.name: each for each in coding_tools(tmp_path, family=family, approval={named: condition})}
    approval = tools["apply_patch" if named == "edit_file" else "edit_file"].approval
    assert (approval is not None and approval.is_needed({})) is asks


# ---------------------------------------------------------------------- search
def test_glob_and_grep_find_files_and_leave_git_alone(tmp_path: Path) -> None:
    for number, name in enumerate(
        ["src/a.py", "src/deep/b.py", "src/c.ts", ".git/d.py", "node_modules/e.py"]
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"first\nNeedle {number}\n")
        os.utime(tmp_path / name, (number, number))
    (tmp_path / "binary.py").write_bytes(b"Needle\0")
    os.utime(tmp_path / "binary.py", (-1, -1))
    assert use(tmp_path, "glob", pattern="**/*.py").split() == ["src/deep/b.py", "src/a.py", "binary.py"]
    assert use(tmp_path, "glob", pattern="*.{py,ts}", path="src").split() == [
        "src/c.ts",
        "src/deep/b.py",
        "src/a.py",
    ]
    assert use(tmp_path, "glob", pattern="src/[!c].*").split() == ["src/a.py"]
    assert use(tmp_path, "glob", pattern="nothing") == "Nothing found."
    assert use(tmp_path, "grep", pattern=r"^Needle \d$").splitlines() == [
        "src/a.py:2:Needle 0",
        "src/c.ts:2:Needle 2",
        "src/deep/b.py:2:Needle 1",
    ]
    found = use(tmp_path, "grep", pattern="needle", case_insensitive=True, glob_filter="*.ts", path="src")
    assert found == "src/c.ts:2:Needle 2"
    assert use(tmp_path, "grep", pattern="Needle", path="src/a.py") == "src/a.py:2:Needle 0"
    assert use(tmp_path, "grep", pattern="-e nothing") == "Nothing found."
    assert use(tmp_path, "grep", pattern="Needle", max_results=1).splitlines() == [
        "src/a.py:2:Needle 0",
        "(only the first 1 are shown)",
    ]
    listed = use(tmp_path, "list_dir", path="src", depth=2).split()
    assert listed == ["a.py", "c.ts", "deep/", "deep/b.py"]


def test_a_pattern_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SECONDS", 1.0)
    monkeypatch.setattr("shutil.which", lambda _: None)
    (tmp_path / "a.txt").write_text("a" * 64 + "\n")
    with pytest.raises(Exception, match="took longer than 1 s"):
        use(tmp_path, "grep", pattern="(a+)+$b|(a|aa)+c")


def test_lines_are_read_from_any_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 3001)))
    assert use(tmp_path, "read_file", file_path="a.txt", offset=2999, limit=1).splitlines() == [
        "2999 | line 2999",
        "(there are more lines; read on with offset=3000)",
    ]
    assert use(tmp_path, "read_file", file_path="a.txt").splitlines()[-1].endswith("offset=2001)")
    assert use(tmp_path, "read_file", file_path="a.txt", offset=9000) == "The file has only 3000 lines."
    (tmp_path / "empty").write_text("")
    assert use(tmp_path, "read_file", file_path="empty") == "The file is empty."


async def test_each_call_is_told_as_an_event(hf: Holdfast, tmp_path: Path) -> None:
    model = Scripted(tool_call("shell", command="true"), "done")
    result = await a_flow(model, tmp_path).run({"prompt": "Go"}, on=hf)
    events = [each for each in await told(hf, result, "node.emitted") if each.data["kind"] == "tool"]
    assert [each.data["data"]["tool"] for each in events] == ["shell"]


def test_a_search_says_which_files_are_too_large_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ripgrep, which has no such limit."""
    monkeypatch.setattr(search.shutil, "which", lambda _: None)
    (tmp_path / "small.txt").write_text("needle\n")
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(16 * 2**20 + 1)
    note = "(not searched, because larger than 16 MiB: large.txt)"
    assert use(tmp_path, "grep", pattern="needle") == f"small.txt:1:needle\n{note}"
    assert use(tmp_path, "grep", pattern="nothing") == f"Nothing found.\n{note}"


def test_the_working_folder_itself_is_named_in_errors(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="the working folder is a folder"):
        use(tmp_path, "read_file", file_path=".")
