"""A full disk and a locked database in the middle of a run: typed errors, nothing lost, the run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.judge import Victim


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


@pytest.mark.covers("D-11")
def test_run_goes_on_by_itself_when_the_lock_ends_in_time(tmp_path: Path) -> None:
    victim = Victim(tmp_path, "bare")
    assert victim.end(victim.start("briefly", program="outage")) == 0
    assert _met(victim) == []
    assert not victim.doubts
    victim.judge()
