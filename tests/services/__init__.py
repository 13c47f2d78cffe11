"""Real services for tests.

A service that is absent skips its tests. `HOLDFAST_REQUIRE=postgres,mariadb` (set by `.ci/run`) names those
that must be there: their absence is then a failure, so that a green run says what it covered.
"""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def required() -> frozenset[str]:
    names = os.environ.get("HOLDFAST_REQUIRE", "").split(",")
    return frozenset(name.strip() for name in names if name.strip())


def absent(service: str, why: str) -> NoReturn:
    """Ends the current test: as skipped, or as failed where the service is required."""
    if service in required():
        pytest.fail(f"{service} is required by HOLDFAST_REQUIRE but absent: {why}", pytrace=False)
    pytest.skip(f"{service} is absent: {why}")
