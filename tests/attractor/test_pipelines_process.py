"""Pipelines on `holdfast serve` as a process: killed at a gate, answered while nothing runs, gone on with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.test_serve import served
from tests.attractor.run import dot
from tests.deadlines import HANG
from tests.services import prefork

SOURCE = dot(
    't [shape=parallelogram, tool_command="echo ran >> trace"]; gate [shape=hexagon, label="Ship?"]; '
    'u [shape=parallelogram, tool_command="echo went on >> trace"];',
    'start -> t -> gate; gate -> u [label="[S] Ship"]; gate -> done [label="[N] No"]; u -> done',
)


def heard(client: httpx2.Client, run: str, until: str, after: str = "") -> list[tuple[str, str]]:
    """(id, name) of each event, up to the first of that name."""
    found: list[tuple[str, str]] = []
    headers = {"Last-Event-ID": after} if after else {}
    place = ""
    with client.stream("GET", f"/pipelines/{run}/events", headers=headers) as answer:
        for line in answer.iter_lines():
            if line.startswith("id: "):
                place = line[4:]
            elif line.startswith("event: "):
                found.append((place, line[7:]))
                if found[-1][1] == until:
                    return found
    return found


@pytest.mark.covers("ATTRACTOR-PROOF-09", "ATTRACTOR-GATE-02", "ATTRACTOR-HTTP-02", "ATTRACTOR-HTTP-05")
def test_a_killed_server_loses_no_question_and_its_stream_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(tmp_path, "--allow-code", "--lease", "3s") as first, first.ready().client() as client:
        said: Any = client.post("/pipelines", json={"dot": SOURCE})
        assert said.status_code == 201, said.text
        run = said.json()["id"]
        before = heard(client, run, "InterviewStarted")
        first.child.kill()
        first.child.wait(HANG)
    environment = {**os.environ, "HOLDFAST_STORE": f"sqlite:{tmp_path / 's.db'}"}
    command = [sys.executable, "-m", "holdfast", "answer", run, "S"]
    assert subprocess.run(command, env=environment, timeout=HANG, check=False).returncode == 0
    # Its worker runs what was accepted before; the server accepts no more.
    monkeypatch.setenv("HOLDFAST_ALLOW_CODE", "1")
    with served(tmp_path, "--lease", "3s") as second, second.ready().client() as client:
        after = heard(client, run, "PipelineCompleted", before[-1][0])
        assert client.get(f"/pipelines/{run}").json()["outcome"] == "success"
        refused = client.post("/pipelines", json={"dot": SOURCE})
        assert (refused.status_code, refused.json()["code"]) == (403, "code_not_allowed")
    assert (tmp_path / "trace").read_text() == "ran\nwent on\n"
    numbers = [int(number) for number, _ in (*before, *after)]
    assert numbers == sorted(set(numbers))
    names = [name for _, name in (*before, *after)]
    assert names.count("InterviewStarted") == names.count("InterviewCompleted") == 1
    assert names[-1] == "PipelineCompleted"


@pytest.mark.covers("SAFE-HANDLER-05")
def test_run_of_a_pipeline_blames_no_thread_of_our_own_on_the_code(tmp_path: Path) -> None:
    file = tmp_path / "p.dot"
    file.write_text("digraph { start [shape=Mdiamond]; end [shape=Msquare]; start -> a -> end }")
    done = prefork.run("holdfast", ["run", file, "--simulate"], cwd=tmp_path, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "thread" not in done.stderr
