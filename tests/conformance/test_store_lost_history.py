from __future__ import annotations

from holdfast.testing.conformance.lost_history import LostHistorySuite


class TestLosing(LostHistorySuite):
    pass
