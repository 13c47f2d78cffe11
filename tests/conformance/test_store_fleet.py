from __future__ import annotations

import pytest

from holdfast.testing.conformance.fleet import FleetSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03")
class TestFleet(FleetSuite):
    pass
