"""`run --break`, `resume --break` and `breakpoints`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, given

STOPS = """
from holdfast import Flow

stops = Flow("stops", effect="pure")

@stops.node(breakpoint=True)
async def one():
    return {"a": 1}

@stops.node(breakpoint=True)
async def two():
    return {"b": 2}

stops.chain(one, two)
"""


@pytest.fixture
def stops(tmp_path: Path) -> str:
    (tmp_path / "stops.py").write_text(STOPS)
    return "stops.py"


@pytest.mark.covers("TOOL-CLI-22")
def test_run_stops_before_the_node_and_says_how_to_go_on(cli: Cli, refund: str) -> None:
    said = cli("run", refund, "--input", given(80), "--break", "pay")
    assert said.code == 3
    assert "Breakpoint before pay" in said.out
    assert "continue" in said.out
    run = cli("runs", "--json").items[0]["id"]
    (hold,) = cli("breakpoints", "--json").items
    assert (hold["run"], hold["node"], hold["type"]) == (run, "pay__breakpoint", "debug_breakpoint")
    done = cli("answer", run, "continue", "--resume")
    assert done.code == 0
    assert "R-A17" in done.out


@pytest.mark.covers("TOOL-CLI-22")
def test_break_at_a_node_that_is_not_there_starts_nothing(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(80))
    said = cli("run", refund, "--input", given(80), "--break", "pya")
    assert said.code == 2
    assert "Did you mean pay" in said.err
    assert len(cli("runs", "--json").items) == 1


@pytest.mark.covers("TOOL-CLI-22")
def test_resume_takes_one_more_break(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    assert cli("resume", run, "--break", "nothing").code == 2
    cli("answer", run, "approve")
    assert cli("resume", run, "--break", "pay", "--json").json["holds"][0]["node"] == "pay__breakpoint"


@pytest.mark.covers("TOOL-CLI-21")
def test_breakpoints_are_listed_by_flow_and_run(cli: Cli, refund: str, stops: str) -> None:
    cli("run", refund, "--input", given(80))
    assert cli("breakpoints").out == "No run stopped at a breakpoint.\n"
    runs = [cli("run", stops, "--json").json["id"] for _ in range(2)]
    other = cli("run", refund, "--input", given(80), "--break", "pay", "--json").json["id"]
    listed = cli("breakpoints")
    assert listed.code == 0
    assert all(run[:8] in listed.out for run in (*runs, other))
    assert [h["run"] for h in cli("breakpoints", "--flow", "stops", "--json").items] == runs
    assert [h["run"] for h in cli("breakpoints", "--run", other[:8], "--json").items] == [other]
    assert cli("breakpoints", "--run", "00000000").code == 2


@pytest.mark.covers("TOOL-CLI-21")
def test_continue_lets_one_run_one_hold_or_all_go_on(cli: Cli, stops: str) -> None:
    runs = [cli("run", stops, "--json").json["id"] for _ in range(3)]
    said = cli("breakpoints", "continue", runs[0], "--resume", "--json")
    assert said.code == 3
    assert said.json["state"] == {"a": 1}
    hold = said.json["holds"][0]["id"]
    assert [h["id"] for h in cli("breakpoints", "continue", hold, "--json").items] == [hold]
    assert cli("resume", runs[0]).code == 0
    assert "Continued before one" in cli("breakpoints", "continue", "--all").out
    assert cli("breakpoints", "--json").items == []
    assert [cli("resume", run, "--json").json["state"] for run in runs[1:]] == [{"a": 1}] * 2


@pytest.mark.covers("TOOL-CLI-21")
def test_continue_with_clear_stops_nowhere_else(cli: Cli, stops: str) -> None:
    run = cli("run", stops, "--json").json["id"]
    said = cli("breakpoints", "continue", run, "--clear", "--resume", "--json")
    assert (said.code, said.json["state"]) == (0, {"a": 1, "b": 2})


@pytest.mark.covers("TOOL-CLI-21")
def test_continue_refuses_what_is_no_breakpoint(cli: Cli, refund: str, stops: str) -> None:
    question = cli("run", refund, "--input", given(250), "--json").json["holds"][0]["id"]
    for words, entry in (
        ([], "--all"),
        ([question], "holdfast answer"),
        (["00000000"], "there is no run"),
        ([question, "--all"], "--all"),
    ):
        said = cli("breakpoints", "continue", *words)
        assert said.code == 2
        assert entry in said.err
    run = cli("runs", "--json").items[0]["id"]
    assert "has not stopped at a breakpoint" in cli("breakpoints", "continue", run).err


@pytest.mark.covers("RS-FLOW-8")
def test_run_lists_the_checkpoints_that_it_is_asked_to(cli: Cli, refund: str) -> None:
    listed = {}
    for which in ("every", "none"):
        run = cli("run", refund, "--input", given(80), "--checkpoints", which, "--json").json["id"]
        records = cli("show", run, "--json").json["records"]
        listed[which] = [r["node"] for r in records if r["listed"]]
    assert listed == {"every": ["", "assess", "pay", ""], "none": ["", ""]}
    assert cli("run", refund, "--input", given(80), "--checkpoints", "some").code == 2
