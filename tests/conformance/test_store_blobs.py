from __future__ import annotations

import pytest

from holdfast.testing.conformance.blobs import BlobSuite, FlowSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "CORE-STORE-07")
class TestBlobs(BlobSuite):
    pass


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "CORE-STORE-07")
class TestFlows(FlowSuite):
    pass
