from __future__ import annotations

import pytest

from holdfast.testing.conformance.moving import MovingSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "D-36")
class TestMoving(MovingSuite):
    pass
