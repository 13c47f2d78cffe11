"""`holdfast prune`: what would go, what goes, and what stays."""

from __future__ import annotations

import pytest

from holdfast.testing.clock import FakeClock
from tests.cli.conftest import Cli, given
from tests.cli.test_bad_input import complains


def ended(cli: Cli, refund: str) -> str:
    return cli("run", refund, "--input", given(5), "--json").json["id"]


def waiting(cli: Cli, refund: str) -> str:
    return cli("run", refund, "--input", given(500), "--json").json["id"]


def records(cli: Cli, run: str) -> int:
    return len(cli("show", run, "--json").json["records"])


@pytest.mark.covers("TOOL-CLI-17")
def test_preview_counts_runs_records_and_bytes_and_changes_nothing(cli: Cli, refund: str) -> None:
    run = ended(cli, refund)
    before = records(cli, run)
    said = cli("prune", "--keep", "1", "--dry-run")
    assert said.code == 0
    assert run[:8] in said.out
    assert f"Old records of 1 run would be deleted: {before - 1} records, " in said.out
    planned = cli("prune", "--keep", "1", "--dry-run", "--json").json
    assert planned["done"] is None
    assert [(s["run"], s["records"], s["bytes"] > 0) for s in planned["planned"]] == [(run, before - 1, True)]
    assert records(cli, run) == before


@pytest.mark.covers("TOOL-CLI-17", "R-54-tool")
def test_count_takes_old_records_and_says_so(cli: Cli, refund: str) -> None:
    run = ended(cli, refund)
    state = cli("show", run, "--json").json["state"]
    said = cli("prune", "--keep", "1")
    assert "Deleted: 0 whole runs," in said.out
    assert records(cli, run) == 1
    assert cli("show", run, "--json").json["state"] == state
    assert "Nothing to delete." in cli("prune", "--keep", "1").out


@pytest.mark.covers("TOOL-CLI-17", "TOOL-KEEP-03", "R-54-tool")
def test_age_takes_whole_runs_and_never_one_that_waits(
    cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, held = ended(cli, refund), waiting(cli, refund)
    assert cli("prune", "--older", "30d", "--json").json["done"]["runs"] == 0
    clock = FakeClock()
    monkeypatch.setattr("holdfast.store.sql.sqlite.store.SystemClock", lambda: clock)
    clock.advance(days=3650)
    done = cli("prune", "--older", "30d", "--json").json
    assert (done["done"]["runs"], [s["run"] for s in done["planned"]]) == (1, [run])
    assert [row["id"] for row in cli("runs", "--json").items] == [held]


@pytest.mark.covers("TOOL-KEEP-03")
def test_named_run_that_waits_is_refused_with_the_reason_and_the_others_are_done(
    cli: Cli, refund: str
) -> None:
    run, held = ended(cli, refund), waiting(cli, refund)
    before = records(cli, held)
    said = cli("prune", held, run, "--keep", "1")
    complains(said, 2, f"run {held} is waiting for input", "waits for an answer", "cancel it first")
    assert (records(cli, held), records(cli, run)) == (before, 1)
    result = cli("prune", held, "--json")
    assert (result.code, result.json["refused"][0]["run"]) == (2, held)


@pytest.mark.covers("TOOL-CLI-17")
def test_flow_narrows_and_an_unknown_one_is_named(cli: Cli, refund: str) -> None:
    run = ended(cli, refund)
    complains(cli("prune", "--flow", "nobody"), 2, "no flow 'nobody'", "refund")
    complains(cli("prune", "--older", "soon"), 2, "--older", "not a duration")
    complains(cli("prune", "nothing-like-it"), 2, "nothing-like-it")
    assert cli("prune", "--flow", "refund", "--keep", "2", "--json").json["done"]["records"] > 0
    assert records(cli, run) == 2


@pytest.mark.covers("TOOL-KEEP-04")
def test_blobs_go_when_no_run_names_them(cli: Cli, refund: str, tmp_path: object) -> None:
    order = "A" * 200_000
    cli("run", refund, "--input", f'{{"order": "{order}", "amount": 5}}')
    run = cli("runs", "--json").items[0]["id"]
    assert cli("prune", "--blobs", "--grace", "0s", "--json").json["blobs"] == 0
    assert cli("prune", run, "--older", "0s", "--blobs", "--grace", "0s", "--json").json["blobs"] >= 1
    assert cli("runs", "--json").items == []
