"""The options of a new run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class StartOptions(TypedDict, total=False):
    """As `runs.create` takes them. `wait`: seconds until it has ended or waits for a person."""

    version: str
    thread: str
    lane: str
    priority: int
    instance_key: str
    deployment: str
    mode: Literal["barrier", "exit", "strict"]
    breaks: Sequence[str]
    wait: float
    idempotency_key: str
