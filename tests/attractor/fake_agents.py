"""Fakes of the command-line agents: programs that write what a test gives them, in the form of the real ones.

The shapes were recorded from claude 2.1.197, codex 0.166.0 and gemini 0.61.0.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """#!{python} -I
import json, os, sys, time
folder = {folder!r}
calls = os.path.join(folder, "calls.jsonl")
made = sum(1 for _ in open(calls)) if os.path.exists(calls) else 0
call = {{"argv": sys.argv, "stdin": sys.stdin.read(), "env": dict(os.environ), "cwd": os.getcwd()}}
with open(calls, "a") as file:
    file.write(json.dumps(call) + chr(10))
plays = json.load(open(os.path.join(folder, "plays.json")))
play = plays[min(made, len(plays) - 1)]
given = [word for flag, word in zip(sys.argv, sys.argv[1:]) if flag in ("--session-id", "--resume", "resume")]
for step in play:
    if "out" in step:
        sys.stdout.write(step["out"].replace("SESSION", given[0] if given else "thread-1"))
        sys.stdout.flush()
    if "err" in step:
        sys.stderr.write(step["err"])
        sys.stderr.flush()
    if "file" in step:
        with open(os.path.join(os.environ["ATTRACTOR_STAGE_DIR"], "status.json"), "w") as file:
            file.write(step["file"])
    if "wait" in step:
        # Until it may go on, or its test has removed its folder.
        while os.path.exists(calls) and not os.path.exists(os.path.join(folder, step["wait"])):
            time.sleep(0.01)
    if "exit" in step:
        sys.exit(step["exit"])
"""

Step = dict[str, Any]


def lines(*events: Any) -> Step:
    return {"out": "".join((e if isinstance(e, str) else json.dumps(e)) + "\n" for e in events)}


def claude(text: str | None = "It is done.", **more: Any) -> list[Step]:
    """`text`: None for a result without its text."""
    said = {"type": "text", "text": text or "It is done."}
    cache = {"cache_creation_input_tokens": 2, "cache_read_input_tokens": 3}
    usage = {"input_tokens": 10, **cache, "output_tokens": 7}
    result = {
        "type": "result", "subtype": "success", "is_error": False, "api_error_status": None,
        **({} if text is None else {"result": text}), "session_id": "SESSION", "total_cost_usd": 0.25,
        "usage": usage, **more,
    }  # fmt: skip
    return [
        lines(
            {"type": "system", "subtype": "init", "session_id": "SESSION", "model": "claude-x"},
            {
                "type": "assistant",
                "message": {"content": [{"type": "tool_use", "name": "Bash", "input": {}}]},
            },
            {"type": "assistant", "message": {"content": [said]}, "session_id": "SESSION"},
            result,
        )
    ]


def claude_error(status: int, text: str, **more: Any) -> list[Step]:
    """As seen: the subtype of a refused request is `success`."""
    failed = {"is_error": True, "api_error_status": status, "total_cost_usd": 0, "usage": {}, **more}
    return [*claude(text, **failed), {"exit": 1}]


def codex(text: str = "It is done.", used: int = 100, *more: Any) -> list[Step]:
    usage = {
        "input_tokens": used, "cached_input_tokens": used // 10, "cache_write_input_tokens": 0,
        "output_tokens": used // 5, "reasoning_output_tokens": 0,
    }  # fmt: skip
    return [
        lines(
            {"type": "thread.started", "thread_id": "SESSION"},
            {"type": "item.completed", "item": {"id": "i0", "type": "error", "message": "a warning"}},
            {"type": "turn.started"},
            *more,
            {"type": "item.started", "item": {"type": "command_execution", "command": "ls"}},
            {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "Looking."}},
            {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": text}},
            {"type": "turn.completed", "usage": usage},
        )
    ]


def codex_error(message: str, *, ends: bool = True) -> list[Step]:
    failed = [{"type": "turn.failed", "error": {"message": message}}] if ends else []
    return [
        lines(
            {"type": "thread.started", "thread_id": "SESSION"},
            {"type": "turn.started"},
            {"type": "error", "message": message},
            *failed,
        ),
        {"exit": 1},
    ]


def gemini(text: str = "It is done.", **more: Any) -> list[Step]:
    stats = {"total_tokens": 63, "input_tokens": 50, "output_tokens": 8, "cached": 10}
    half = len(text) // 2
    return [
        lines(
            {"type": "init", "timestamp": "t", "session_id": "SESSION", "model": "gemini-x"},
            {"type": "message", "role": "user", "content": "Do it"},
            {"type": "tool_use", "tool_name": "read_file", "tool_id": "1", "parameters": {}},
            {"type": "tool_result", "tool_id": "1", "status": "success"},
            {"type": "message", "role": "assistant", "content": text[:half], "delta": True},
            {"type": "message", "role": "assistant", "content": text[half:], "delta": True},
            {"type": "result", "status": "success", "stats": stats, **more},
        )
    ]


def gemini_error(code: int, message: str = "refused here") -> list[Step]:
    """As seen: the exit code is the HTTP status modulo 256."""
    shown = f'[API Error: {{"error":{{"code":{code},"message":"{message}","status":"X"}}}}]'
    result = {
        "type": "result",
        "status": "error",
        "error": {"type": "unknown", "message": shown},
        "stats": {},
    }
    start = {"type": "init", "session_id": "SESSION", "model": "gemini-x"}
    return [lines(start, result), {"err": "Error when talking to Gemini API\n"}, {"exit": code % 256}]


class FakeAgents:
    """A folder of PATH with the agents that a test has given something to do."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.folder = folder
        self.bin.mkdir(parents=True)

    def plays(self, name: str, *plays: list[Step]) -> None:
        """What each process of the agent does; the last one for all later ones."""
        at = self.folder / name
        at.mkdir(exist_ok=True)
        (at / "plays.json").write_text(json.dumps(plays))
        program = self.bin / name
        program.write_text(PROGRAM.format(python=sys.executable, folder=str(at)))
        program.chmod(0o755)

    def calls(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def go(self, name: str, word: str = "go") -> None:
        (self.folder / name / word).touch()

    @property
    def path(self) -> str:
        return f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin"


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeAgents:
    made = FakeAgents(tmp_path / "agents")
    monkeypatch.setenv("PATH", made.path)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return made
