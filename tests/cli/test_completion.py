"""Completion, as bash and the other shells ask for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, given
from tests.deadlines import HANG

BASH = shutil.which("bash")


def _completed(folder: Path, line: str, **more: str) -> list[str]:
    """What bash offers for a line, by its own completion."""
    words = line.split(" ")
    called = Path(sys.executable).with_name("holdfast")
    script = f"""
source <("{called}" completion bash)
COMP_WORDS=({" ".join(f"'{word}'" for word in words)})
COMP_CWORD={len(words) - 1}
_holdfast_completion "{called}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "_HOLDFAST"))}
    said = subprocess.run(
        [str(BASH), "--norc", "-c", script],
        cwd=folder, env=clean | more, capture_output=True, text=True, timeout=HANG, check=False,
    )  # fmt: skip
    assert said.stderr == ""
    return said.stdout.split()


@pytest.mark.covers("TOOL-CLI-27")
@pytest.mark.skipif(BASH is None, reason="no bash here")
def test_bash_completes_commands_options_and_runs(cli: Cli, refund: str, tmp_path: Path) -> None:
    runs = [cli("run", refund, "--input", given(250), "--json").json["id"] for _ in range(2)]
    assert _completed(tmp_path, "holdfast tor") == ["torture"]
    assert "--status" in _completed(tmp_path, "holdfast runs --s")
    assert sorted(_completed(tmp_path, "holdfast show ")) == sorted(runs)
    assert _completed(tmp_path, f"holdfast answer {runs[0][:8]}") == [runs[0]]


def _asked(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str, shell: str = "bash") -> list[str]:
    """The same question without starting a shell."""
    with monkeypatch.context() as environment:
        environment.setenv("_HOLDFAST_COMPLETE", f"complete_{shell}")
        environment.setenv("COMP_WORDS", line)
        environment.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        environment.setenv("_TYPER_COMPLETE_ARGS", line)
        environment.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        said = cli()
    assert said.code == 0
    assert said.err == ""
    return said.out.splitlines()


@pytest.mark.covers("TOOL-CLI-27")
def test_statuses_flows_and_templates_are_completed(cli: Cli, refund: str, monkeypatch) -> None:
    cli("run", refund, "--input", given(20))
    assert _asked(cli, monkeypatch, "holdfast runs --status comp") == ["completed"]
    assert _asked(cli, monkeypatch, "holdfast runs --flow ") == ["refund"]
    assert _asked(cli, monkeypatch, "holdfast new x --template a") == ["approval", "agent"]


@pytest.mark.covers("TOOL-CLI-27")
def test_zsh_and_fish_are_reported_what_a_run_is(cli: Cli, refund: str, monkeypatch) -> None:
    run = cli("run", refund, "--input", given(20), "--json").json["id"]
    assert _asked(cli, monkeypatch, "holdfast show ", "fish") == [f"{run}\trefund: completed"]
    assert run in "".join(_asked(cli, monkeypatch, "holdfast resume ", "zsh"))


def test_runs_of_the_named_store_are_completed(cli: Cli, refund: str, monkeypatch) -> None:
    run = cli("run", refund, "--input", given(20), "--json", "--store", "other.db").json["id"]
    assert _asked(cli, monkeypatch, "holdfast show ") == [""]
    assert _asked(cli, monkeypatch, "holdfast show --store other.db ") == [run]


def test_nothing_is_said_when_the_store_is_broken(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "broken.db").write_text("no database")
    assert _asked(cli, monkeypatch, "holdfast show --store broken.db ") == [""]


@pytest.mark.covers("TOOL-CLI-27")
def test_script_is_printed_for_the_shell_that_is_named_or_used(cli: Cli, monkeypatch) -> None:
    for shell in ("bash", "zsh", "fish"):
        said = cli("completion", shell)
        assert said.code == 0
        assert "_HOLDFAST_COMPLETE" in said.out
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert cli("completion").out == cli("completion", "zsh").out
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert cli("completion").code == 2
