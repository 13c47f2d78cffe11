from __future__ import annotations

import pytest

from holdfast.testing.conformance.engine_runs import EngineRunSuite


@pytest.mark.covers("TD-38", "TD-37", "TD-21")
class TestEngineRuns(EngineRunSuite):
    pass
