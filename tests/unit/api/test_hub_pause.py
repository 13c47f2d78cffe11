from __future__ import annotations

import pytest

from holdfast.api.live.hub import IDLE, PACE, RETRY_SECONDS, pause_after


def test_one_poll_that_was_held_up_does_not_delay_the_next() -> None:
    assert pause_after([0.001, 0.001, 0.2], idle=False) == PACE
    assert pause_after([0.001, 0.001, 0.2], idle=True) == IDLE


def test_a_store_that_is_slow_each_time_is_polled_less_often() -> None:
    assert pause_after([0.02, 0.03, 0.02], idle=False) == pytest.approx(0.2)
    assert pause_after([0.2], idle=False) == RETRY_SECONDS
