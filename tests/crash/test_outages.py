"""A full disk and a locked database in the middle of a run: typed errors, nothing lost, the run goes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.crash.judge import Victim
from tests.services import absent

MOUNTED = 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"'


def _met(victim: Victim) -> list[object]:
    return next(fact[1:] for fact in victim.facts if fact[0] in ("met", "unbroken"))


@pytest.mark.covers("CORE-PROOF-02", "CORE-PROOF-03")
@pytest.mark.parametrize("name", ["bare", "script", "map"])
@pytest.mark.parametrize(
    ("how", "code"),
    [
        pytest.param("full", "store_full", marks=pytest.mark.covers("CORE-BAD-16", "RS-MORE-4")),
        pytest.param("locked", "store_busy", marks=pytest.mark.covers("CORE-BAD-17")),
    ],
)
def test_run_stops_with_a_typed_error_and_goes_on_later_when_the_store_cannot_write(
    how: str, code: str, name: str, tmp_path: Path
) -> None:
    victim = Victim(tmp_path, name)
    assert victim.end(victim.start(how, program="outage")) == 0
    assert _met(victim)[:2] == [code, True]
    assert not victim.doubts, "the process lived on, and told how the effect ended"
    victim.judge()


@pytest.mark.covers("CORE-BAD-16", "RS-MORE-4", "FLEET-DEGR-02", "FLEET-DEGR-04")
@pytest.mark.parametrize("name", ["bare", "script"])
def test_run_stops_and_goes_on_later_when_its_disk_is_really_full(name: str, tmp_path: Path) -> None:
    """A small disk in a mount namespace of the process: nobody else sees it."""
    victim = Victim(tmp_path, name)
    small = tmp_path / "small"
    small.mkdir()
    victim.address = f"sqlite:{small / 'h.db'}"
    victim.before = ["unshare", "-m", "--propagation", "private", "sh", "-c", MOUNTED, str(small)]
    if os.getuid() != 0 or subprocess.run([*victim.before, "true"], check=False).returncode:
        absent("namespaces", "a small disk needs root and unshare")
    assert victim.end(victim.start("disk", program="outage")) == 0
    assert _met(victim)[:2] == ["store_full", True]
    assert not victim.doubts
    victim.judge()


@pytest.mark.covers("D-11")
def test_run_goes_on_by_itself_when_the_lock_ends_in_time(tmp_path: Path) -> None:
    victim = Victim(tmp_path, "bare")
    assert victim.end(victim.start("briefly", program="outage")) == 0
    assert _met(victim) == []
    assert not victim.doubts
    victim.judge()
