"""`runs` and `show`, and what help says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, given


@pytest.mark.covers("CORE-CLI-03")
def test_runs_lists_newest_first_and_by_status(cli: Cli, refund: str) -> None:
    waiting = cli("run", refund, "--input", given(250), "--json").json["id"]
    done = cli("run", refund, "--input", given(80), "--json").json["id"]

    lines = cli("runs").out.splitlines()
    assert [line.split()[0] for line in lines] == ["run", done, waiting]
    assert lines[2].endswith("Refund 250?")
    assert [row["id"] for row in cli("runs", "--status", "pending_input", "--json").items] == [waiting]
    assert cli("runs", "--flow", "other").out == "No matching runs.\n"
    assert len(cli("runs", "--limit", "1", "--json").items) == 1


@pytest.mark.covers("CORE-CLI-04")
def test_show_tells_the_journal_without_the_flows_code(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    Path(refund).unlink()

    said = cli("show", run[:8], "--records")

    assert said.code == 0
    assert [line.split()[2] for line in said.out.splitlines() if line[:1].isdigit()] == [
        "created",
        "step",
        "asked",
    ]
    assert "Refund 250?" in said.out


@pytest.mark.parametrize("at", ["0", "1", "assess"])
@pytest.mark.covers("SAFE-READ-08")
def test_show_takes_a_moment_of_a_run(cli: Cli, refund: str, at: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    seen = cli("show", f"{run[:8]}@{at}", "--json").json
    assert seen["run"] == run
    number = str(seen["seq"])
    assert number == at or seen["node"] == at
    assert seen == cli("show", run, "--checkpoint", number, "--json").json
    assert run in cli("show", f"{run}@{at}").out
    assert cli("show", f"{run}@{at}", "--json=interface").json["id"] == seen["id"]
    assert cli("show", f"{run}@{at}", "--checkpoint", "1").code == 2
    for wrong in (f"{run}@", f"{run}@99", f"{run}@nowhere"):
        refused = cli("show", wrong)
        assert refused.code != 0
        assert refused.err


@pytest.mark.covers("CORE-CLI-04")
def test_show_gives_a_checkpoint_by_number_and_by_id(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(80), "--json").json["id"]

    early = cli("show", run, "--checkpoint", "0", "--json").json
    late = cli("show", run, "--checkpoint", "3", "--json").json
    by_id = cli("show", late["id"], "--json").json

    assert (early["state"]["receipt"], late["state"]["receipt"]) == ("", "R-A17")
    assert by_id == late


@pytest.mark.covers("CORE-IFACE-03")
def test_show_gives_the_published_form_when_asked(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(80), "--json").json["id"]

    said = cli("show", run, "--checkpoint", "1", "--json=interface").json

    assert said["runId"] == run
    assert said["nodeId"] == "assess"
    assert said["visitedNodes"] == ["assess"]
    assert cli("show", run, "--json=interface").json["state"]["scratch"]["receipt"] == "R-A17"


def test_plain_output_has_no_escape_codes(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--watch")
    shown = [run, cli("runs"), cli("show", run.out.rpartition("run ")[2].split()[0]), cli("--help")]

    assert not any("\x1b" in said.out + said.err for said in shown)


@pytest.mark.parametrize("command", ["run", "resume", "runs", "show", "answer", "cancel", "worker"])
def test_help_of_each_command_has_an_example(cli: Cli, command: str) -> None:
    said = cli(command, "--help")

    assert said.code == 0
    assert "Example" in said.out
    assert f"holdfast {command} " in " ".join(said.out.split())


def test_version_is_reported(cli: Cli) -> None:
    from holdfast import __version__

    assert cli("--version") == (0, f"holdfast {__version__}\n", "")
