"""The rules of the specification, each with a pipeline that breaks it and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import pytest

from holdfast.errors import PipelineInvalidError
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Link, Pipeline, Stage
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.rules import FIDELITIES
from holdfast.frontends.dot.validate import validate, validate_or_raise

ENDS = "start [shape=Mdiamond]; exit [shape=Msquare];"


def told(body: str, **options: Any) -> list[Diagnostic]:
    return validate(parse(f"digraph P {{\n{body}\n}}", path="p.dot").pipeline, **options)


def one(body: str, rule: str, severity: DiagnosticSeverity, **options: Any) -> Diagnostic:
    """The only diagnostic of that rule; it has all that one must have."""
    (found,) = [each for each in told(body, **options) if each.rule == rule]
    assert found.severity is severity
    assert found.message
    assert found.place.line >= 1
    assert found.place.column >= 1
    assert found.path == "p.dot"
    return found


def rules(body: str, **options: Any) -> set[str]:
    return {each.rule for each in told(body, **options)}


ERROR, WARNING = DiagnosticSeverity.error, DiagnosticSeverity.warning
CLEAN = f'{ENDS} a [prompt="x"]; start -> a -> exit'


def test_a_good_pipeline_has_nothing_to_say() -> None:
    assert told(CLEAN) == []


@pytest.mark.covers("AT-36")
def test_a_pipeline_without_a_start_is_an_error() -> None:
    found = one('exit [shape=Msquare]; a [prompt="x"]; a -> exit', "start_node", ERROR)
    assert "Mdiamond" in found.fix


@pytest.mark.covers("AT-37")
def test_two_starts_are_an_error_that_names_them() -> None:
    found = one(f"{ENDS} begin [shape=Mdiamond]; start -> exit; begin -> exit", "start_node", ERROR)
    assert "found 2: start and begin" in found.message
    assert found.node_id == "begin"


@pytest.mark.covers("AT-38")
@pytest.mark.parametrize("name", ["start", "Start"])
def test_a_stage_called_start_is_one_without_a_shape(name: str) -> None:
    assert "start_node" not in rules(f"{name}; exit; {name} -> exit")
    assert "start_node" not in rules(f"node [shape=box]; {name}; exit [shape=Msquare]; {name} -> exit")


@pytest.mark.covers("AT-38")
def test_a_stage_called_start_with_another_shape_is_none_beside_a_real_one() -> None:
    body = 'begin [shape=Mdiamond]; start [shape=box, prompt="x"]; exit; begin -> start -> exit'
    assert told(body) == []


@pytest.mark.covers("AT-39")
def test_a_pipeline_has_exactly_one_exit() -> None:
    one('start [shape=Mdiamond]; a [prompt="x"]; start -> a', "terminal_node", ERROR)
    for name in ("exit", "end"):
        assert "terminal_node" not in rules(f"start; {name}; start -> {name}")


@pytest.mark.covers("AT-40")
def test_two_exits_are_an_error_that_says_found_2() -> None:
    found = one(f"{ENDS} other [shape=Msquare]; start -> exit; start -> other", "terminal_node", ERROR)
    assert "found 2" in found.message


@pytest.mark.covers("AT-41", "AT-A5")
def test_an_orphan_is_an_error_that_says_unreachable_and_its_id() -> None:
    found = one(f'{CLEAN}; lost [prompt="x"]; lost -> exit', "reachability", ERROR)
    assert "unreachable" in found.message
    assert "lost" in found.message
    assert found.node_id == "lost"


@pytest.mark.covers("AT-41")
def test_a_stage_that_only_a_jump_leads_to_is_no_orphan() -> None:
    body = f'{ENDS} a [prompt="x", retry_target=mend]; mend [prompt="y"]; start -> a -> exit; mend -> a'
    assert "reachability" not in rules(body)
    gated = f'graph [retry_target=mend]; {ENDS} a [prompt="x"GATE]; mend [prompt="y"]; mend -> a'
    gated += "; start -> a -> exit"
    assert "reachability" in rules(gated.replace("GATE", ""))
    assert "reachability" not in rules(gated.replace("GATE", ", goal_gate=true"))


@pytest.mark.covers("AT-42", "AT-A4")
def test_an_undeclared_target_is_a_warning_and_an_error_when_strict() -> None:
    body = f"{ENDS} start -> ghost -> exit"
    found = one(body, "edge_target_exists", WARNING)
    assert found.node_id == "ghost"
    assert "box" in found.message
    one(body, "edge_target_exists", ERROR, strict=True)


@pytest.mark.covers("AT-42")
def test_an_edge_of_a_built_pipeline_to_nowhere_is_an_error() -> None:
    stages = {name: Stage(id=name) for name in ("start", "exit")}
    links = (Link(source="start", target="exit"), Link(source="start", target="gone"))
    found = validate(Pipeline(name="P", stages=stages, links=links))
    assert [(each.rule, each.edge) for each in found if each.severity is ERROR] == [
        ("edge_target_exists", ("start", "gone"))
    ]


@pytest.mark.covers("AT-43")
def test_the_start_has_no_incoming_edge() -> None:
    found = one(f"{CLEAN}\na -> start", "start_no_incoming", ERROR)
    assert found.edge == ("a", "start")
    assert found.place.line == 3


@pytest.mark.covers("AT-44")
def test_the_exit_has_no_outgoing_edge() -> None:
    assert one(f"{CLEAN}; exit -> a", "exit_no_outgoing", ERROR).edge == ("exit", "a")


@pytest.mark.covers("AT-45", "AT-93")
@pytest.mark.parametrize(
    ("condition", "says"),
    [("outcome==success", "=="), ("outcome=", "literal"), ("=x", "key"), ("outcome=a || outcome=b", "||"),
     ("context.n > 3", ">"), ("context.log contains x", "contains")],
)  # fmt: skip
def test_a_condition_that_cannot_be_read_is_an_error_at_its_place(condition: str, says: str) -> None:
    body = f'{ENDS} a [prompt="x"]; start -> a\na -> exit [label="go", condition="{condition}"]'
    found = one(body, "condition_syntax", ERROR)
    assert says in found.message
    assert "column" in found.message
    assert (found.edge, found.place.line, found.place.column) == (("a", "exit"), 3, 24)


@pytest.mark.covers("AT-93")
def test_a_graph_may_ask_for_extended_conditions() -> None:
    body = CLEAN + '; a -> exit [condition="outcome=fail || context.n > 3"]'
    assert "condition_syntax" in rules(body)
    assert "condition_syntax" not in rules(f"graph [conditions=extended]; {body}")


@pytest.mark.covers("AT-46")
def test_a_stylesheet_that_cannot_be_read_is_an_error() -> None:
    found = one(f'graph [model_stylesheet="box llm_model"]; {CLEAN}', "stylesheet_syntax", ERROR)
    assert found.place.line == 2


@pytest.mark.covers("AT-47")
def test_a_type_that_no_handler_has_is_a_warning() -> None:
    body = f'{ENDS} a [type="my.own", prompt="x"]; start -> a -> exit'
    found = one(body, "type_known", WARNING)
    assert "my.own" in found.message
    assert "codergen" in found.message
    assert "type_known" not in rules(body, known_types={"my.own", "codergen"})


@pytest.mark.covers("AT-48")
@pytest.mark.parametrize(
    "where",
    ["graph [default_fidelity=WORD]", "a [fidelity=WORD]", "start -> exit [fidelity=WORD]"],
)
def test_a_fidelity_that_is_none_is_a_warning_wherever_it_stands(where: str) -> None:
    one(f"{CLEAN}; {where.replace('WORD', 'vague')}", "fidelity_valid", WARNING)
    for mode in FIDELITIES:
        assert "fidelity_valid" not in rules(f"{CLEAN}; {where.replace('WORD', mode)}")


@pytest.mark.covers("AT-49")
@pytest.mark.parametrize("where", ["graph", "a"])
@pytest.mark.parametrize("key", ["retry_target", "fallback_retry_target"])
def test_a_retry_target_that_is_no_stage_is_a_warning(where: str, key: str) -> None:
    found = one(f"{CLEAN}; {where} [{key}=gone]", "retry_target_exists", WARNING)
    assert "gone" in found.message
    assert "retry_target_exists" not in rules(f"{CLEAN}; {where} [{key}=a]")


@pytest.mark.covers("AT-50")
def test_a_goal_gate_without_a_way_back_is_a_warning() -> None:
    gate = f"{CLEAN}; a [goal_gate=true]"
    assert one(gate, "goal_gate_has_retry", WARNING).node_id == "a"
    for way in ("a [retry_target=a]", "a [fallback_retry_target=a]", "graph [retry_target=a]"):
        assert "goal_gate_has_retry" not in rules(f"{gate}; {way}")


@pytest.mark.covers("AT-51")
def test_a_model_stage_without_prompt_and_label_is_a_warning() -> None:
    bare = f"{ENDS} a; start -> a -> exit"
    assert one(bare, "prompt_on_llm_nodes", WARNING).node_id == "a"
    assert "prompt_on_llm_nodes" not in rules(f"{bare}; a [label=Plan]")
    assert "prompt_on_llm_nodes" not in rules(f"{bare}; a [shape=diamond]")


class NoTodo:
    name = "no_todo"

    def apply(self, graph: Pipeline) -> Iterable[Diagnostic]:
        for stage in graph.stages.values():
            if "TODO" in stage.prompt:
                yield Diagnostic(rule=self.name, severity=ERROR, message="unfinished", node_id=stage.id)


class Broken:
    name = "broken"

    def apply(self, graph: Pipeline) -> Iterable[Diagnostic]:
        raise RuntimeError("oops")


@pytest.mark.covers("AT-52")
def test_validate_tells_everything_at_once() -> None:
    found = rules('a -> b [condition="x=="]; b [type=odd, fidelity=none]')
    assert {"start_node", "terminal_node", "condition_syntax", "type_known", "fidelity_valid"} <= found


@pytest.mark.covers("AT-53")
def test_validate_or_raise_raises_for_errors_only_and_lists_them_all() -> None:
    odd = parse(f"digraph P {{ {ENDS} a; start -> a -> exit }}").pipeline
    assert [each.rule for each in validate_or_raise(odd)] == ["prompt_on_llm_nodes"]
    with pytest.raises(PipelineInvalidError) as caught:
        validate_or_raise(parse("digraph Bad { a -> b }").pipeline)
    assert "Bad has 2 errors" in str(caught.value)
    assert "[start_node]" in str(caught.value)
    assert "[terminal_node]" in str(caught.value)
    given = caught.value.facts["diagnostics"]
    assert isinstance(given, tuple)
    assert len(given) > 2


@pytest.mark.covers("AT-54")
def test_extra_rules_are_asked_after_the_others() -> None:
    body = f'{ENDS} a [prompt="TODO"]; start -> a -> exit; lost'
    assert [each.rule for each in told(body, extra_rules=[NoTodo()])][-1] == "no_todo"
    pipeline = parse(f"digraph P {{ {CLEAN} }}").pipeline
    assert validate(pipeline, [NoTodo()]) == []


@pytest.mark.covers("AT-54")
def test_a_rule_that_breaks_is_an_error_and_hides_nothing() -> None:
    found = told(f'{ENDS} a [prompt="TODO"]; start -> a -> exit', extra_rules=[Broken(), NoTodo()])
    assert [(each.rule, each.severity) for each in found] == [("broken", ERROR), ("no_todo", ERROR)]
    assert "oops" in found[0].message


def _large(stages: int) -> Pipeline:
    lines = [
        f'n{i} [prompt="p{i}, sets k{i}"]; n{i} -> n{i + 1} [condition="context.k{i}=x"];'
        for i in range(stages)
    ]
    lines += [f"n{i} -> exit;" for i in range(stages + 1)]
    text = f'digraph P {{ {ENDS} start -> n0; n{stages} [prompt="p"]; {" ".join(lines)} }}'
    return parse(text).pipeline


def _calls(pipeline: Pipeline) -> int:
    """How many functions are called to check it: that grows as the time does, and is the same every time."""
    counted = 0

    def count(_frame: Any, event: str, _about: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        found = validate(pipeline)
    finally:
        sys.setprofile(None)
    assert found == []
    return counted


def test_ten_times_the_stages_take_ten_times_the_work() -> None:
    _calls(_large(200))  # conditions that are alike are read once
    few, many = _calls(_large(200)), _calls(_large(2_000))
    assert many < 15 * few  # with room for what no longer fits into the cache
