"""Fixtures for pytest: `clock`, `hf` and `human`.

Load them in a conftest.py: `pytest_plugins = ["holdfast.testing.plugin"]`.

They are ordinary functions, so they work with any async plugin, and with `run_sync`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.app.holdfast import Holdfast
from holdfast.testing.clock import FakeClock
from holdfast.testing.human import Human


def pytest_configure(config: pytest.Config) -> None:
    # The conformance suite uses this marker; with strict markers pytest refuses unknown ones.
    config.addinivalue_line("markers", "covers(*codes): the ledger lines that a test proves")


@pytest.fixture
def clock() -> FakeClock:
    """A clock that jumps over waits; otherwise only the test advances it."""
    return FakeClock(auto=True)


@pytest.fixture
def hf(clock: FakeClock) -> Holdfast:
    """A Holdfast instance in memory, on that clock. It ends with the test and needs no closing."""
    return Holdfast("memory:", clock=clock)


@pytest.fixture
def human(hf: Holdfast, clock: FakeClock) -> Iterator[Human]:
    """A simulated person. A planned answer that was never used fails the test."""
    person = Human(hf, clock)
    yield person
    assert not person.promised, f"{len(person.promised)} planned answers were not used"
