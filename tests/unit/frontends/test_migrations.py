"""What a flow says about its versions, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Flow, FlowInvalidError
from holdfast.frontends.python.code import code_fingerprint, compatible_marks
from holdfast.model.fingerprint import encode_graph


def flow_of(**settings: Any) -> Flow:
    flow = Flow("f", effect="read", **settings)
    flow.hold("gate", prompt="Go?", options=["yes"])
    return flow


@pytest.mark.covers("TOOL-VER-01")
def test_a_label_is_part_of_the_version_and_nothing_changes_without_one() -> None:
    plain, one, two = flow_of(), flow_of(version="1"), flow_of(version="2")
    assert len({flow.program().version for flow in (plain, one, two)}) == 3
    assert (plain.program().names, one.program().names) == (
        {plain.program().version},
        {one.program().version, "1"},
    )
    assert "label" not in msgspec.json.decode(encode_graph(plain.program().graph.spec))


@pytest.mark.parametrize("label", ["", "a b", "x@y", "a:b", "a/b"])
@pytest.mark.covers("TOOL-VER-01")
def test_a_label_that_is_no_word_is_refused(label: str) -> None:
    with pytest.raises(FlowInvalidError, match="must be one word"):
        flow_of(version=label).program()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"from_": ""}, "the migration has no source"),
        (
            {"from_": "1", "rename": {"a": "nowhere"}},
            "renames 'a' to 'nowhere', but that node does not exist",
        ),
        ({"from_": "1", "rename": {"a": "gate", "b": "gate"}}, "two nodes are renamed to one"),
        ({"from_": "1", "state": 5}, "neither a function nor a mapping"),
    ],
)
@pytest.mark.covers("TOOL-VER-03", "TOOL-VER-04")
def test_a_migration_that_means_nothing_is_refused_when_the_flow_is_compiled(
    given: dict[str, Any], why: str
) -> None:
    flow = flow_of()
    flow.migrate(**given)
    with pytest.raises(FlowInvalidError, match=why):
        flow.program()


@pytest.mark.covers("TOOL-VER-03")
def test_declaring_a_migration_does_not_make_another_version() -> None:
    plain, declared = flow_of(version="2"), flow_of(version="2")
    declared.migrate("1", rename={"old": "gate"})
    assert plain.program().version == declared.program().version


@pytest.mark.covers("D-34")
def test_compatible_code_is_named_by_function_version_or_mark() -> None:
    def old() -> None: ...

    assert compatible_marks(None) == frozenset()
    assert compatible_marks(old) == {code_fingerprint(old)}
    assert compatible_marks("v1") == {"v1", "v:v1"}
    assert compatible_marks([old, "c1-x"]) == {code_fingerprint(old), "c1-x", "v:c1-x"}
