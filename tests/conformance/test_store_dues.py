from __future__ import annotations

import pytest

from holdfast.testing.conformance.dues import DueSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "CORE-STORE-07")
class TestDues(DueSuite):
    pass
