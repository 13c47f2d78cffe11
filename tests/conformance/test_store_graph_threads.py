from __future__ import annotations

from holdfast.testing.conformance.graph_threads import GraphThreadSuite


class TestGraphThreads(GraphThreadSuite):
    pass
