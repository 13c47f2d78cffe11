from __future__ import annotations

import pytest

from holdfast.testing.conformance.events import EventSuite, FeedTrimSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "CORE-STORE-07")
class TestEvents(EventSuite):
    pass


@pytest.mark.covers("FLEET-PG-10", "CORE-STORE-02")
class TestFeedTrim(FeedTrimSuite):
    pass
