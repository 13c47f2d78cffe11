"""Every story of a run is told of the same `Visit`: there is no second record of what one node did."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_type_hints

import pytest

from holdfast.checkpoint.checkpoint import Checkpoint
from holdfast.checkpoint.run_history import History
from holdfast.checkpoint.visit import Visit
from holdfast.reports.postmortem import Gap, Postmortem
from holdfast.runs.history.story import Story
from holdfast.runs.history.timeline import Timeline
from holdfast.runs.history.visits import Visits

SOURCE = Path(__file__).resolve().parents[3] / "src/holdfast"
PLACE = {"node", "scope", "visit"}
TIMES = {"started_at", "ended_at", "work_us"}
# On the wire, and generated from that: made of a Visit.
WIRE = ("api/schemas", "client")


def fields(node: ast.ClassDef) -> set[str]:
    found = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
    return {each.id for each in found if isinstance(each, ast.Name)}


def records_of_visits() -> list[str]:
    """Classes that say which visit of which node it was, and when or how long."""
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    trees = {
        name: ast.parse(text)
        for name, text in sorted(texts.items())
        if "    visit:" in text and not name.startswith(WIRE)
    }
    nodes = [(name, each) for name, tree in trees.items() for each in ast.walk(tree)]
    classes = [(name, each) for name, each in nodes if isinstance(each, ast.ClassDef)]
    return [f"{name}:{each.name}" for name, each in classes if fields(each) >= PLACE and fields(each) & TIMES]


@pytest.mark.covers("PLAIN-SAME-04")
def test_one_class_records_what_a_visit_of_a_node_did() -> None:
    assert records_of_visits() == ["checkpoint/visit.py:Visit"]


@pytest.mark.covers("PLAIN-SAME-04")
def test_checkpoints_timelines_stories_comparisons_and_spans_are_made_of_visits() -> None:
    # `show` and its checkpoints, the timeline and live views, `diff`, the post-mortem, OpenTelemetry.
    assert get_type_hints(Checkpoint)["executions"] == list[Visit]
    assert get_type_hints(History)["executions"] == list[Visit]
    assert get_type_hints(Timeline)["visits"] is Visits
    assert get_type_hints(Story)["visits"] == list[Visit]
    assert get_type_hints(Postmortem)["chapters"] == list[Visit | Gap]
    for name in ("runs/history/diff.py", "integrations/otel/facts.py"):
        tree = ast.parse((SOURCE / name).read_text("utf-8"))
        imports = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
        assert "Visit" in {
            one.name for each in imports if each.module == "holdfast.checkpoint.visit" for one in each.names
        }
