"""A process is killed outright: its directory is whole, and goes on here, elsewhere, or not at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.attractor.kill import Place, until
from tests.attractor.run import line

TOOL = "shape=parallelogram, tool_command"
WAITS = "touch begun; while test -e begun && ! test -f go; do sleep 0.02; done"
STAGES = f'a [{TOOL}="echo a >> trace"]; b [{TOOL}="{WAITS}; echo b >> trace"]; c [{TOOL}="echo c >> trace"];'
TEXT = line(STAGES, "a", "b", "c")


def checkpoint(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "checkpoint.json").read_text())


@pytest.mark.covers("ATTRACTOR-DIR-04", "ATTRACTOR-DIR-06", "ATTRACTOR-CLI-02", "AT-153", "AT-155")
def test_the_directory_of_a_killed_process_goes_on_here_and_elsewhere(tmp_path: Path) -> None:
    place = Place(tmp_path / "here", TEXT)
    called = place.start()
    until(lambda: place.has("begun"), "the command has begun")
    until(lambda: checkpoint(place.folder / "D")["next_node"] == "b", "the directory shows it")
    called.kill()
    saved = checkpoint(place.folder / "D")
    assert (saved["completed_nodes"], saved["status"]) == (["start", "a"], "running")
    other = tmp_path / "there"
    shutil.copytree(place.folder / "D", other / "D")
    elsewhere = Place(other, TEXT)
    elsewhere.touch("go")
    there = elsewhere.call("run", "--resume", "D", "--simulate", "--json")
    assert there.end() == 3, there.told
    # Whether the command of b did its work is not known there: a person says it.
    assert not (other / "trace").exists()
    hold = json.loads(there.told)["open_holds"][0]
    asked = elsewhere.call("answer", hold, "run again", "--json")
    assert asked.end() == 0, asked.told
    there = elsewhere.call("run", "--resume", "D", "--simulate", "--json")
    assert there.end() == 0, there.told
    assert (other / "trace").read_text() == "b\nc\n", "only what was not done"
    assert checkpoint(other / "D")["completed_nodes"] == ["start", "a", "b", "c", "done"]
    # The command is still at work on the first machine: whoever goes on there waits for it.
    place.touch("go")
    until(lambda: (place.folder / "trace").read_text() == "a\nb\n", "the command has ended")
    here = place.call("run", "--resume", "D", "--json")
    assert here.end() == 0, here.told
    assert (place.folder / "trace").read_text() == "a\nb\nc\n"
    mine, theirs = checkpoint(place.folder / "D"), checkpoint(other / "D")
    assert mine["run_id"] == place.run_id != theirs["run_id"]
    for key in ("completed_nodes", "node_outcomes", "status", "current_node"):
        assert mine[key] == theirs[key]
