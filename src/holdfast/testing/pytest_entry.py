"""The plugin that pytest finds by its entry point: the fixtures `holdfast`, `holdfast_clock` and
`holdfast_human`, and the option `--holdfast-crash`.

pytest imports it in every run of an environment that has Holdfast, so it loads nothing before a test uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast
    from holdfast.testing.clock import FakeClock
    from holdfast.testing.human import Human

OPTION = "--holdfast-crash"
INSTANCE = "holdfast"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("holdfast").addoption(
        OPTION,
        action="store_true",
        help="repeat each test that uses the fixture `holdfast`: kill its runs once at each crash point that "
        "they pass, resume them, and demand the same results",
    )


@pytest.fixture
def holdfast_clock() -> FakeClock:
    """A clock that jumps over waits; otherwise only the test advances it."""
    from holdfast.testing.clock import FakeClock

    return FakeClock(auto=True)


@pytest.fixture
def holdfast(request: pytest.FixtureRequest, holdfast_clock: FakeClock) -> Iterator[Holdfast]:
    """A Holdfast instance in memory, on that clock. It ends with the test and needs no closing."""
    from holdfast.app.holdfast import Holdfast

    instance = Holdfast("memory:", clock=holdfast_clock)
    if not request.config.getoption(OPTION):
        yield instance
        return
    from holdfast.testing.crash_trials import watched

    item = cast("pytest.Item", request.node)  # pyright: ignore[reportUnknownMemberType]
    with watched(item, instance, holdfast_clock):
        yield instance


@pytest.fixture
def holdfast_human(holdfast: Holdfast, holdfast_clock: FakeClock) -> Iterator[Human]:
    """A simulated person. A planned answer that was never used fails the test."""
    from holdfast.testing.human import Human

    person = Human(holdfast, holdfast_clock)
    yield person
    assert not person.promised, f"{len(person.promised)} planned answers were not used"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not item.config.getoption(OPTION) or INSTANCE not in getattr(item, "fixturenames", ()):
        return None
    from holdfast.testing.crash_trials import run_trials

    run_trials(item, nextitem)
    return True
