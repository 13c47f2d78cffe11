"""`runs`: which, and page by page."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.cli.conftest import Cli, given
from tests.cli.terminal import in_terminal

DAY = 86_400_000_000


@pytest.fixture
def runs(cli: Cli, refund: str, tmp_path: Path) -> list[str]:
    """Newest first: made now for acme, two days ago, and ten days ago."""
    made = [
        cli("run", refund, "--input", given(80), "--tenant", tenant, "--json").json["id"]
        for tenant in ("default", "default", "acme")
    ]
    with apsw.Connection(str(tmp_path / ".holdfast" / "holdfast.db")) as db:
        for run, days in zip(made, (10, 2, 0), strict=True):
            db.execute("UPDATE runs SET created_at = created_at - ? WHERE id = ?", (days * DAY, run))
    return made[::-1]


def ids(cli: Cli, *words: str) -> list[str]:
    return [row["id"] for row in cli("runs", "--json", *words).items]


@pytest.mark.covers("TOOL-CLI-03", "TOOL-CLI-25")
def test_runs_are_listed_by_tenant_flow_status_and_age(cli: Cli, runs: list[str]) -> None:
    now, two, ten = runs

    assert ids(cli) == [now, two, ten]
    assert ids(cli, "--tenant", "acme") == [now]
    assert ids(cli, "--newer", "3d") == [now, two]
    assert ids(cli, "--older", "1d") == [two, ten]
    assert ids(cli, "--older", "1d", "--newer", "3d") == [two]
    assert ids(
        cli, "--flow", "refund", "--status", "completed", "--status", "failed", "--tenant", "default"
    ) == [two, ten]
    assert ids(cli, "--flow", "other") == []
    assert ids(cli, "--status", "failed") == []


@pytest.mark.covers("TOOL-CLI-03")
def test_runs_are_paged_by_the_command_that_the_list_names(cli: Cli, runs: list[str]) -> None:
    first = cli("runs", "--limit", "2", "--older", "1h", "--flow", "refund")
    assert first.err == ""

    page = cli("runs", "--limit", "1", "--older", "1h")

    text = page.err.strip().removeprefix("More: holdfast ").split()
    assert text == ["runs", "--after", runs[1][:8], "--older", "1h", "--limit", "1"]
    assert ids(cli, *text[1:]) == [runs[2]]


@pytest.mark.covers("TOOL-CLI-03")
def test_runs_refuses_what_it_does_not_understand(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(80))

    for option, value in (("--newer", "soon"), ("--older", "-1d"), ("--status", "done"), ("--after", "zz")):
        said = cli("runs", option, value)
        assert (said.code, said.out) == (2, "")
        assert value in said.err


@pytest.mark.covers("TOOL-CLI-03")
def test_runs_tells_whose_they_are_where_there_are_several_tenants(cli: Cli, runs: list[str]) -> None:
    both, one = cli("runs").out.splitlines(), cli("runs", "--tenant", "default").out.splitlines()

    assert both[0].split()[:4] == ["run", "flow", "tenant", "status"]
    assert both[1].split()[:4] == [runs[0], "refund", "acme", "completed"]
    assert one[0].split()[:3] == ["run", "flow", "status"]


@pytest.mark.covers("TOOL-CLI-26")
def test_runs_in_a_terminal_is_a_table_with_ages(cli: Cli, runs: list[str], tmp_path: Path) -> None:
    seen = in_terminal(tmp_path, "runs")

    assert runs[1][:8] in seen.text
    assert runs[1] not in seen.text
    assert "2 d ago" in seen.text
    assert "\x1b[32mcompleted" in seen.raw


def test_a_run_is_queued_once_its_answer_is_recorded(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    before = cli("runs", "--json").items[0]
    assert (before["asks"], before["answered"]) == (True, False)
    assert "waiting for input" in cli("runs").out
    assert cli("answer", run, "approve").code == 0
    after = cli("runs", "--json").items[0]
    assert (after["asks"], after["answered"]) == (False, True)
    assert "queued" in cli("runs").out
    assert "status   queued" in cli("show", run).out
