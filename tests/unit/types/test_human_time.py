"""Durations as people say them."""

from __future__ import annotations

import pytest

from holdfast.types.human_time import human_duration

HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("micros", "said"),
    [
        (-5, "0 ms"),
        (0, "0 ms"),
        (21, "0.02 ms"),
        (1_000, "1 ms"),
        (13_840, "13.8 ms"),
        (999_600, "1 s"),
        (3_210_000, "3.21 s"),
        (59_990_000, "1 min"),
        (245_000_000, "4 min 5 s"),
        (3 * HOUR + 12 * 60_000_000, "3 h 12 min"),
        (51 * HOUR, "2 d 3 h"),
        (48 * HOUR, "2 d"),
    ],
)
def test_a_duration_is_said_in_two_units_at_most(micros: int, said: str) -> None:
    assert human_duration(micros) == said
