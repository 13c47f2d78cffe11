from __future__ import annotations

import pytest

from holdfast.testing.conformance.memories import MemorySuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "CORE-CTX-06")
class TestMemories(MemorySuite):
    pass
