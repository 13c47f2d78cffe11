"""The server's time as a process reckons it, when answers are late and clocks are set."""

from __future__ import annotations

import pytest

from holdfast.store.sql import server_clock as clock

SECOND = 1_000_000


class Machine:
    """A machine whose time passes when told, and a server that is ahead of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passed, self.ahead = 0, 50 * SECOND
        monkeypatch.setattr(clock, "_monotonic", lambda: self.passed)
        self.clock = clock.ServerClock(None)

    def ask(self, *, there: int, back: int) -> None:
        """The question takes `there` microseconds, the answer `back`."""
        heard = self.clock.asking()
        self.passed += there
        said = self.passed + self.ahead
        self.passed += back
        heard(said)

    @property
    def wrong(self) -> int:
        return abs(self.clock.now() - (self.passed + self.ahead))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.mark.covers("FLEET-PG-09")
def test_first_answer_counts_however_late_it_is(machine: Machine) -> None:
    machine.ask(there=0, back=4 * SECOND)
    assert machine.wrong == 2 * SECOND


@pytest.mark.covers("FLEET-PG-09")
def test_late_answer_does_not_spoil_what_a_quick_one_said(machine: Machine) -> None:
    machine.ask(there=500, back=500)
    machine.ask(there=0, back=4 * SECOND)
    assert machine.wrong == 0
    machine.ask(there=100, back=300)
    assert machine.wrong <= 100


@pytest.mark.covers("FLEET-PG-09")
def test_answer_counts_when_the_quick_one_has_grown_old(machine: Machine) -> None:
    machine.ask(there=500, back=500)
    machine.passed += 3600 * SECOND
    machine.ahead += SECOND  # the server's clock runs a little faster
    machine.ask(there=50_000, back=50_000)
    assert machine.wrong <= 50_000


@pytest.mark.covers("FLEET-PG-09")
def test_answer_counts_when_another_server_answers(machine: Machine) -> None:
    machine.ask(there=500, back=500)
    machine.ahead -= 30 * SECOND
    machine.ask(there=0, back=2 * SECOND)
    assert machine.wrong <= SECOND
