from __future__ import annotations

import pytest

from holdfast.testing.conformance.projections import ProjectionSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "CORE-STORE-07")
class TestProjections(ProjectionSuite):
    pass
