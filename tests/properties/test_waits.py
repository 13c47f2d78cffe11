"""How long a retry waits: tables, bounds, and the same answer each time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine.retry import retry_delay
from holdfast.model.graph import BackoffKind, RetryPolicy

SECOND = 1_000_000


@pytest.mark.covers("CORE-FLOW-24", "CORE-FLOW-25")
@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (BackoffKind.fixed, [2, 2, 2, 2, 2, 2]),
        (BackoffKind.linear, [2, 4, 6, 8, 10, 10]),
        (BackoffKind.exponential, [2, 4, 8, 10, 10, 10]),
    ],
)
def test_retry_waits_by_its_table_when_there_is_a_cap_of_ten_seconds(
    backoff: BackoffKind, waits: list[int]
) -> None:
    policy = RetryPolicy(attempts=9, backoff=backoff, delay=2 * SECOND, cap=10 * SECOND)
    assert [retry_delay(policy, n) // SECOND for n in range(1, 7)] == waits


policies = st.builds(
    RetryPolicy,
    attempts=st.integers(2, 100),
    backoff=st.sampled_from(BackoffKind),
    delay=st.integers(0, 600 * SECOND),
    cap=st.none() | st.integers(0, 3600 * SECOND),
    jitter=st.floats(0, 1),
)


@pytest.mark.covers("CORE-FLOW-25", "D-5")
@given(policy=policies, failures=st.integers(1, 200), who=st.text(max_size=5))
@settings(max_examples=200)
def test_retry_stays_within_its_jitter_when_it_waits(policy: RetryPolicy, failures: int, who: str) -> None:
    calm = RetryPolicy(attempts=policy.attempts, backoff=policy.backoff, delay=policy.delay, cap=policy.cap)
    whole = retry_delay(calm, failures, who)
    wait = retry_delay(policy, failures, who)
    assert isinstance(wait, int)
    assert int(whole * (1 - policy.jitter)) - 1 <= wait <= whole
    assert policy.cap is None or wait <= policy.cap
    assert wait == retry_delay(policy, failures, who)


@pytest.mark.covers("D-5")
def test_retry_spreads_its_waits_when_many_runs_fail_together() -> None:
    policy = RetryPolicy(attempts=3, delay=100 * SECOND, cap=None, jitter=0.5)
    waits = {retry_delay(policy, 1, f"run {i}", "", "node", 1) for i in range(200)}
    assert len(waits) > 190
    assert max(waits) - min(waits) > 40 * SECOND
