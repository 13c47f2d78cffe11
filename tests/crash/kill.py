"""Killing a victim again and again, at random moments of its life."""

from __future__ import annotations

import random
import select
import signal
import time
from pathlib import Path

import msgspec

from tests.crash.judge import Process, Victim

# Those that take long enough to be hit, and those whose effects could happen twice.
FLOWS = (
    "bare",
    "keyed",
    "split",
    "loop",
    "map",
    "sub",
    "script",
    "branches",
    "paced",
    "retry",
    "timer",
    "emit",
    "big",
    "hold",
    "strict",
)


class Toll(msgspec.Struct):
    flow: str
    kills: int
    doubts: int
    processes: int


def kill_until_done(
    folder: Path, dice: random.Random, *, kills: int, flow: str | None = None, store: str = "sqlite"
) -> Toll:
    """One process after the other lives the run; up to `kills` of them are killed. Judged at the end."""
    victim = Victim(folder, flow or dice.choice(FLOWS), store)
    codes: list[int] = []
    while not codes or codes[-1] != 0:
        process = victim.start(VICTIM_LINGER="0.01")
        if len(codes) < kills:
            _kill_soon(process, dice)
        codes.append(victim.end(process))
    victim.judge()
    return Toll(victim.name, codes.count(-signal.SIGKILL), victim.doubts, len(codes))


def _kill_soon(process: Process, dice: random.Random) -> None:
    """Some time after its first word: before, it only loads its code."""
    assert process.stdout is not None
    select.select([process.stdout], [], [], 20)
    time.sleep(dice.uniform(0, 0.08))
    process.send_signal(signal.SIGKILL)
