"""Pauses between tries."""

from __future__ import annotations

from itertools import islice

import pytest

from holdfast.types.backoff import Backoff


@pytest.mark.covers("PLAIN-SAME-07")
def test_pauses_double_up_to_the_longest() -> None:
    assert list(islice(Backoff(0.1, 0.5).pauses(), 4)) == [0.1, 0.2, 0.4, 0.5]
    assert list(islice(Backoff(2.0, 9.0, factor=1.5).pauses(), 5)) == [2.0, 3.0, 4.5, 6.75, 9.0]


def test_chance_takes_at_most_the_jitter_from_a_pause() -> None:
    backoff = Backoff(1.0, 8.0, jitter=0.5)
    assert [backoff.pause(10, chance) for chance in (0.0, 0.5, 1.0)] == [8.0, 6.0, 4.0]


def test_a_pause_is_bounded_after_any_number_of_tries() -> None:
    assert Backoff(0.25, 20.0).pause(100_000) == 20.0
