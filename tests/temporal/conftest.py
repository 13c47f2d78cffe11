"""Runs on a real Temporal server. All of these tests are in one process, so that one server serves them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.conftest import address_of
from tests.services import temporal

HERE = "tests/temporal/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(HERE):
            item.add_marker(pytest.mark.xdist_group("temporal"))
            # The SDK says so where a machine was so busy that an activity was given up before it returned.
            item.add_marker(pytest.mark.filterwarnings("ignore:Cannot find activity to cancel"))


@pytest.fixture(scope="package", autouse=True)
def stopped_afterwards() -> Iterator[None]:
    """A server that nobody uses takes a thirtieth of a core."""
    yield
    temporal.stop()


@pytest.fixture(scope="package")
def engine(stopped_afterwards: None) -> str:
    return temporal.server().address()


@pytest.fixture
async def sqlite(tmp_path: Path) -> str:
    return await address_of("sqlite", tmp_path)
