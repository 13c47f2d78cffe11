from __future__ import annotations

import pytest

from holdfast.testing.conformance.transfer import TransferSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "D-36")
class TestMoving(TransferSuite):
    pass
