"""Runs on a real Temporal server. All of these tests are in one process, so that one server serves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.conftest import address_of
from tests.services import temporal

HERE = "tests/temporal/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(HERE):
            item.add_marker(pytest.mark.xdist_group("temporal"))


@pytest.fixture(scope="session")
def engine() -> str:
    return temporal.server().address()


@pytest.fixture
async def sqlite(tmp_path: Path) -> str:
    return await address_of("sqlite", tmp_path)
