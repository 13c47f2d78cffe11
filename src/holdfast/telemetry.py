"""Crash points and logging: what can be watched, and where a test may pull the plug.

Crash points are named and inert in production (D-39). A test process arms one with `arm`, or by
`HOLDFAST_CRASH=name` / `name:3` (the third time it is reached); reaching it ends the process at
once, with no clean-up, as a power cut would.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

log: Final = logging.getLogger("holdfast")


class Where(NamedTuple):
    """Which attempt of which node is being made."""

    run: str
    flow: str
    scope: str
    node: str
    visit: int
    attempt: int
    seq: int  # of the record that started it


here: ContextVar[Where | None] = ContextVar("the node whose handler runs here", default=None)

# What wraps the function of each sub-step: called with it, the step and its idempotency key. Else empty.
on_substep: Final[list[Callable[[Callable[..., Any], Any, str | None], Callable[..., Any]]]] = []

CRASH_POINTS: Final = (
    "after_claim",
    "after_intent",
    "after_handler",
    "after_substep",
    "after_blob_put",
    "inside_settle",
    "after_settle",
    "before_park",
    "after_park",
    "after_answer",
    "after_timer_fired",
    "after_publish",
    "during_backoff",
    "inside_snapshot",
    "inside_prune",
    "inside_fork",
    "lease_lost_mid_handler",
    "lease_lost_before_commit",
)

_armed: dict[str, Callable[[], None]] = {}


def crashpoint(name: str) -> None:
    """Marks a place where dying must do no harm."""
    if _armed:
        hit = _armed.get(name)
        if hit is not None:
            hit()


def arm(name: str, hit: Callable[[], None] | None = None, *, nth: int = 1) -> None:
    """From now on the nth time that `name` is reached calls `hit` (default: the process dies)."""
    if name not in CRASH_POINTS:
        raise ValueError(f"{name!r} is not a crash point; they are: {', '.join(CRASH_POINTS)}")
    action = hit or _die
    left = nth

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            action()

    arm_each(name, count)


def arm_each(name: str, hit: Callable[[], None]) -> None:
    """From now on `hit` is called each time that `name` is reached."""
    _armed[name] = hit


def disarm(name: str | None = None) -> None:
    """Without a name: all of them."""
    if name is None:
        _armed.clear()
    else:
        _armed.pop(name, None)


def _die() -> None:
    os._exit(137)


def _arm_from_environment() -> None:
    wanted = os.environ.get("HOLDFAST_CRASH")
    if wanted:
        name, _, nth = wanted.partition(":")
        arm(name, nth=int(nth or 1))


_arm_from_environment()
