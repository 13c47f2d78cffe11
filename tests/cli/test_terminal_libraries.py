"""Screens in a terminal are drawn by libraries: textual for the inbox, rich.live for what only shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast.cli
from tests.cli.terminal import in_terminal

CLI = Path(holdfast.cli.__file__).parent
CODE = re.compile(r"\\(x1b|033|e|u001b)\[", re.IGNORECASE)
WORDS = [["--help"], ["inbox", "--help"], ["holds", "list", "--json"], ["inbox", "--json"]]
HINT = "pip install 'holdfast-flow[inbox]'"


@pytest.mark.covers("PLAIN-LIB-07", "PLAIN-LIB-08")
def test_no_module_of_the_command_line_writes_terminal_codes_itself() -> None:
    sources = {path.relative_to(CLI).as_posix(): path.read_text("utf-8") for path in CLI.rglob("*.py")}

    assert [name for name, text in sources.items() if CODE.search(text)] == []
    # rich draws, but reads no keys: `top` has to know when to end.
    assert [name for name, text in sources.items() if "termios" in text] == ["top/program.py"]


@pytest.mark.covers("PLAIN-LIB-07")
def test_the_inbox_is_an_app_of_textual() -> None:
    from textual.app import App

    from holdfast.cli.inbox.app import InboxApp

    assert issubclass(InboxApp, App)


@pytest.mark.covers("PLAIN-LIB-08")
@pytest.mark.parametrize("module", ["top/program.py", "output/watch.py"])
def test_live_views_are_drawn_by_rich_live(module: str) -> None:
    text = (CLI / module).read_text("utf-8")

    assert "from rich.live import Live" in text
    assert re.search(r"\bLive\(.*console=", text)


TINY = """
from holdfast import Flow
tiny = Flow("tiny", effect="pure")

@tiny.node
async def only(s):
    return {}

tiny.start(only)
"""


@pytest.mark.covers("PLAIN-LIB-08")
def test_the_progress_of_torture_is_shown_in_a_terminal_and_vanishes(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text(TINY)

    seen = in_terminal(tmp_path, "torture", "tiny.py")

    assert seen.code == 0
    assert re.search(r"1 of \d+ boundaries", seen.text)
    assert not any(re.search(r"\d+ of \d+ boundaries$", line) for line in seen.screen)
    assert seen.raw.rfind("\x1b[?25h") > seen.raw.rfind("\x1b[?25l")


@pytest.mark.covers("PLAIN-LIB-07")
def test_inbox_names_the_extra_and_what_works_without_it_when_textual_is_missing(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    missing.mkdir()
    (missing / "textual.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'textual'\", name='textual')"
    )

    seen = in_terminal(tmp_path, "inbox", columns=200, PYTHONPATH=str(missing))

    assert seen.code == 2
    for text in (HINT, "holdfast holds list", "holdfast holds resolve", "work without it"):
        assert text in seen.text, seen.text


@pytest.mark.covers("PLAIN-LIB-07")
@pytest.mark.parametrize(
    "words", [["--help"], ["inbox", "--help"], ["holds", "list", "--json"], ["inbox", "--json"]]
)
def test_only_the_open_inbox_imports_textual(tmp_path: Path, words: list[str]) -> None:
    code = (
        "import sys; from holdfast.cli.main import run; run(sys.argv[1:]); sys.exit('textual' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
