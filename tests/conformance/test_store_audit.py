from __future__ import annotations

import pytest

from holdfast.testing.conformance.audit import AuditSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "CORE-STORE-07")
class TestAudit(AuditSuite):
    pass
