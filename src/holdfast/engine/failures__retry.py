"""When a failed attempt is tried again, and when. The wake time is computed once and stored (D-5)."""

from __future__ import annotations

from hashlib import sha256

from holdfast.model.graph import Backoff, RetryPolicy


def wait_before(policy: RetryPolicy, failures: int, *identity: str | int) -> int:
    """Microseconds before the next attempt, after this many failures (from 1).

    Jitter is a hash of who is retrying, so that replaying a run gives the same times.
    """
    grown = {
        Backoff.fixed: policy.delay,
        Backoff.linear: policy.delay * failures,
        Backoff.exponential: int(policy.delay * (policy.factor or 2) ** min(failures - 1, 40)),
    }[policy.backoff]
    wait = grown if policy.cap is None else min(grown, policy.cap)
    if policy.jitter:
        wait = int(wait * (1 - policy.jitter * _share(*identity, failures)))
    if policy.spread:
        wait = int(wait * (1 + policy.spread * (2 * _share(*identity, failures) - 1)))
    return wait


def _share(*identity: str | int) -> float:
    """From 0 to 1, and always the same for the same."""
    raw = sha256("/".join(map(str, identity)).encode()).digest()
    return int.from_bytes(raw[:8], "big") / 2**64
