"""Ids of traces and spans are derived from those of runs: all processes agree without communication.

A trace id is a digest of the run's id: not all bits of a UUID are random, and samplers use the bits of the
trace id.
"""

from __future__ import annotations

from contextvars import ContextVar
from hashlib import blake2b

Key = tuple[str, str, int]
"""(scope, node, visit): one step of a run."""


def trace_id_of(run: str) -> int:
    """The trace of a run; `f"{trace_id_of(run):032x}"` is what tools show."""
    return _number(16, "run", run)


def root_of(run: str) -> int:
    return _number(8, "root", run)


def segment_of(run: str, term: int) -> int:
    return _number(8, "segment", run, str(term))


def step_of(run: str, key: Key) -> int:
    scope, node, visit = key
    return _number(8, "step", run, scope, node, str(visit))


def part_of(run: str, key: Key, part: str) -> int:
    """A call or a wait inside a step."""
    scope, node, visit = key
    return _number(8, "part", run, scope, node, str(visit), part)


def _number(size: int, *parts: str) -> int:
    # A separator that no name contains, so that ("a", "bc") and ("ab", "c") differ.
    text = "\0".join(parts).encode()
    # Zero is not a valid id in OpenTelemetry.
    return int.from_bytes(blake2b(text, digest_size=size).digest(), "big") or 1


wanted: ContextVar[tuple[int, int]] = ContextVar("trace and span of the next span")


class DerivedIds:
    """Gives the next span the ids in `wanted`."""

    def generate_trace_id(self) -> int:
        return wanted.get()[0]

    def generate_span_id(self) -> int:
        return wanted.get()[1]

    # A digest is as evenly distributed as a random number, which is what samplers rely on.
    def is_trace_id_random(self) -> bool:
        return True
