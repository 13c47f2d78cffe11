"""A sleeping run says until when, in every command that shows runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast.types.clock import iso, to_micros
from holdfast.types.human_time import clock_time
from tests.cli.conftest import Cli

pytestmark = pytest.mark.covers("SAFE-READ-09")

FLOW = """
from holdfast import Flow

napping = Flow("napping", effect="pure")
napping.timer("nap", "2h")
"""


@pytest.fixture
def napping(tmp_path: Path) -> str:
    path = tmp_path / "napping.py"
    path.write_text(FLOW)
    return str(path)


def test_every_command_that_shows_a_run_says_until_when(cli: Cli, napping: str) -> None:
    begun = datetime.now(UTC)
    made = cli("run", napping, "--json").json
    at = datetime.fromisoformat(made["wakes_at"])
    assert begun + timedelta(hours=2) <= at <= datetime.now(UTC) + timedelta(hours=2)
    words = f"sleeping until {clock_time(to_micros(at))}"
    assert words in " ".join(cli("show", made["id"]).out.split())
    assert words in " ".join(cli("runs").out.split())
    assert words in " ".join(cli("resume", made["id"], napping).out.split())
    stamp = iso(to_micros(at))
    assert cli("show", made["id"], "--json").json["run"]["wakes_at"] == stamp
    assert cli("runs", "--json").items[0]["wakes_at"] == stamp
    assert cli("resume", made["id"], napping, "--json").json["wakes_at"] == stamp
    watched = cli("run", napping, "--watch").out
    assert "timer.started" in watched
    assert " until " in watched
