from __future__ import annotations

from holdfast.testing.conformance.losing import LosingSuite


class TestLosing(LosingSuite):
    pass
