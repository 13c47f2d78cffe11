"""`diff` and `postmortem`: what differs and what happened, from the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_branch import complains, started

# ---------------------------------------------------------------------- diff


@pytest.mark.covers("TOOL-CLI-08", "TOOL-TIME-02")
def test_diff_tells_where_two_branches_part_and_what_differs(cli: Cli, refund: str) -> None:
    run = started(cli, refund, 250)
    cli("answer", run, "approve", "--resume", "--by", "user:ann")
    made = cli("fork", f"{run}@0", "--set", "amount=80", "--resume", "--json").json["id"]
    Path(refund).unlink()

    said = cli("diff", run[:8], made[:8])
    assert said.code == 0
    lines = said.out.splitlines()
    assert f"history  the same up to {run[:8]}@0" in lines
    assert "  ~ amount  250 → 80" in lines
    assert "  - approve  success" in lines
    assert '      - question 1  "Refund 250? approve by user:ann"' in lines
    assert "  + approve" in lines
    assert "  steps  3 → 2" in lines
    result = cli("diff", run, made, "--json").json
    assert result["relation"] == "branches"
    assert result["parted"]["run"] == run
    assert {node["node"]: node["kind"] for node in result["nodes"]} == {
        "assess": "changed",
        "approve": "removed",
    }
    assert result["same"] is False
    assert cli("diff", run, run).out.splitlines()[-1] == "No differences."


@pytest.mark.covers("TOOL-CLI-08", "TOOL-TIME-03")
def test_diff_is_drawn_and_narrowed(cli: Cli, refund: str, tmp_path: Path) -> None:
    run = started(cli, refund, 250)
    made = cli("fork", f"{run}@0", "--set", "amount=80", "--resume", "--json").json["id"]

    assert "Drawn in d.svg." in cli("diff", run, made, "--svg", "d.svg").err
    drawn = (tmp_path / "d.svg").read_text()
    assert drawn.lstrip().startswith(("<svg", "<?xml"))
    assert "removed" in drawn
    assert cli("diff", run, made, "--svg", "-").out.strip().endswith("</svg>")
    assert "- approve" in cli("diff", run, made, "--graph").out
    only = cli("diff", run, made, "--only", "cost").out
    assert "steps" in only
    assert "amount" not in only
    assert set(cli("diff", run, made, "--only", "state", "--json").json) == {
        "same", "a", "b", "relation", "parted", "input", "state", "artifacts", "left_out",
    }  # fmt: skip
    complains(cli("diff", run, made, "--only", "colour"), "not one of state, nodes, cost")
    complains(cli("diff", run, "feedbeef"), "there is no run 'feedbeef'")
    complains(cli("diff", run, made, "--svg", "nowhere/d.svg"), "cannot be written")


@pytest.mark.covers("TOOL-CLI-08", "TOOL-TIME-01")
def test_diff_of_two_records_tells_the_lines_of_texts(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "letter_flow.py").write_text(LETTER)
    run = cli("run", "letter_flow.py", "--input", '{"text": "Dear Ann,\\nbye"}', "--json").json["id"]
    lines = cli("diff", f"{run}@0", f"{run}@write").out.splitlines()
    assert "      +how are you?" in lines
    assert "       bye" in lines


@pytest.mark.covers("TOOL-CLI-08", "TOOL-TIME-02")
def test_diff_tells_the_beginning_and_what_was_left_out_when_runs_are_long(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "long_flow.py").write_text(LONG)
    run = cli("run", "long_flow.py", "--input", '{"n": 0}', "--json").json["id"]

    said = cli("diff", f"{run}@0", run, "--json")
    result = said.json
    assert len(said.out) < 400_000
    assert result["left_out"]["nodes"] == 1_200 - len(result["nodes"]) > 0
    assert result["state"]["left_out"] == result["left_out"]["state"] == 1_201 - len(result["state"]["shown"])
    assert set(cli("diff", f"{run}@0", run, "--json", "--only", "cost").json["left_out"]) == set()
    assert "and 1,000 more visits; --all prints them" in cli("diff", f"{run}@0", run).out
    whole = cli("diff", f"{run}@0", run, "--json", "--all").json
    assert (len(whole["nodes"]), len(whole["state"]["shown"]), whole["left_out"]) == (1_200, 1_201, {})


LONG = """
from holdfast import Flow
long = Flow("long")

@long.node(effect="pure")
async def count(s):
    return {"n": s["n"] + 1, f"key{s['n']}": "x" * 100}

long.loop(count, count, when="n < 1200", max=1200)
"""

LETTER = """
from holdfast import Flow
letter = Flow("letter")

@letter.node(effect="pure")
async def write(s):
    return {"text": s["text"].replace("bye", "how are you?\\nbye")}
"""


# ---------------------------------------------------------------------- postmortem


@pytest.mark.covers("TOOL-TIME-07", "TOOL-TIME-08")
def test_postmortem_is_written_in_the_form_that_its_file_is_called(
    cli: Cli, refund: str, tmp_path: Path
) -> None:
    run = started(cli, refund, -5)
    Path(refund).unlink()

    said = cli("postmortem", run[:8])
    assert said.code == 0
    assert "at assess: ValueError: a refund is positive." in said.out
    assert "not handled: the run failed" in said.out
    assert cli("postmortem", run, "--out", "r.html").out == ""
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    cli("postmortem", run, "--out", "r.md")
    assert (tmp_path / "r.md").read_text().rstrip() == said.out.rstrip()
    assert cli("postmortem", run, "--format", "html").out.startswith("<!DOCTYPE html>")
    result = cli("postmortem", run, "--json").json
    assert (result["status"], result["troubles"][0]["ended"]) == ("failed", True)
    assert [chapter["node"] for chapter in result["chapters"]] == ["assess"]
    complains(cli("postmortem", run, "--format", "pdf"), "unknown format 'pdf'", "md, html")
    complains(cli("postmortem", run, "--out", "nowhere/r.md"), "cannot be written")
    complains(cli("postmortem", "feedbeef"), "there is no run")


@pytest.mark.covers("WB-33-traceback")
def test_show_and_postmortem_have_the_traceback_of_the_error_that_ended_the_run(cli: Cli) -> None:
    Path("broken.py").write_text(
        "from holdfast import Flow\n"
        'broken = Flow("broken", effect="pure")\n'
        "@broken.node\n"
        "def work(s: dict) -> None:\n"
        '    raise ValueError("no such account")\n'
    )
    run = cli("run", "broken.py", "--json").json["id"]
    shown = cli("show", run[:8]).out
    assert 'raise ValueError("no such account")' in shown
    assert "runs/driver" not in shown
    assert 'raise ValueError("no such account")' in cli("postmortem", run[:8]).out
