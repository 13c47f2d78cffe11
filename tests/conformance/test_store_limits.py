from __future__ import annotations

import pytest

from holdfast.testing.conformance.limits import LimitChangeSuite, LimitSuite, RateSuite


@pytest.mark.covers("FLEET-WORK-03")
class TestGates(LimitSuite):
    pass


@pytest.mark.covers("FLEET-WORK-04")
class TestRates(RateSuite):
    pass


@pytest.mark.covers("FLEET-WORK-03")
class TestGateChanges(LimitChangeSuite):
    pass
