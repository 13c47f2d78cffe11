from __future__ import annotations

import pytest

from holdfast.testing.conformance.entities import EntitySuite


@pytest.mark.covers("PLATFORM-ENTITY-01")
class TestEntities(EntitySuite):
    pass
