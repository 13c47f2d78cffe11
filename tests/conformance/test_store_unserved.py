from __future__ import annotations

import pytest

from holdfast.testing.conformance.unserved import UnservedSuite


@pytest.mark.covers("CP2-R6")
class TestUnserved(UnservedSuite):
    pass
