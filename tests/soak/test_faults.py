"""Planted faults are found (faults.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.faults import FAULTS, PACKAGE, ROOT, Fault, plant

FAILED = 1  # pytest's exit code for tests that failed; errors of the command line and the like are others
NAMES = [fault.name for fault in FAULTS]


@pytest.mark.covers("SAFE-PROOF-01")
@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_fault_can_be_planted(fault: Fault) -> None:
    """Its place is there, once: otherwise the soak would look for a fault that was never planted."""
    assert (PACKAGE / fault.file).read_text("utf-8").count(fault.before) == 1
    assert all((ROOT / test).exists() for test in fault.caught_by)


def test_there_are_at_least_twenty_faults_of_different_names() -> None:
    assert len(set(NAMES)) == len(FAULTS) >= 20


def outcome(fault: Fault, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *fault.caught_by]
    env = {**os.environ, "PYTHONPATH": str(plant(fault, folder))}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.covers("SAFE-PROOF-01")
@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_planted_fault_is_found(fault: Fault, tmp_path: Path) -> None:
    done = outcome(fault, tmp_path)
    assert done.returncode == FAILED, f"nothing failed with: {fault.name}\n{done.stdout[-2000:]}{done.stderr}"
