"""A machine whose clock is wrong. Imported before anything that reads the time: it patches the clock itself,
so that nothing of ours is asked whether it would like to be deceived."""

from __future__ import annotations

import os
import signal
import time
from typing import Final

VARIABLE: Final = "TORTURE_SKEW"
JUMP: Final = signal.SIGUSR1

_real_ns = time.time_ns
_offset = 0
_drift = 0.0
_began = time.monotonic()


def setting(offset: float, drift: float, jump: float = 0.0) -> dict[str, str]:
    """For a child's environment: seconds ahead of true time, seconds gained in each second, and how far it is
    set when it gets the signal."""
    return {VARIABLE: f"{offset},{drift},{jump}"}


def deceive() -> None:
    """From now on this process's wall clock is as its environment says. Time that passes stays true."""
    global _offset, _drift
    said = os.environ.get(VARIABLE, "0,0,0").split(",")
    offset, _drift, jump = map(float, said)
    _offset = int(offset * 1e9)
    time.time_ns = wrong_ns
    time.time = lambda: wrong_ns() / 1e9

    def jumped(*_signal: object) -> None:
        global _offset
        _offset += int(jump * 1e9)

    signal.signal(JUMP, jumped)


def wrong_ns() -> int:
    return _real_ns() + _offset + int((time.monotonic() - _began) * _drift * 1e9)
