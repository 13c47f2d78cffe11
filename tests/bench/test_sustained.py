from __future__ import annotations

from bench import sustained
from tests.services import postgres


def test_steps_are_counted_in_each_tenth_of_the_time():
    took = sustained.measured(postgres.server(), workers=1, seconds=4)
    assert len(took.windows) == sustained.WINDOWS
    assert sum(took.windows) > 0
    assert took.left > 0
    assert took.stored > 0
