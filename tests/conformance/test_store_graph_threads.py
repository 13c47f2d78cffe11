from __future__ import annotations

import pytest

from holdfast.testing.conformance.graph_threads import GraphThreadSuite


@pytest.mark.covers("IN-13")
class TestGraphThreads(GraphThreadSuite):
    pass
