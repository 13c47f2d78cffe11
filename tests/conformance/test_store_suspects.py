from __future__ import annotations

import pytest

from holdfast.testing.conformance.suspects import SuspectsSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03")
class TestSuspects(SuspectsSuite):
    pass
