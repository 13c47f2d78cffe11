"""Pauses between tries."""

from __future__ import annotations

from itertools import islice

import pytest

from holdfast.types.backoff import Backoff, BackoffKind


@pytest.mark.covers("PLAIN-SAME-07")
def test_pauses_double_up_to_the_longest() -> None:
    assert list(islice(Backoff(0.1, 0.5).pauses(), 4)) == [0.1, 0.2, 0.4, 0.5]
    assert list(islice(Backoff(2.0, 9.0, factor=1.5).pauses(), 5)) == [2.0, 3.0, 4.5, 6.75, 9.0]


def test_chance_takes_at_most_the_jitter_from_a_pause() -> None:
    backoff = Backoff(1.0, 8.0, jitter=0.5)
    assert [backoff.pause(10, chance) for chance in (0.0, 0.5, 1.0)] == [8.0, 6.0, 4.0]


def test_a_pause_is_bounded_after_any_number_of_tries() -> None:
    assert Backoff(0.25, 20.0).pause(100_000) == 20.0


def test_pauses_are_equal_or_grow_evenly_when_the_policy_says_so() -> None:
    fixed, linear = Backoff(2.0, 9.0, kind=BackoffKind.fixed), Backoff(2.0, 7.0, kind=BackoffKind.linear)
    assert list(islice(fixed.pauses(), 3)) == [2.0, 2.0, 2.0]
    assert list(islice(linear.pauses(), 5)) == [2.0, 4.0, 6.0, 7.0, 7.0]


def test_chance_spreads_a_pause_to_both_sides() -> None:
    backoff = Backoff(8.0, None, spread=0.5)
    assert [backoff.pause(1, chance) for chance in (0.0, 0.5, 1.0)] == [4.0, 8.0, 12.0]
