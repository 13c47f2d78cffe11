"""Properties of whole runs of random graphs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model import snapshot
from tests.properties import checks
from tests.properties.checks import DEEP, EVERYTHING, STEADY, chooser
from tests.properties.graphs import Plan, plans


@pytest.fixture(autouse=True, scope="module")
def short_segments():
    """Lists leave a snapshot when they are longer than this: random runs have no long ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "SEGMENT_ITEMS", 1)
        yield


@pytest.mark.covers("CORE-PROP-01", "CORE-ENGINE-01")
@given(plan=plans(EVERYTHING), data=st.data())
@settings(max_examples=30)
def test_step_decides_the_same_when_it_is_asked_twice(plan: Plan, data: st.DataObject) -> None:
    checks.deterministic(plan, chooser(data))


@pytest.mark.covers("CORE-PROP-03", "D-26")
@given(plan=plans(EVERYTHING), data=st.data())
@settings(max_examples=30)
def test_fold_reaches_the_live_position_when_it_starts_anywhere(plan: Plan, data: st.DataObject) -> None:
    checks.folds(plan, chooser(data))


@pytest.mark.covers("CORE-ENGINE-10")
@given(plan=plans(EVERYTHING), data=st.data())
@settings(max_examples=40)
def test_run_ends_with_every_node_decided_whatever_its_graph(plan: Plan, data: st.DataObject) -> None:
    checks.ends(plan, chooser(data))


@pytest.mark.covers("CORE-PROP-02")
@given(plan=plans(STEADY) | plans(DEEP), data=st.data())
@settings(max_examples=40)
def test_run_ends_the_same_when_it_resumes_from_any_record(plan: Plan, data: st.DataObject) -> None:
    checks.resumes(plan, chooser(data))


@pytest.mark.covers("TOOL-CLI-22")
@given(plan=plans(STEADY) | plans(DEEP), data=st.data())
@settings(max_examples=10)
def test_run_ends_the_same_when_it_stops_at_breakpoints(plan: Plan, data: st.DataObject) -> None:
    checks.stops(plan, chooser(data))


@pytest.mark.covers("CORE-PROP-05", "CORE-ENGINE-08", "D-24")
@given(plan=plans(STEADY) | plans(DEEP), data=st.data())
@settings(max_examples=40)
def test_run_ends_the_same_when_handlers_finish_in_another_order(plan: Plan, data: st.DataObject) -> None:
    checks.order_free(plan, chooser(data))
