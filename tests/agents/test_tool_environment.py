"""Which variables a command gets, and that every command of the product gets its environment by that list."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import holdfast
from holdfast.agents.command import run_command
from holdfast.agents.local_sandbox import LocalSandbox
from holdfast.agents.tool_environment import ALLOWED, hide_keys, hide_secrets, tool_environment

pytestmark = pytest.mark.covers("SAFE-EDGE-10")

SOURCE: Final = Path(holdfast.__file__).parent
STARTS: Final = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "os": {"system", "popen", "execv", "execve", "execvp", "execvpe", "spawnv", "spawnve", "posix_spawn"},
}
PROCESSES: Final = {
    "agents/command.py": "tool_environment, by its callers: sandbox.py, coding/, attractor/tool_hooks.py",
    "attractor/git.py": "its own: git without the settings, hooks and prompts of the user",
    "attractor/detached_commands.py": "the environment that command_run.py passes",
}
"""Modules that start commands of documents and models, and where their environment is from."""
OURS: Final = ("torture/", "demo/", "testing/", "cli/", "runs/node_process/", "agents/command_supervisor.py")
"""These start this program itself; its code, and that of the flow, has the environment of the worker. The
supervisor has that of its command."""


def test_only_listed_variables_pass() -> None:
    given = {"PATH": "/bin", "LC_ALL": "C", "LANG": "C", "TOKEN": "x", "lc_all": "y", "HOLDFAST_STORE": "z"}
    assert tool_environment(given) == {"PATH": "/bin", "LC_ALL": "C", "LANG": "C"}
    more = {**given, "HOLDFAST_TOOL_ENV": " TOKEN ,,NOTHING_*"}
    assert tool_environment(more) == {"PATH": "/bin", "LC_ALL": "C", "LANG": "C", "TOKEN": "x"}


def test_no_listed_name_is_a_place_for_secrets() -> None:
    words = ("KEY", "TOKEN", "SECRET", "PASS", "AUTH", "PROXY", "HOLDFAST", "CREDENTIAL")
    assert not [name for name in ALLOWED if any(word in name for word in words)]
    assert "*" not in ALLOWED


def test_sandbox_gets_the_same_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hush")
    made = LocalSandbox(tmp_path, env={"MINE": "yes"}).env
    assert made == {**tool_environment(), "HOME": str(tmp_path), "MINE": "yes"}
    assert "hush" not in made.values()


def test_every_module_that_starts_a_process_is_in_the_table_and_passes_an_environment() -> None:
    found: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        name = str(file.relative_to(SOURCE))
        text = file.read_text()
        if name.startswith(OURS) or not any(
            f"{owner}.{each}" in text for owner in STARTS for each in STARTS[owner]
        ):
            continue
        for call in _starts(ast.parse(text)):
            found.add(name)
            assert "env" in {each.arg for each in call.keywords}, f"{name}:{call.lineno} inherits everything"
    assert found == set(PROCESSES)


def _starts(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if node.func.attr in STARTS.get(owner, ()):
                yield node


@pytest.mark.covers("CP2-L10")
@pytest.mark.anyio
async def test_command_that_reads_the_environment_of_its_parent_shows_no_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("SHORT_TOKEN", "abc")
    ended = await run_command('echo "key: sk-very-secret abc"', cwd=tmp_path, env=tool_environment())
    assert ended.output == "key: *** abc\n"


def test_keys_and_passwords_of_this_process_are_hidden_whatever_their_variable_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hidden = {
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI7K7MDENGbPxRfiCY",
        "GITHUB_PAT": "ghp_0123456789abcdefghij",
        "PGPASSWORD": "a1b2c3d4e5f6g7h8i9j0k1",
        "HOLDFAST_KEYS": '{"k1": "c2VjcmV0LWtleS0xMjM0NTY3ODkw"}',
        "HOLDFAST_STORE": "postgresql://bob:pw@db/flows",
        "CACHE": "redis://:0123456789abcdefghij@cache/0",
    }
    for name, value in hidden.items():
        monkeypatch.setenv(name, value)
    printed = "\n".join([*hidden.values(), "c2VjcmV0LWtleS0xMjM0NTY3ODkw", "0123456789abcdefghij", "bob, pw"])
    for hide in (hide_keys, hide_secrets):
        shown = hide(printed)
        assert "bob, pw" in shown  # an ordinary word
        assert not [
            part for part in ("wJal", "ghp_", "a1b2", "c2Vj", "bob:pw", "0123456789") if part in shown
        ]
