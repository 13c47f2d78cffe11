"""`run`, `resume`, `answer`, `cancel` and `worker`."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, given
from tests.deadlines import HANG


@pytest.mark.covers("CORE-CLI-01")
def test_run_completes_and_shows_the_state(cli: Cli, refund: str) -> None:
    said = cli("run", refund, "--input", given(80))

    assert said.code == 0
    assert "status  completed" in said.out
    assert "R-A17" in said.out


def test_run_answers_in_json_when_asked(cli: Cli, refund: str) -> None:
    said = cli("run", refund, "--input", given(80), "--json")

    assert said.code == 0
    assert said.json["status"] == "completed"
    assert said.json["state"]["receipt"] == "R-A17"
    assert said.err == ""


@pytest.mark.covers("CORE-CLI-01")
def test_run_says_what_to_type_when_it_waits_for_a_person(cli: Cli, refund: str) -> None:
    said = cli("run", refund, "--input", given(250))

    assert said.code == 3
    assert "Refund 250?" in said.out
    run = said.out.split()[1]
    assert f"holdfast answer {run[:8]} approve" in said.out


@pytest.mark.covers("CP-5")
def test_run_names_flow_and_node_of_a_question_without_a_text(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "quiet.yaml").write_text(
        "{holdfast: '1.0', name: quiet, nodes: [{id: a, type: start}, {id: ask, type: hitl_decision, config: "
        "{options: [ok]}}, {id: z, type: end}], edges: [{source: a, target: ask}, {source: ask, target: z}]}"
    )
    assert "quiet at ask\n  holdfast answer" in cli("run", str(tmp_path / "quiet.yaml")).out


@pytest.mark.covers("FLEET-WORK-01")
def test_run_is_left_to_a_worker_when_detached(cli: Cli, refund: str) -> None:
    started = cli("run", refund, "--input", given(80), "--detach", "--lane", "slow", "--json")
    assert started.code == 0
    assert (started.json["status"], started.json["lane"]) == ("pending", "slow")

    assert cli("worker", refund, "--lane", "slow", "--until-idle").code == 0
    shown = cli("show", started.json["id"], "--json")
    assert shown.json["run"]["status"] == "completed"


def test_detached_run_cannot_be_watched_and_bad_input_starts_nothing(cli: Cli, refund: str) -> None:
    assert cli("run", refund, "--input", given(80), "--detach", "--watch").code == 2
    unfit = cli("run", refund, "--input", '{"no": "such"}', "--detach")
    assert unfit.code == 2
    assert "cannot start flow" in unfit.err
    assert cli("runs", "--json").items == []


def test_run_fails_with_the_reason_and_the_next_command_when_a_node_fails(cli: Cli, refund: str) -> None:
    said = cli("run", refund, "--input", given(-1))

    assert said.code == 1
    assert "node assess: ValueError: a refund is positive" in said.out
    assert "holdfast resume" in said.err


def test_run_reads_its_input_from_a_file_and_from_stdin(
    cli: Cli, refund: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.json").write_text(given(1))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given(2).encode())))

    from_file = cli("run", refund, "--input", "@in.json", "--json")
    from_stdin = cli("run", refund, "--input", "-", "--json")

    assert (from_file.json["state"]["amount"], from_stdin.json["state"]["amount"]) == (1, 2)


def test_run_shows_events_as_lines_when_watched(cli: Cli, refund: str) -> None:
    said = cli("run", refund, "--input", given(80), "--watch")

    kinds = [line.split()[1] for line in said.out.splitlines() if line[:2].isdigit() and "." in line]
    assert kinds[0] == "run.created"
    assert kinds[-1] == "run.completed"
    assert "node.completed" in kinds


def test_run_shows_events_as_json_lines_when_watched_by_a_machine(cli: Cli, refund: str) -> None:
    said = cli("run", refund, "--input", given(80), "--watch", "--json")

    *events, result = [json.loads(line) for line in said.out.splitlines()]
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert result["status"] == "completed"


def test_run_starts_no_second_run_when_the_key_is_known(cli: Cli, refund: str) -> None:
    first = cli("run", refund, "--input", given(80), "--idempotency-key", "k", "--json")
    second = cli("run", refund, "--input", given(80), "--idempotency-key", "k", "--json")

    assert first.json["id"] == second.json["id"]
    assert second.json["status"] == "completed"
    assert len(cli("runs", "--json").items) == 1


@pytest.mark.covers("CORE-CLI-02", "CORE-CLI-05", "TOOL-CLI-02", "TOOL-CLI-12")
def test_answer_then_resume_completes_the_run(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]

    answered = cli("answer", run[:8], "approve", "--comment", "checked", "--by", "user:ada", "--json")
    resumed = cli("resume", run[:8], "--json")

    assert answered.code == 0
    assert answered.json["resolution"]["comment"] == "checked"
    assert resumed.code == 0
    assert resumed.json["state"]["decision"] == "approve"
    assert resumed.json["state"]["receipt"] == "R-A17"


@pytest.mark.covers("CORE-CLI-05")
def test_answer_goes_on_with_the_run_when_asked_to(cli: Cli, refund: str) -> None:
    said = cli("run", refund, "--input", given(250), "--json").json

    done = cli("answer", said["holds"][0]["id"], "approve", "--resume", "--json")

    assert (done.code, done.json["status"]) == (0, "completed")


@pytest.mark.covers("CORE-CLI-06", "CORE-HOLD-03", "TOOL-CLI-13")
def test_worker_finishes_what_was_answered(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    cli("answer", run, "reject")

    said = cli("worker", refund, "--until-idle")

    assert said.code == 0
    assert cli("runs", "--status", "completed", "--json").items[0]["id"] == run


@pytest.mark.covers("TOOL-CLI-12")
def test_cancel_stops_a_waiting_run_here_when_nobody_has_it(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]

    said = cli("cancel", run, "--reason", "ordered twice", "--json")

    assert (said.code, said.json["status"]) == (0, "cancelled")
    assert cli("show", run, "--json").json["holds"][0]["status"] == "cancelled"


def test_cancel_is_kept_for_a_caller_who_goes_on_when_the_code_is_not_found(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    Path(".holdfast/holdfast.db-flows.json").unlink()

    asked = cli("cancel", run)
    ended = cli("resume", run, refund, "--json")

    assert (asked.code, "the next worker that advances it" in asked.out) == (0, True)
    assert (ended.code, ended.json["status"]) == (1, "cancelled")


@pytest.mark.covers("CORE-CLI-02", "TOOL-CLI-02")
def test_resume_goes_on_with_a_failed_run_when_its_cause_was_repaired(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / f"mended_{abs(hash(str(tmp_path)))}.py"
    file.write_text(
        "from pathlib import Path\nfrom holdfast import Flow\nflow = Flow('mended', effect='pure')\n"
        "@flow.node\nasync def look(s):\n    return {'found': Path('there').read_text()}\n"
    )
    run = cli("run", str(file), "--json")
    assert (run.code, run.json["status"]) == (1, "failed")
    (tmp_path / "there").write_text("yes")

    again = cli("resume", run.json["id"], "--json")

    assert (again.code, again.json["state"]) == (0, {"found": "yes"})


@pytest.mark.covers("R-14")
def test_resume_shows_the_result_and_executes_nothing_when_the_run_is_over(
    cli: Cli, refund: str, tmp_path: Path
) -> None:
    done = cli("run", refund, "--input", '{"order": "A17", "amount": 80}', "--json").json
    before = cli("show", done["id"], "--json").json["records"]
    (tmp_path / refund).unlink()

    again = cli("resume", done["id"], "--json")
    assert (again.code, again.json) == (0, done)
    result = cli("resume", done["id"])
    assert result.code == 0
    assert "has ended (completed); nothing was executed" in result.err
    assert "R-A17" in result.out
    assert cli("show", done["id"], "--json").json["records"] == before


@pytest.mark.covers("R-14")
def test_resume_of_a_cancelled_run_says_so_with_the_exit_code_of_its_status(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", '{"order": "A17", "amount": 250}', "--json").json["id"]
    cli("cancel", run)
    result = cli("resume", run)
    assert result.code == 1
    assert "has ended (cancelled); nothing was executed" in result.err


def test_code_that_was_changed_a_moment_ago_runs_as_it_is_now(tmp_path: Path) -> None:
    """Compiled files are known by second and size: the second flow must not run as the first."""
    file = tmp_path / "moment.py"
    head = "from holdfast import Flow\nflow = Flow('moment')\n@flow.node(effect='pure')\n"
    said = []
    for number in (1, 2):
        file.write_text(f"{head}def say(s):\n    return {{'n': {number}}}\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "run", str(file), "--json"],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            capture_output=True,
            text=True,
            timeout=HANG,
        )
        assert done.returncode == 0, done.stderr
        said.append(json.loads(done.stdout)["state"])
    assert said == [{"n": 1}, {"n": 2}]
