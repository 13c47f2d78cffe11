"""`cancel`, `resume` and `fork` with `--where`: a plan for many runs, then the same without it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cli.main import Exit
from holdfast.runs.service import RunService
from tests.cli.conftest import Cli, given

pytestmark = pytest.mark.covers("USERS-MANY")


def started(cli: Cli, flow: str, amount: int) -> str:
    return cli("run", flow, "--input", given(amount), "--json").json["id"]


def statuses(cli: Cli) -> dict[str, str]:
    return {row["id"]: row["status"] for row in cli("runs", "--json").items}


def by_run(found: Any) -> dict[str, Any]:
    return {item["run"]: item for item in found["items"]}


def test_a_plan_says_what_a_cancel_would_do_and_changes_nothing(cli: Cli, refund: str) -> None:
    paid, asked, other = (started(cli, refund, amount) for amount in (80, 250, 300))
    before = statuses(cli)

    said = cli("cancel", "--where", "flow:refund", "--plan", "--json")
    plan = by_run(said.json)
    assert said.code == 1
    assert said.json | {"items": []} == {
        "action": "cancel", "plan": True, "done": 2, "left_out": {"run_ended": 1}, "items": [],
    }  # fmt: skip
    assert plan[paid]["why"] == "it is completed."
    assert "Withdraws the question: Refund 250?" in plan[asked]["text"]
    assert statuses(cli) == before

    assert cli("cancel", "--where", "status:pending_input", "--reason", "ordered twice").code == 0
    assert statuses(cli) == {paid: "completed", asked: "cancelled", other: "cancelled"}


def test_failed_runs_resume_when_the_search_finds_them(cli: Cli, refund: str) -> None:
    failed = [started(cli, refund, -amount) for amount in (1, 2)]
    asked = started(cli, refund, 250)

    said = cli("resume", "--where", "flow:refund", "--plan")
    assert said.out.splitlines()[-1] == "2 of 3 runs would be queued to resume."
    assert "nothing has changed" in said.err
    assert statuses(cli) == {**dict.fromkeys(failed, "failed"), asked: "pending_input"}
    plan = cli("resume", "--where", "flow:refund", "--plan", "--json").json
    assert plan["left_out"] == {"run_status": 1}
    assert by_run(plan)[asked]["why"] == "it is waiting for input."

    done = cli("resume", "--where", "status:failed", "--json").json
    assert {run: item["done"] for run, item in by_run(done).items()} == dict.fromkeys(failed, True)
    assert statuses(cli) == {**dict.fromkeys(failed, "resumable"), asked: "pending_input"}


def test_forks_start_at_a_node_with_values_set_once_for_each_key(cli: Cli, refund: str) -> None:
    sources = [started(cli, refund, amount) for amount in (250, 300)]
    where = ("fork", "--where", "status:pending_input flow:refund", "--at", "assess", "--set", "order=B2")

    plan = cli(*where, "--plan", "--json").json
    assert plan["done"] == 2
    assert "Asks again: Refund 250?" in by_run(plan)[sources[0]]["text"]
    assert set(statuses(cli)) == set(sources)

    first = by_run(cli(*where, "--key", "again", "--json").json)
    made = {first[source]["made"] for source in sources}
    assert len(made) == 2
    assert {cli("show", run, "--json").json["state"]["order"] for run in made} == {"B2"}
    assert {cli("show", run, "--json").json["state"]["order"] for run in sources} == {"A17"}

    # The same command after an interruption, when the forks wait at the question too: they are found by the
    # search, and are not forked themselves.
    assert cli("worker", refund, "--until-idle").code == 0
    repeated = by_run(cli(*where, "--key", "again", "--json").json)
    assert {repeated[source]["made"] for source in sources} == made
    assert {repeated[run]["why"] for run in made} == {
        f"it was made by this command, from run {source}." for source in sources
    }
    assert set(statuses(cli)) == {*sources, *made}


def test_a_key_of_forks_is_refused_for_other_values(cli: Cli, refund: str) -> None:
    source = started(cli, refund, 250)
    where = (
        "fork",
        "--where",
        "status:pending_input flow:refund",
        "--at",
        "assess",
        "--key",
        "again",
        "--json",
    )
    made = by_run(cli(*where, "--set", "order=B2").json)[source]["made"]
    assert by_run(cli(*where, "--set", "order=B2").json)[source]["made"] == made
    for more in (("--set", "order=C3"), ("--set", "order=B2", "--set", "amount=1"), ()):
        said = cli(*where, *more)
        assert said.code == 1
        assert made in by_run(said.json)[source]["why"]
    assert set(statuses(cli)) == {source, made}


def test_one_run_that_cannot_be_changed_is_left_out_and_the_others_are_changed(cli: Cli, refund: str) -> None:
    paid, asked = started(cli, refund, 80), started(cli, refund, 250)
    said = cli("fork", "--where", "flow:refund", "--at", "pay", "--json")
    found = by_run(said.json)
    assert said.code == 1
    assert found[paid]["done"]
    assert not found[asked]["done"]
    assert "pay" in found[asked]["why"]


def test_a_plan_finds_values_that_do_not_fit_the_state(cli: Cli, refund: str) -> None:
    run = started(cli, refund, 250)
    for words in (("--set", 'amount="much"'), ("--patch", '{"nothing": 1}')):
        said = cli("fork", "--where", "flow:refund", *words, "--plan", "--json")
        assert said.code == 1
        assert by_run(said.json)[run]["code"] == "state_mismatch"
    assert set(statuses(cli)) == {run}


def test_a_command_that_was_interrupted_does_the_rest_when_it_is_repeated(
    cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [started(cli, refund, amount) for amount in (250, 300)]
    real, seen = RunService.cancel, list[str]()

    async def interrupted(self: RunService, run: str, **more: Any) -> Any:
        if seen:
            raise KeyboardInterrupt
        seen.append(run)
        return await real(self, run, **more)

    monkeypatch.setattr(RunService, "cancel", interrupted)
    assert cli("cancel", "--where", "flow:refund").code == Exit.interrupted
    assert sorted(statuses(cli).values()) == ["cancelled", "pending_input"]
    monkeypatch.setattr(RunService, "cancel", real)
    assert cli("cancel", "--where", "status:pending_input").code == 0
    assert statuses(cli) == dict.fromkeys(runs, "cancelled")


WRONG = {
    ("cancel",): "give RUN or --where",
    ("cancel", "3fa9", "--where", "flow:refund"): "give RUN or --where",
    ("cancel", "3fa9", "--plan"): "--plan needs --where",
    ("cancel", "--where", " "): "--where is empty",
    ("cancel", "--where", "statos:failed"): "statos",
    ("resume", "--where", "flow:refund", "--watch"): "--watch cannot be combined with --where",
    ("fork", "3fa9", "--at", "pay"): "--at and --key need --where",
    ("fork", "--where", "flow:refund", "--resume"): "--resume cannot be combined with --where",
}


def test_a_wrong_selection_is_refused_before_anything_is_changed(cli: Cli, refund: str) -> None:
    run = started(cli, refund, 250)
    for words, why in WRONG.items():
        said = cli(*words)
        assert (said.code, said.out) == (2, ""), said
        assert why in said.err
    assert statuses(cli) == {run: "pending_input"}


@pytest.mark.parametrize("command", ["cancel", "resume", "fork"])
def test_yes_without_a_search_is_refused_and_changes_nothing(cli: Cli, refund: str, command: str) -> None:
    asked = started(cli, refund, 250)
    said = cli(command, asked, "--yes")
    assert (said.code, "--yes needs --where." in said.err) == (2, True)
    assert statuses(cli) == {asked: "pending_input"}


def test_a_run_that_was_deleted_meanwhile_does_not_stop_the_others(
    cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, gone = (started(cli, refund, amount) for amount in (250, 300))
    get = RunService.get

    async def gets(self: RunService, run: str) -> Any:
        return await get(self, "00000000-0000-4000-8000-000000000000" if run == gone else run)

    monkeypatch.setattr(RunService, "get", gets)
    done = by_run(cli("cancel", "--where", "flow:refund", "--yes", "--json").json)
    assert (done[gone]["done"], done[gone]["code"]) == (False, "run_not_found")
    assert done[asked]["done"]


def test_a_search_with_an_unknown_name_is_refused_and_names_those_that_exist(cli: Cli, refund: str) -> None:
    asked = started(cli, refund, 250)

    said = cli("cancel", "--where", "bogus:x")
    assert said.code == Exit.bad_input
    assert "bogus is not a search term" in said.err
    assert "Known: at, by, created, error, flow, key, status, text, thread, took, version." in said.err
    assert statuses(cli) == {asked: "pending_input"}
