"""Runs a page of the documentation from top to bottom, in a folder of its own.

- A block of `python` runs in the page's namespace; `await` works at the top level. With
  `title="refund.py"` it is written to that file instead.
- A block of `sh` runs line by line. Lines that begin with `$ ` are commands; the lines below one are quotes
  of its output and must occur in it (white space does not count, `...` is any text). Without any `$ `, every
  line is a command. The words RUN, HOLD and CHECKPOINT mean the newest run, open hold and checkpoint, TOKEN
  that of the claim on the message that the command names. A command must exit with 0 or, if a run
  waits, with 3; `  # exits 1` at its end says otherwise.
- A comment `<!-- run` ... `-->` holds Python that readers need not see.
- `json`, `toml` and `xml` blocks must parse. `text` blocks are not looked at. Those of `javascript` run in
  Node, against a server: tests/api/test_js_client.py.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from holdfast import Holdfast, use
from tests.deadlines import HANG
from tests.services import prefork

BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$|^<!-- run\n(?P<hidden>.*?)^-->",
    re.MULTILINE | re.DOTALL,
)
UNSEEN = ("text", "mermaid", "svg", "html", "markdown", "javascript", "typescript", "")
WAITS = 3
# What only a shell understands.
SHELL = re.compile(r"[|&;<>$`*?~#\n]")


class Page:
    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.folder = folder
        self.space: dict[str, Any] = {"__name__": "page"}
        self.runner = asyncio.Runner()

    def run(self) -> int:
        """Answers how many snippets were run."""
        sys.path.insert(0, str(self.folder))
        known = dict(sys.modules)
        for name in ("examples", *(path.stem for path in self.folder.rglob("*.py"))):
            self._forget(name)
        # Flows that name no instance use the process's default: that of this page, in its folder.
        hf = Holdfast()
        use(hf)
        try:
            with self.runner:
                try:
                    return sum(1 for found in blocks(self.path) if self._block(*found))
                finally:
                    self.runner.run(hf.close())
        finally:
            use(None)
            sys.path.remove(str(self.folder))
            for name in [name for name, module in sys.modules.items() if self._is_ours(module)]:
                del sys.modules[name]
            for name, module in known.items():
                sys.modules.setdefault(name, module)

    def _forget(self, name: str) -> None:
        """A test before this one may have loaded another module of the same name."""
        found = sys.modules.get(name)
        if found is not None and not self._is_ours(found):
            del sys.modules[name]

    def _is_ours(self, module: Any) -> bool:
        return str(getattr(module, "__file__", "") or "").startswith(str(self.folder))

    def _block(self, line: int, info: str, text: str) -> bool:
        kind, _, rest = info.partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        if title:
            place = self.folder / title[1]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
            self._forget(place.stem)
            return True
        if kind == "python":
            self._python(line, text)
        elif kind == "sh":
            for command, quoted in commands(text):
                self._command(line, command, quoted)
        elif kind == "json":
            json.loads(text)
        elif kind == "toml":
            tomllib.loads(text)
        elif kind == "yaml":
            yaml.safe_load(text)
        elif kind not in UNSEEN:
            raise AssertionError(f"{self.path.name}, line {line}: no way to run {kind!r}")
        return kind not in UNSEEN

    def _python(self, line: int, text: str) -> None:
        where = f"{self.path.name}"
        tree = ast.parse("\n" * line + text, where)
        code = compile(tree, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        found = eval(code, self.space)  # noqa: S307
        if inspect.iscoroutine(found):
            self.runner.run(found)

    def _command(self, line: int, command: str, quoted: list[str]) -> None:
        command, _, exits = command.partition("  # exits ")
        wanted = {int(exits)} if exits else {0, WAITS}
        done = self._shell(self._named(command))
        seen = f"{self.path.name}, line {line}: $ {command}\n{done.stdout}{done.stderr}"
        assert done.returncode in wanted, f"{seen}(exit {done.returncode})"
        assert "Traceback" not in done.stderr, seen
        for quote in quoted:
            assert is_quoted(quote, done.stdout + done.stderr), f"the page quotes {quote!r}\n{seen}"

    def _shell(self, command: str) -> subprocess.CompletedProcess[str]:
        bin_folder = Path(sys.executable).parent
        env = {
            "PATH": f"{bin_folder}{os.pathsep}{os.environ.get('PATH', '/usr/bin:/bin')}",
            "HOME": str(self.folder),
            "NO_COLOR": "1",
        }
        if command.startswith("holdfast ") and not SHELL.search(command):
            return prefork.run("holdfast", shlex.split(command)[1:], cwd=self.folder, env=env)
        return subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.folder, env=env, capture_output=True, text=True,
            timeout=HANG, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def _named(self, command: str) -> str:
        if "--token TOKEN" in command:
            queue, message = command.split()[3:5]
            shown = msgspec.json.decode(self._shell(f"holdfast queue show {queue} {message} --json").stdout)
            command = command.replace("TOKEN", shown["claim_token"])
        if not re.search(r"\b(RUN|HOLD|CHECKPOINT)\b", command):
            return command
        runs = _rows(self._shell("holdfast runs --json").stdout)
        words = {"RUN": runs[0]["id"][:8]}
        if re.search(r"\bHOLD\b", command):
            shown = msgspec.json.decode(self._shell(f"holdfast show {runs[0]['id']} --json").stdout)
            words["HOLD"] = next(hold["id"] for hold in shown["holds"] if hold["status"] == "pending")
        if "CHECKPOINT" in command:
            words["CHECKPOINT"] = _rows(self._shell(f"holdfast checkpoints {runs[0]['id']} --json").stdout)[
                0
            ]["id"]
        return re.sub(r"\b(RUN|HOLD|CHECKPOINT)\b", lambda found: words[found[1]], command)


def _rows(text: str) -> list[dict[str, Any]]:
    """The rows of a list, bare or as a page."""
    found = msgspec.json.decode(text)
    return found.get("items", found.get("checkpoints", [])) if isinstance(found, dict) else found


def blocks(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line, info, text) of every block that a reader sees, and of the hidden ones."""
    source = path.read_text("utf-8")
    for found in BLOCK.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        if found["hidden"] is not None:
            yield line, "python", found["hidden"]
        else:
            yield line, found["info"].strip(), inspect.cleandoc("\n" + found["text"]) + "\n"


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Each command with the lines of its output that the page quotes."""
    lines = text.replace("\\\n", " ").splitlines()
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and line.strip():
            found[-1][1].append(line)
    return found or [(line, []) for line in lines if line.strip() and not line.lstrip().startswith("#")]


def is_quoted(quote: str, output: str) -> bool:
    """Tables are as wide as the terminal, and texts inside JSON have escapes: neither counts."""
    parts = [
        ".*" if part == "..." else re.escape(part)
        for part in re.findall(r"\.\.\.|\S+?(?=\.\.\.|\s|$)", quote)
    ]
    return re.search(r"\s*".join(parts), output.replace("\\", ""), re.DOTALL) is not None


def fresh(folder: Path, root: Path) -> None:
    """What every page may use: the examples."""
    shutil.copytree(
        root / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__", ".holdfast")
    )
