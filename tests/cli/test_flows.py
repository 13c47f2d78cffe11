"""`flows list`, `flows check` and `flows migrate`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.crashpoints import EXIT_CODE, environment
from tests.cli.conftest import REFUND, Cli, given
from tests.deadlines import HANG

OLD = REFUND.replace('Flow("refund", state=Refund)', 'Flow("refund", state=Refund, version="1")')
NEW = OLD.replace('"approve", prompt', '"confirm", prompt').replace('version="1"', 'version="2"')
DECLARED = NEW + '\nrefund.migrate("1", rename={"approve": "confirm"})\n'


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    """The file of the old version; a deploy writes the new one over it."""
    file = tmp_path / f"flows_{abs(hash(str(tmp_path)))}.py"
    file.write_text(OLD)
    return file


def deploy(file: Path, text: str, name: str = "") -> str:
    """Modules are known by their names, so a deploy in the same process has one of its own."""
    fresh = file.with_name(f"{file.stem}{name or '_new'}.py")
    fresh.write_text(text)
    file.write_text(text)
    sys.modules.pop(file.stem, None)
    return str(fresh)


def started(cli: Cli, flow: Path, amount: int = 250) -> str:
    return cli("run", str(flow), "--input", given(amount), "--json").json["id"]


def stored(cli: Cli, run: str) -> Any:
    return cli("show", run, "--json").json["stored"]


@pytest.mark.covers("TOOL-CLI-14")
def test_list_shows_versions_runs_by_status_and_where_the_code_is(cli: Cli, flow: Path) -> None:
    started(cli, flow)
    started(cli, flow, 80)
    (entry,) = cli("flows", "list", "--json").items
    assert (entry["flow"], entry["label"], entry["live"]) == ("refund", "1", 1)
    assert entry["runs"] == {"completed": 1, "pending_input": 1}
    assert entry["code"] == {"here": True, "place": str(flow), "why": ""}
    assert entry["first_used_at"] <= entry["last_used_at"]
    said = cli("flows", "list")
    assert said.code == 0
    assert "1 completed, 1 waiting for input" in said.out


@pytest.mark.covers("TOOL-CLI-14")
def test_list_says_that_the_file_holds_another_version_now(cli: Cli, flow: Path) -> None:
    started(cli, flow)
    deploy(flow, NEW)
    said = cli("flows", "list")
    assert "has another version now" in said.out


@pytest.mark.covers("TOOL-CLI-15", "TOOL-VER-02")
def test_check_lists_the_run_that_would_break_with_why_and_what_repairs_it(cli: Cli, flow: Path) -> None:
    run = started(cli, flow)
    new = deploy(flow, NEW)
    said = cli("flows", "check", new)
    assert said.code == 1
    assert f"{run[:8]}  waiting for input  1 (g1-" in said.out
    assert "breaks" in said.out
    assert "it is at node 'approve', where a person is asked, and NEW has no such node" in said.out
    assert 'rename={"approve": "confirm"}' in said.out
    assert "1 are on a version whose code is not available here" in said.out
    report = cli("flows", "check", new, "--json")
    assert (report.code, report.json["breaks"]) == (1, 1)
    (text,) = report.json["runs"]
    assert (text["run"], text["label"], text["fits"], text["served"]) == (run, "1", False, False)
    assert text["misfits"][0]["node"] == "approve"


@pytest.mark.covers("TOOL-CLI-15")
def test_check_answers_zero_when_every_run_fits_and_when_there_is_none(cli: Cli, flow: Path) -> None:
    started(cli, flow, 80)
    said = cli("flows", "check", deploy(flow, DECLARED))
    assert said.code == 0
    assert "No active run of refund is on a version other" in said.out
    flow.write_text(OLD)
    sys.modules.pop(flow.stem, None)
    started(cli, flow)
    said = cli("flows", "check", deploy(flow, DECLARED, "_more"), "--flow", "refund")
    assert said.code == 0
    assert "fits" in said.out


@pytest.mark.covers("TOOL-CLI-16", "TOOL-VER-04", "TOOL-VER-05", "TOOL-VER-06")
def test_a_renamed_node_is_refused_tried_moved_and_answered_once(cli: Cli, flow: Path) -> None:
    run = started(cli, flow)
    new = deploy(flow, NEW)
    refused = cli("answer", run[:8], "approve", "--resume")
    assert refused.code == 2
    assert "The run waits, and answers are kept" in refused.err
    stays = cli("flows", "migrate", new)
    assert (stays.code, "0 of 1 runs migrated" in stays.out) == (1, True)
    declared = deploy(flow, DECLARED, "_declared")
    tried = cli("flows", "migrate", declared, "--dry-run")
    assert tried.code == 0
    assert "node pay starts" in tried.out
    assert "nothing has changed" in tried.err
    assert stored(cli, run)["migrated"] == 0
    moved = cli("flows", "migrate", declared)
    assert (moved.code, "1 of 1 runs migrated to refund 2" in moved.out) == (0, True)
    shown = cli("show", run).out
    assert "flow      refund 2 (g1-" in shown
    assert "migrated  from 1 (g1-" in shown
    done = cli("resume", run, "--json")
    assert (done.code, done.json["state"]["receipt"]) == (0, "R-A17")
    assert "nothing was executed" in cli("resume", run).err


@pytest.mark.covers("USERS-MANY-MIGRATE", "TOOL-CLI-16")
def test_migrate_moves_the_runs_that_fit_and_says_of_each_other_why_not(cli: Cli, flow: Path) -> None:
    asked, stopped = started(cli, flow), started(cli, flow, -5)
    assert cli("resume", "--where", "status:failed").code == 0
    said = cli("flows", "migrate", deploy(flow, NEW))
    assert said.code == 1
    assert "1 of 2 runs migrated" in said.out
    assert "it is at node 'approve', where a person is asked, and NEW has no such node" in said.out
    assert [stored(cli, run)["migrated"] > 0 for run in (asked, stopped)] == [False, True]


@pytest.mark.covers("TOOL-CLI-16")
def test_migrate_takes_only_the_runs_that_are_named(cli: Cli, flow: Path) -> None:
    first, second = started(cli, flow), started(cli, flow)
    declared = deploy(flow, DECLARED)
    report = cli("flows", "migrate", declared, "--run", second[:8], "--json").json
    assert [entry["run"] for entry in report["runs"]] == [second]
    assert report["runs"][0]["migrated"]
    left = cli("flows", "check", declared, "--json").json["runs"]
    assert [entry["run"] for entry in left] == [first]
    ended = cli("cancel", second)
    assert ended.code == 0
    wrong = cli("flows", "migrate", declared, "--run", second)
    assert (wrong.code, "has already been cancelled" in wrong.err) == (2, True)


@pytest.mark.covers("TOOL-VER-08", "TOOL-CLI-16")
def test_a_process_killed_amid_a_migration_leaves_the_run_on_its_old_version(cli: Cli, flow: Path) -> None:
    run = started(cli, flow)
    declared = deploy(flow, DECLARED)
    words = [sys.executable, "-m", "holdfast", "flows", "migrate", declared]
    killed = subprocess.run(
        words,
        env={**os.environ, **environment("inside_settle"), "HOLDFAST_LEASE": "1ms"},
        timeout=HANG,
        check=False,
    )
    assert killed.returncode == EXIT_CODE
    assert stored(cli, run)["migrated"] == 0
    assert cli("doctor").code == 0
    moved = cli("flows", "migrate", declared, "--json").json["runs"]
    assert [entry["migrated"] for entry in moved] == [True]
    assert cli("answer", run, "approve", "--resume", "--json").json["status"] == "completed"


TWO = (
    OLD
    + "\nold = refund\n"
    + DECLARED.replace("from dataclasses import dataclass\nfrom holdfast import Flow\n", "")
    .replace("class Refund", "class Refund2")
    .replace("state=Refund,", "state=Refund2,")
)


@pytest.mark.covers("TOOL-VER-01")
def test_one_file_serves_two_versions_and_each_run_goes_on_with_its_own(cli: Cli, flow: Path) -> None:
    flow.write_text(TWO)
    several = cli("run", str(flow), "--input", given(250))
    assert (several.code, "defines several flows" in several.err) == (2, True)
    runs = [
        cli("run", f"{flow}:refund@{label}", "--input", given(250), "--json").json["id"]
        for label in ("1", "2")
    ]
    for run in runs:
        cli("answer", run, "approve")
    assert cli("worker", str(flow), "--until-idle").code == 0
    versions = [cli("show", run, "--json").json["run"] for run in runs]
    assert [shown["status"] for shown in versions] == ["completed", "completed"]
    assert versions[0]["version"] != versions[1]["version"]
    # The note beside the store tells the two apart.
    again = cli("run", f"{flow}:refund@1", "--input", given(250), "--json").json["id"]
    assert cli("answer", again, "approve", "--resume", "--json").json["status"] == "completed"


@pytest.mark.parametrize("words", [("check", "nothing.py"), ("migrate", "nothing.py"), ("check",)])
@pytest.mark.covers("TOOL-CLI-15", "TOOL-CLI-16")
def test_what_is_not_there_is_said_in_a_sentence(cli: Cli, flow: Path, words: tuple[str, ...]) -> None:
    started(cli, flow)
    said = cli("flows", *words)
    assert said.code == 2
    assert said.err.count("\n") == 1
