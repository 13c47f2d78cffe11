from __future__ import annotations

from typing import Any

import pytest

from holdfast.checkpoint.codec import pack, unpack
from holdfast.checkpoint.envelope import decode_packed, encode_packed, pack_envelope
from holdfast.checkpoint.read_without_code import LenientRegistry
from holdfast.checkpoint.registry import TypeRegistry
from holdfast.checkpoint.run_history import History, fold, load_history
from holdfast.model.graph import Edge, Graph, GraphSpec, Node
from holdfast.model.record_bodies import AskedBody, AttemptBody, IntentBody, StepBody, SubstepBody
from holdfast.types.record import Kind, Record
from holdfast.types.value import FrozenDict
from tests.unit.checkpoint.strategies import Point


def graph() -> Graph:
    nodes = tuple(Node(id=name) for name in ("a", "b", "c"))
    edges = (Edge(id="a->b", source="a", target="b"), Edge(id="a->c", source="a", target="c"))
    return Graph(GraphSpec(name="g", nodes=nodes, edges=edges, start=("a",)))


def record(seq: int, kind: Kind, node: str, outcome: str = "success") -> Record:
    return Record(seq, kind, 1000 * seq, 1, node, 1, 1, "", "external", outcome, True, 0, b"", b"")


def told(*parts: tuple[Kind, str, Any]) -> History:
    history = History()
    for seq, (kind, node, body) in enumerate(parts):
        fold(graph(), history, record(seq, kind, node), body)
    return history


@pytest.mark.covers("G-32")
def test_edge_is_pending_until_its_target_shows_in_the_journal() -> None:
    fired = StepBody([], [("F", "", 0, 0), ("F", "", 1, 0), ("S", "", 1, 1), ("S", "", 2, 1)], 5)
    first = told((Kind.step, "a", fired))
    assert first.pending == {"a->b": "b", "a->c": "c"}
    second = told((Kind.step, "a", fired), (Kind.intent, "b", IntentBody(-1, "b", "")))
    assert second.pending == {"a->c": "c"}
    third = told((Kind.step, "a", fired), (Kind.step, "c", StepBody([], [], 1)))
    assert third.pending == {"a->b": "b"}


def test_skipped_node_is_forgotten_when_it_runs_after_all() -> None:
    skipped = told((Kind.step, "a", StepBody([], [("K", "", 2, 0)], 1)))
    assert skipped.skipped == ["c"]
    ran = told(
        (Kind.step, "a", StepBody([], [("K", "", 2, 0)], 1)),
        (Kind.step, "a", StepBody([], [("S", "", 2, 1)], 1)),
    )
    assert ran.skipped == []


def test_retries_are_counted_until_the_node_settles() -> None:
    tries = [(Kind.attempt, "a", AttemptBody("retry"))] * 2
    assert told(*tries).retries == {"a": 2}
    assert told(*tries, (Kind.step, "a", StepBody([], [], 1))).retries == {}


@pytest.mark.covers("G-13")
def test_memory_is_reported_when_sub_steps_used_it() -> None:
    read = SubstepBody("0", "memory.read", [FrozenDict({"traceId": "t", "content": "x", "strength": 0.5})])
    write = SubstepBody("1", "memory.write", FrozenDict({"type": "fact", "content": "y", "scope": "run"}))
    history = told((Kind.substep, "a", read), (Kind.substep, "a", write))
    assert history.reads == [{"traceId": "t", "content": "x", "strength": 0.5}]
    assert history.writes == [{"type": "fact", "content": "y", "scope": "run"}]


def test_damaged_step_is_shown_by_its_columns() -> None:
    history = told((Kind.step, "a", None))
    (shown,) = history.executions
    assert (shown.node, shown.effect, shown.outcome, shown.readable) == ("a", "external", "success", False)


def test_history_is_the_same_after_it_was_stored() -> None:
    asked = AskedBody(
        "h", 0, "approval", "Sure?", [["y", "Y", ""]], None, "normal", FrozenDict(), None, None, "node:"
    )
    history = told(
        (Kind.step, "a", StepBody([("scratch", "x", "set", 1)], [("F", "", 0, 0)], 7)),
        (Kind.asked, "b", asked),
    )
    stored = pack_envelope(encode_packed(pack(history.dump())))
    assert load_history(unpack(decode_packed(stored))) == history


def test_value_of_an_unknown_type_is_shown_as_plain_data_when_the_code_is_missing() -> None:
    stored = pack_envelope(encode_packed(pack(FrozenDict({"at": Point(1, 2)}), TypeRegistry(Point))))
    assert unpack(decode_packed(stored), LenientRegistry()) == {"at": {"x": 1, "y": 2}}
