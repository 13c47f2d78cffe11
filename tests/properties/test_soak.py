"""The properties of random runs on many and larger graphs; `make soak` runs them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.model import snapshot
from tests.properties import checks
from tests.properties.checks import chooser, shuffler
from tests.properties.graphs import Plan, Taste, plans

WIDE = Taste(joins=True, depth=2, size=9)
STEADY = Taste(joins=False, depth=1, size=9)
DEEP = Taste(joins=False, depth=2, size=4)
patient = settings(suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True, scope="module")
def short_segments():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "SEGMENT_ITEMS", 1)
        yield


@pytest.mark.soak
@given(plan=plans(WIDE), data=st.data())
@patient
def test_step_decides_the_same_for_long(plan: Plan, data: st.DataObject) -> None:
    checks.deterministic(plan, shuffler(data))


@pytest.mark.soak
@given(plan=plans(WIDE), data=st.data())
@patient
def test_fold_reaches_the_live_position_for_long(plan: Plan, data: st.DataObject) -> None:
    checks.folds(plan, shuffler(data))


@pytest.mark.soak
@given(plan=plans(WIDE), data=st.data())
@patient
def test_run_ends_with_every_node_decided_for_long(plan: Plan, data: st.DataObject) -> None:
    checks.ends(plan, shuffler(data))


@pytest.mark.soak
@given(plan=plans(STEADY) | plans(DEEP), data=st.data())
@patient
def test_run_ends_the_same_when_resumed_for_long(plan: Plan, data: st.DataObject) -> None:
    checks.resumes(plan, chooser(data))


@pytest.mark.soak
@given(plan=plans(STEADY) | plans(DEEP), data=st.data())
@patient
def test_run_ends_the_same_in_another_order_for_long(plan: Plan, data: st.DataObject) -> None:
    checks.order_free(plan, shuffler(data))
