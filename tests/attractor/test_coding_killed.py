"""The worker of a coding stage is killed in the middle of a command: nothing is run twice in silence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.agents.coding.kit import UNKNOWN
from tests.attractor.kill import Place, finished, place
from tests.attractor.repositories import made

__all__ = ["place"]

# The stage `b` has no tools: its worker is the one that is killed, too.
PIPELINE = """digraph work { start; end; graph [workdir="repo"]
    fan [shape=component, workspace=worktree, max_parallel=1]; join [shape=tripleoctagon]
    a [prompt="Do it", tools=coding]; b [prompt="Do it", tools=none]
    start -> fan; fan -> a -> join; fan -> b -> join; join -> end }"""
BACKEND = """
import os
from holdfast import Scripted, tool_call
from holdfast.attractor.backends.model import ModelBackend

COMMAND = f"echo ran >> $ATTRACTOR_LOGS_ROOT/../trace; kill -9 {os.getpid()}; sleep 1000"


def first(request):
    return tool_call("shell", command=COMMAND) if request.tools else "no tools"


backend = ModelBackend(model=Scripted(first, lambda request: request.messages[-1].text), kits=["coding"])
"""


@pytest.mark.covers("CP2-A5")
def test_a_model_is_told_of_a_killed_command_in_a_worktree_of_its_run(place: Callable[[str], Place]) -> None:
    where = place(PIPELINE)
    made(where.folder / "repo")
    (where.folder / "backend.py").write_text(BACKEND)
    where.environment["HOLDFAST_BACKEND"] = "backend.py:backend"
    code = where.call("run", "x.dot", "--logs", "D", "--run-id", where.run_id).end()
    assert code == -9, where.calls[-1].told
    end = finished(where)
    assert end.status == "completed", where.calls[-1].told
    assert (where.folder / "trace").read_text() == "ran\n"
    (answer,) = where.folder.glob("D/**/a/response.md")
    assert answer.read_text() == UNKNOWN
