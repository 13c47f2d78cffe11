"""Steps a second that one PostgreSQL server keeps up for ten minutes, while retention deletes ended runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench import sustained
from bench.server import server
from tests.services import absent

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


def test_throughput_does_not_fall_when_retention_deletes_for_ten_minutes(
    record_property: Callable[[str, float], None],
) -> None:
    """How many steps it is depends on the machine; that they do not become fewer does not."""
    with server() as found:
        if found is None:
            absent("postgres", "no server to measure on")
        took = sustained.measured(found, workers=2, seconds=600)
    record_property("soak:sustained, steps a second, second minute", round(took.windows[1]))
    record_property("soak:sustained, steps a second, last minute", round(took.windows[-1]))
    record_property("soak:sustained, bytes stored at the end", took.stored)
    assert took.ratio >= 0.9
