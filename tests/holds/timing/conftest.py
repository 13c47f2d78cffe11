"""A store of each kind that keeps holds, under a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.testing.conformance.kit import StoreKit
from tests.conformance.conftest import KITS


@pytest.fixture(params=("memory", "sqlite", "encrypted"))
async def kit(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StoreKit]:
    kit = KITS[request.param](tmp_path)
    await kit.start()
    yield kit
    await kit.stop()
