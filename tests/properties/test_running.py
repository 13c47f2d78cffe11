"""Properties of whole runs of random graphs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.graphs import Plan, Taste, plans
from tests.properties.play import Play

ANY = Taste(joins=True, depth=2)
STEADY = Taste(joins=False, depth=1)


def chooser(data: st.DataObject):
    return lambda count: data.draw(st.integers(0, count - 1)) if count > 1 else 0


@given(plan=plans(ANY), data=st.data())
@settings(max_examples=100)
def test_x(plan: Plan, data: st.DataObject) -> None:
    Play(plan, chooser(data), noise=False, twins=True).start().to_end()
