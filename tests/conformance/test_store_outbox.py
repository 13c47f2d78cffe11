from __future__ import annotations

import pytest

from holdfast.testing.conformance.outbox import OutboxSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "CORE-STORE-07")
class TestOutbox(OutboxSuite):
    pass
