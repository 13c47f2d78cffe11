from __future__ import annotations

import pytest

from holdfast.testing.conformance.health import HealthSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03")
class TestHealth(HealthSuite):
    pass
