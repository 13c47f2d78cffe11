"""Fixtures for pytest: `clock`, `house` and `human`.

A conftest.py asks for them by `pytest_plugins = ["holdfast.testing.plugin"]`.

They are ordinary functions, so they serve tests with any async plugin, and tests with `run_sync`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.app.holdfast import Holdfast
from holdfast.testing.clock import FakeClock
from holdfast.testing.human import Human


def pytest_configure(config: pytest.Config) -> None:
    # The conformance suite carries it; another author's pytest would not know it.
    config.addinivalue_line("markers", "covers(*codes): the ledger lines that a test proves")


@pytest.fixture
def clock() -> FakeClock:
    """Stands still, jumps over waits, and moves when the test says so."""
    return FakeClock(auto=True)


@pytest.fixture
def hf(clock: FakeClock) -> Holdfast:
    """A house in memory on that clock. Gone with the test, so there is nothing to close."""
    return Holdfast("memory:", clock=clock)


@pytest.fixture
def human(hf: Holdfast, clock: FakeClock) -> Iterator[Human]:
    """A person who answers. An answer that was promised and never asked for fails the test."""
    person = Human(hf, clock)
    yield person
    assert not person.promised, f"nobody asked for {len(person.promised)} of the promised answers"
