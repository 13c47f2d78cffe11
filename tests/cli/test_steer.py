"""`holdfast steer`: what it says where no agent listens. tests/agents has those that do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attractor.run import dot
from tests.cli.conftest import Cli

LINKS = "start -> g; g -> a [label=Yes]; g -> done [label=No]; a -> done"


@pytest.mark.covers("CP2-A8")
def test_a_run_without_an_active_agent_refuses_a_message(cli: Cli) -> None:
    Path("x.dot").write_text(dot('g [shape=hexagon, label="Go on?"]; a;', LINKS))
    run = cli("run", "x.dot", "--simulate", "--json").json["id"]
    said = cli("steer", run, "Hello")
    assert said.code == 2
    assert "no stage of run" in said.err
    assert "Traceback" not in said.err
    assert cli("steer", run, "").code == 2
    assert cli("steer", "nothing", "Hello").code == 2
