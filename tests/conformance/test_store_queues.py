from __future__ import annotations

import pytest

from holdfast.testing.conformance.queues import QueueRaceSuite, QueueSuite


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "CORE-STORE-07")
class TestQueues(QueueSuite):
    pass


class TestQueueRaces(QueueRaceSuite):
    pass


@pytest.mark.soak
@pytest.mark.timeout(600)
class TestManyQueueRaces(QueueRaceSuite):
    races = 200
