from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reporting import cpu_ticks, folder_of, plain_id
from tests.services import absent

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("nodeid", "folder"),
    [
        ("tests/unit/engine/test_step.py::test_it", "tests/unit"),
        ("tests/crash/test_kill.py::test_it[a/b::c]", "tests/crash"),
        ("tests/test_here.py::test_it", "tests"),
    ],
)
def test_minutes_are_counted_for_the_first_folder(nodeid: str, folder: str):
    assert folder_of(nodeid) == folder


def test_busy_and_idle_ticks_are_all_ticks_but_those_of_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "cpu  100 10 20 400 50 3 2 1 90 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
    monkeypatch.setattr(Path, "read_text", lambda _self: text)
    assert cpu_ticks() == (136, 450)


def test_absent_service_skips_when_nobody_requires_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOLDFAST_REQUIRE", "mariadb")
    with pytest.raises(pytest.skip.Exception, match="postgres is absent: no server"):
        absent("postgres", "no server")


def test_absent_service_fails_when_it_is_required(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOLDFAST_REQUIRE", "mariadb, postgres")
    with pytest.raises(pytest.fail.Exception, match="postgres is required"):
        absent("postgres", "no server")


SUITE = """
import pytest

@pytest.mark.xdist_group("browser")
def test_grouped():
    assert False

def test_other():
    pass
"""
CONFTEST = """
from tests.reporting import PlainNodeIds

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(PlainNodeIds())
"""


@pytest.mark.covers("PLAIN-TEST-01")
def test_second_try_runs_only_what_failed_when_it_belongs_to_a_group(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_suite.py").write_text(SUITE)

    def run(*more: str) -> str:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:randomly",
            "-p",
            "no:schemathesis",
            "-p",
            "no:langsmith_plugin",
            *more,
        ]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True).stdout

    assert "1 failed, 1 passed" in run("-n", "2", "--dist", "loadgroup")
    again = run("-n", "0", "--dist", "no", "--last-failed", "--last-failed-no-failures", "none")
    assert "1 failed" in again
    assert "passed" not in again


@pytest.mark.parametrize(
    ("nodeid", "plain"),
    [
        ("tests/a.py::test_it@browser", "tests/a.py::test_it"),
        ("tests/a.py::test_it[x@y]@browser", "tests/a.py::test_it[x@y]"),
        ("tests/a.py::test_it[user:dana@acme]", "tests/a.py::test_it[user:dana@acme]"),
    ],
)
def test_group_is_taken_off_and_a_parameter_is_not(nodeid: str, plain: str) -> None:
    assert plain_id(nodeid) == plain


@pytest.mark.covers("PLAIN-TEST-03")
def test_children_can_be_interrupted_when_the_run_is_a_background_job() -> None:
    """`nohup make test &` starts with SIGINT ignored; a child that Ctrl-C shall end must not inherit that."""
    child = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    program = (
        "import subprocess, sys; from tests.reporting import receive_interrupts; receive_interrupts();"
        f"subprocess.run([sys.executable, '-c', {child!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert done.stdout == "True\n"
