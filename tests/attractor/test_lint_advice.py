"""Rules of our own, and that every diagnostic points somewhere."""

# ruff: noqa: E501  (a pipeline reads best on one line)

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.extra_rules import ADVICE
from holdfast.frontends.dot.handler_kinds import kind_of
from holdfast.frontends.dot.model_choice import model_choice
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.policies import wanted_approvals
from holdfast.frontends.dot.render import render
from holdfast.frontends.dot.rules import RULES
from holdfast.frontends.dot.transforms import prepare

ENDS = "start [shape=Mdiamond]; exit [shape=Msquare];"
GATE = f"{ENDS} ask [shape=hexagon]; start -> ask;"
FAN = f"{ENDS} fan [shape=component]; join [shape=tripleoctagon]; a [label=A]; b [label=B]; start -> fan;"

ANSWERED = f'{GATE} b [label=B]; ask -> b [label="[R] No"]; b -> exit; b -> exit'

THREE = (
    f'{GATE} way [shape=diamond]; a [label=A]; ask -> way [label="[A] Approve"]; ask -> way [label="[R] Reject"]; '
    'ask -> way [label="[L] Later"]; a -> exit;'
)

TWO = f"{GATE} ship [shape=parallelogram, tool_command=ship]; ship -> exit;"

# Each pipeline breaks the rule in front of it: (rule, body, what stands at the place).
SOME = "a [label=A]; b [label=B]; c [label=C]; fan [shape=component]; join [shape=tripleoctagon];"
BROKEN = [
    ("start_node", "exit; a [label=A]; a -> exit", "digraph"),
    ("terminal_node", "start; a [label=A]; start -> a", "a [label"),
    ("reachability", f"{ENDS} start -> exit; lost [label=A]; lost -> exit", "lost"),
    ("edge_target_exists", f"{ENDS} start -> ghost -> exit", "ghost"),
    ("start_no_incoming", f"{ENDS} a [label=A]; start -> a -> exit; a -> start", "a -> start"),
    ("exit_no_outgoing", f"{ENDS} a [label=A]; start -> a -> exit; exit -> a", "exit -> a"),
    ("condition_syntax", f'{ENDS} start -> exit [condition="a=="]', "condition"),
    ("stylesheet_syntax", f'{ENDS} start -> exit; graph [model_stylesheet="{{"]', "model_stylesheet"),
    ("type_known", f"{ENDS} start -> a -> exit; a [label=A, type=odd]", "type"),
    ("fidelity_valid", f"{ENDS} start -> exit [fidelity=odd]", "fidelity"),
    ("retry_target_exists", f"{ENDS} start -> a -> exit; a [label=A, retry_target=gone]", "retry_target"),
    ("goal_gate_has_retry", f"{ENDS} start -> a -> exit; a [label=A, goal_gate=true]", "goal_gate"),
    ("prompt_on_llm_nodes", f"{ENDS} start -> a -> exit; a", "a"),
    ("gate_conditions", f'{GATE} ask -> exit [condition="outcome=success"]', "condition"),
    ("gate_choices", f"{GATE} start -> exit", "ask"),
    ("gate_choices", f'{GATE} ask -> exit [label="[Y] a"]; ask -> exit [label="Y) b"]', 'label="Y)'),
    ("gate_choices", f"{GATE} ask -> exit; ask [human.default_choice=no]", "human.default_choice"),
    ("gate_terms", f"{GATE} ask -> exit; ask [human.excluded=interns]", "human.excluded"),
    ("gate_terms", f'{GATE} ask -> exit; ask [excluded="user:eve, grp:interns"]', "excluded"),
    ("gate_terms", f'{GATE} ask -> exit; ask [human.assignee="grp:finance"]', "human.assignee"),
    ("gate_terms", f'{GATE} ask -> exit; ask [assignee="user:"]', "assignee"),
    ("gate_terms", f'{GATE} ask -> exit; ask [human.escalate="grp:leads"]', "human.escalate"),
    ("gate_terms", f"{GATE} ask -> exit; ask [human.priority=soon]", "human.priority"),
    ("gate_terms", f"{GATE} ask -> exit; ask [reminder=5x]", "reminder"),
    ("gate_branches", f'{FAN} ask [shape=hexagon]; fan -> a -> ask; ask -> join [label="[Y] Yes"]; ask -> join [label="[N] No"]; fan -> b -> join; join -> exit', 'label="[N]'),
    ("gate_defaults", f'{GATE} ask -> exit [label="[A] Approve"]; ask [human.default_choice=A]', "human.default_choice"),
    ("gate_defaults", f'{TWO} ask -> ship [label="[G] Go live"]; ask -> exit [label="[S] Stop"]; ask [human.default_choice=ship]', "human.default_choice"),
    ("gate_defaults", f'{TWO} ask -> ship [label="Yes"]; ask -> exit [label="No"]; ask [retry_target=ship]', "retry_target"),
    ("gate_exchanged", f'{TWO} ask -> exit [label="Yes"]; ask -> ship [label="No"]', 'label="No"'),
    ("gate_exchanged", f'{TWO} ask -> ship [label="Yes"]; ask -> ship [label="No"]', 'label="No"'),
    ("gate_keys", f'{TWO} d [shape=diamond]; ask -> d [label=Approve]; ask -> d [label=Abort]; d -> ship [condition="context.human.gate.selected=A"]; d -> exit', "condition"),
    ("gate_kinds", f"{GATE} ask -> exit; ask [type=tool]", "type=tool"),
    ("gate_branches", f'{FAN} ask [shape=hexagon]; x [label=X]; fan -> a -> ask; ask -> join [label="Yes"]; ask -> x [label="No"]; x -> join; fan -> b -> join; join -> c; c [label=C]; c -> exit', 'label="No"'),
    ("approved_tools", f"{ENDS} start -> a -> exit; a [label=A, tool_approval=true]", "tool_approval"),
    ("guard_places", f"{GATE} ask -> exit; ask [human.timeout=5m]", "human.timeout"),
    ("guard_places", f"{GATE} ask -> exit; ask [on_timeout=exit]", "on_timeout"),
    ("guard_places", f"{GATE} ask -> exit; ask [min_approvals=2]", "min_approvals"),
    ("other_choices", f'{THREE} way -> a [condition="context.human.gate.selected!=R"]; way -> exit', "condition"),
    ("other_choices", f'{THREE} way -> a [condition="context.human.gate.label!=[R] Reject"]; way -> exit', "condition"),
    ("other_choices", f'{THREE} way -> exit [condition="context.human.gate.selected=R"]; way -> a', "way -> a"),
    ("dead_end", f"{ENDS} start -> a; start -> exit; a [label=A]", "a [label"),
    ("no_way_out", f"{ENDS} start -> a -> b -> a; start -> exit; a [label=A]; b [label=B]", "a [label"),
    ("all_conditional", f'{ENDS} start -> a; a [label=A]; a -> exit [condition="outcome=x"]', "a [label"),
    ("condition_keys", f'{ENDS} start -> exit; start -> exit [condition="flag=1"]', "condition"),
    ("condition_names", f'{ENDS} start -> exit; start -> exit [condition="context.flag=1"]', "condition"),
    ("outcome_words", f'{ENDS} start -> exit; start -> exit [condition="outcome=sucess"]', "condition"),
    ("shape_known", f"{ENDS} start -> ask -> exit; ask [label=A, shape=hexgon]", "shape=hexgon"),
    ("shape_known", f"{ENDS} start -> ask -> exit; ask [label=A, shape=Hexagon]", "shape=Hexagon"),
    ("gate_answers", f'{ANSWERED} [condition="context.human.gate.selected=No"]', "condition"),
    ("gate_answers", f'{ANSWERED} [condition="context.human.gate.label!=No"]', "condition"),
    ("gate_answers", f'{ANSWERED} [condition="context.human.gate.selcted=R"]', "condition"),
    ("values_fit", f'{ENDS} start -> a -> exit; a [label=A, goal_gate="context.x=1"]', "goal_gate"),
    ("values_fit", f"{ENDS} start -> a -> exit; a [label=A, timeout=soon]", "timeout"),
    ("values_fit", f"{ENDS} start -> exit [weight=heavy]", "weight"),
    ("values_fit", f"{ENDS} start -> exit; graph [default_max_retries=many]", "default_max_retries"),
    ("values_fit", f"{ENDS} start -> a -> exit; a [label=A, reasoning_effort=extreme]", "reasoning_effort"),
    ("values_fit", f"{ENDS} start -> a -> exit; a [label=A, in_doubt=perhaps]", "in_doubt"),
    ("budgets", f"{ENDS} start -> exit; graph [budget_usd=ten]", "budget_usd"),
    ("budgets", f"{ENDS} start -> a -> exit; a [label=A, budget_time=1h]", "budget_time"),
    ("tool_command", f"{ENDS} start -> a -> exit; a [shape=parallelogram]", "a [shape"),
    ("goal_missing", f'{ENDS} start -> a -> exit; a [prompt="do $goal"]', "prompt"),
    ("provider_known", f"{ENDS} start -> a -> exit; a [label=A, llm_provider=nobody]", "llm_provider"),
    ("agent_known", f"{ENDS} start -> a -> exit; a [label=A, agent=nobody]", "agent"),
    ("agent_known", f"{ENDS} start -> exit; graph [agent_permissions=all]", "agent_permissions"),
    ("agent_model", f"{ENDS} start -> a -> exit; a [label=A, agent=codex, llm_model=claude-x]", "llm_model"),
    ("agent_approval", f"{ENDS} start -> a -> exit; a [label=A, agent=codex, tool_approval=all]", "tool_app"),
    ("output_schema", f'{ENDS} start -> a -> exit; a [label=A, output_schema="{{no"]', "output_schema"),
    ("variables", f'{ENDS} start -> a -> exit; a [prompt="do $ticket"]', "prompt"),
    ("variables", f'{ENDS} start -> a -> exit; a [prompt="do ${{goal}}"]', "prompt"),
    ("prompt_references", f'{ENDS} start -> a -> exit; a [prompt="{{{{stages.gone.notes}}}}"]', "prompt"),
    ("prompt_references", f'{ENDS} start -> a -> exit; a [prompt="{{{{stages.start.odd}}}}"]', "prompt"),
    ("prompt_references", f'{ENDS} start -> a -> b -> exit; a [prompt="{{{{stages.b.notes}}}}"]; b [label=B]',
     "prompt"),
    ("child_dotfile", f"{ENDS} start -> a -> exit; a [shape=house]", "a [shape"),
    ("attribute_known", f'{ENDS} start -> a -> exit; a [label=A, promt="x"]', "promt"),
    ("guard_places", f"{ENDS} start -> exit; graph [goal_gate=true]", "goal_gate"),
    ("guard_places", f"{ENDS} start -> a -> exit; a [label=A, fail_closed=true]", "fail_closed"),
    ("guard_places", f"{GATE} ask -> exit; ask [human.need=2]", "human.need"),
    ("guard_places", f"{GATE} ask -> exit; ask [quorum=2]", "quorum"),
    ("guard_places", f"{GATE} ask -> exit; ask [human.step_up=5m]", "human.step_up"),
    ("workspace_words", f"{FAN} fan -> a -> join; fan -> b -> join; join -> exit; fan [merge=some]", "merge"),
    ("workspace_words", f"{FAN} fan -> a -> join; fan -> b -> join; join -> exit; a [workspace=shared]",
     "workspace"),
    ("workspace_words", f"{FAN} fan -> a -> join; fan -> b -> join; join -> exit; fan [on_conflict=ask]",
     "on_conflict"),
    ("workspace_joins", f"{FAN} fan -> a -> exit; fan -> b -> exit; fan [workspace=worktree]", "workspace=w"),
    ("shared_workspaces", f"{FAN} fan -> a -> join; fan -> b -> join; join -> exit; graph [tools=files]",
     "fan [shape"),
    ("parallel_policies", f"{FAN} fan -> a -> join; fan -> b -> join; join -> exit; fan [join_policy=some]",
     "join_policy"),
    ("parallel_branches", f"{FAN} fan -> a -> join; fan -> b -> join; b -> exit; join -> exit", "fan [shape"),
    ("parallel_branches", f"{FAN} fan -> a -> join; a -> b -> exit; join -> exit", "fan [shape"),
    ("parallel_branches", f"{FAN} fan -> a -> join; fan -> b -> join; join -> exit; a [retry_target=join]",
     "retry_target"),
    ("parallel_branches",
     f"{ENDS} {SOME} start -> a -> fan; fan -> b -> join; b -> a; fan -> c -> join; join -> exit", "b -> a"),
]  # fmt: skip


def told(body: str, **options: Any) -> list[Diagnostic]:
    return list(prepare(f"digraph P {{\n{body}\n}}", path="p.dot", **options).diagnostics)


@pytest.mark.covers("ATTRACTOR-LANG-02")
@pytest.mark.parametrize(("rule", "body", "at"), BROKEN)
def test_a_broken_rule_is_reported_with_line_and_column_of_what_breaks_it(
    rule: str, body: str, at: str
) -> None:
    lines = f"digraph P {{\n{body}\n}}".splitlines()
    found = told(body)
    assert rule in {each.rule for each in found}
    assert all(each.place.line and each.place.column and each.path == "p.dot" for each in found)
    there = [lines[each.place.line - 1][each.place.column - 1 :] for each in found if each.rule == rule]
    assert any(text.startswith(at) for text in there), there


@pytest.mark.covers("ATTRACTOR-LANG-02")
def test_every_rule_is_among_those_that_are_tried() -> None:
    names = {rule.__name__ for rule in (*RULES, *ADVICE)}
    assert names == {rule for rule, _, _ in BROKEN}


def test_every_rule_is_on_its_page_of_the_reference() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "pipeline-rules.md"
    listed = set(re.findall(r"^\| `(\w+)` \|", page.read_text("utf-8"), re.MULTILINE))
    assert {rule.__name__ for rule in (*RULES, *ADVICE)} <= listed


def test_a_diagnostic_says_where_how_bad_what_and_what_to_do() -> None:
    (found,) = [each for each in told(f"{ENDS} start -> a -> exit; a") if each.rule == "prompt_on_llm_nodes"]
    assert re.fullmatch(
        r"p\.dot:2:\d+: warning: stage a has .*\(add prompt.*\) \[prompt_on_llm_nodes\]", str(found)
    )


def severity(rule: str, body: str, **options: Any) -> set[DiagnosticSeverity]:
    return {each.severity for each in told(body, **options) if each.rule == rule}


@pytest.mark.covers("AT-A7")
def test_a_condition_on_the_edge_of_a_gate_is_a_warning() -> None:
    assert severity("gate_conditions", f'{GATE} ask -> exit [condition="outcome=success"]') == {
        DiagnosticSeverity.warning
    }
    assert not severity("gate_conditions", f"{GATE} ask -> exit")


@pytest.mark.covers("AT-A24")
def test_a_dead_end_is_a_warning_and_no_error() -> None:
    assert severity("dead_end", f"{ENDS} start -> a; start -> exit; a [label=A]") == {
        DiagnosticSeverity.warning
    }
    assert not severity("dead_end", f"{ENDS} start -> a -> exit; a [label=A]")


@pytest.mark.covers("AT-A24")
@pytest.mark.parametrize(
    "conditions",
    [
        ("outcome=success", "outcome!=success"),
        ("outcome=success", "outcome=fail"),
        ("context.x=1", "context.x!=1"),
        ("outcome=success", ""),
    ],
)
def test_conditions_that_leave_nothing_out_are_fine(conditions: tuple[str, str]) -> None:
    links = "".join(f'a -> exit [condition="{each}"];' for each in conditions)
    assert not severity("all_conditional", f"{ENDS} start -> a; a [label=A]; {links}")


@pytest.mark.covers("AT-A29")
def test_a_goal_gate_that_is_no_boolean_is_a_warning_and_false() -> None:
    body = f'{ENDS} start -> a -> exit; a [label=A, goal_gate="context.done=true"]'
    found = {each.rule: each for each in told(body)}
    assert found["values_fit"].severity is DiagnosticSeverity.warning
    assert "goal_gate_has_retry" not in found
    assert not prepare(f"digraph P {{ {body} }}").pipeline.stages["a"].flag("goal_gate")
    quoted = f'{ENDS} start -> a -> exit; a [label=A, goal_gate="true", retry_target=a]'
    assert told(quoted) == []


def test_a_gate_may_name_its_default_by_target_key_or_label() -> None:
    links = (
        'ask -> exit [label="[S] Ship"]; ask -> start2 [label="N) Not yet"]; start2 [label=x]; start2 -> exit'
    )
    for choice in ("exit", "S", "ship", "start2", "n", "not yet", "[S] Ship"):
        assert not severity("gate_choices", f'{GATE} {links}; ask [human.default_choice="{choice}"]')


def test_a_key_without_its_prefix_is_a_note_and_an_error_when_strict() -> None:
    body = f'{ENDS} start -> exit; start -> exit [condition="flag=1"]'
    assert severity("condition_keys", body) == {DiagnosticSeverity.info}
    assert severity("condition_keys", body, strict=True) == {DiagnosticSeverity.error}


def test_the_stop_condition_of_a_manager_is_checked_too() -> None:
    body = f'{ENDS} start -> a -> exit; a [shape=house, stack.child_dotfile=x, manager.stop_condition="a=="]'
    assert DiagnosticSeverity.error in severity("condition_syntax", body)


def test_attributes_that_only_drawings_read_are_not_informed_of() -> None:
    body = f"{ENDS} rankdir=LR; start -> exit [color=red, style=dashed]; exit [fillcolor=blue, my_own=1]"
    assert told(body) == []


def test_values_of_any_length_are_informed_of_in_short() -> None:
    long = "x" * 1_000_000
    escaped = r"\\\\" * 4_000
    found = told(
        f'''graph [model_stylesheet="{long} {long}"]; {ENDS} start -> a [condition="{long}=="]; a -> exit
        a [label=A, fidelity="{long}", type="{long}", retry_target="{long}", goal_gate="{long}"]
        start -> exit [condition="k=\\"{escaped}"]'''
    )
    assert {"stylesheet_syntax", "fidelity_valid", "type_known", "values_fit"} <= {
        each.rule for each in found
    }
    assert all(len(str(each)) < 2_000 for each in found)


def test_quotes_that_are_never_closed_cost_no_more_than_their_length() -> None:
    open_quotes = r"\\\\\"" * 1_000
    condition = f'k=\\"{open_quotes}'
    links = "".join(f'a -> exit [label="{i}", condition="{condition}{i}"];' for i in range(100))
    sheet = "box { llm_model: " + open_quotes * 20
    found = told(f'graph [model_stylesheet="{sheet}"]; {ENDS} start -> a; a [label=A]; {links}')
    assert [each.rule for each in found].count("condition_syntax") == 100
    assert "stylesheet_syntax" in {each.rule for each in found}


def test_thousands_of_names_of_somebody_elses_are_not_compared_with_ours() -> None:
    names = ", ".join(f"custom_attribute_{i}=1" for i in range(10_000))
    assert told(f"{ENDS} start -> a -> exit; a [label=A, {'x' * 100_000}=1, {names}]") == []


def test_fan_outs_inside_one_another_are_not_looked_at_for_ever() -> None:
    depth = 400
    links = "".join(
        f"f{i} [shape=component]; f{i} -> f{i + 1}; f{i} -> x{i}; x{i} [label=x]; x{i} -> exit;"
        for i in range(depth)
    )
    text = f"digraph P {{ {ENDS} start -> f0; {links} f{depth} [label=x]; f{depth} -> exit }}"
    assert not [each for each in prepare(text).diagnostics if each.severity is DiagnosticSeverity.error]
    assert parse(text).pipeline.stages


@pytest.mark.parametrize(
    "body",
    [
        f'{ENDS} start -> a -> exit [condition="context.flag=1"]; a [prompt="Set flag in the context."]',
        f'{ENDS} start -> a -> exit [condition="context.flag=1"]; a [prompt="Set context.flag, please"]',
        f'{ENDS} start -> exit [condition="context.human.gate.selected=y && context.tool.exit_code=0"]',
        f'{ENDS} start -> exit [condition="context.last_stage=start && outcome=done && preferred_label=x"]',
    ],
)
@pytest.mark.covers("SAFE-CHECK-11")
def test_a_condition_is_not_warned_about_when_something_may_set_what_it_reads(body: str) -> None:
    assert not {"condition_names", "outcome_words"} & {each.rule for each in told(body)}


ORDINARY: Final = "b [shape=Mdiamond]; start [label=S]; x [shape=Msquare]; END [label=E];"


@pytest.mark.covers("CP2-X1")
def test_start_and_exit_are_found_by_shape_and_else_by_name_in_any_case() -> None:
    for start, end in (("START", "End"), ("Start", "EXIT"), ("start", "exit")):
        found = prepare(f"digraph P {{ {start} -> a -> {end}; {start}; a [label=A]; {end} }}")
        assert not found.diagnostics
        first, last = found.pipeline.start(), found.pipeline.exit()
        assert (first and first.id, last and last.id) == (start, end)
        assert [kind_of(each) for each in found.pipeline.stages.values()] == ["start", "codergen", "exit"]
    found = prepare(f"digraph P {{ {ORDINARY} b -> start -> END -> x }}")
    assert [(each.rule, each.severity) for each in found.diagnostics] == [("ordinary_name", "warning")] * 2
    kinds = {name: kind_of(stage) for name, stage in found.pipeline.stages.items()}
    assert kinds == {"b": "start", "start": "codergen", "END": "codergen", "x": "exit"}
    again = prepare(render(found.pipeline))
    assert {name: kind_of(stage) for name, stage in again.pipeline.stages.items()} == kinds


@pytest.mark.covers("CP2-X1")
def test_missing_exit_and_its_dead_end_are_one_message() -> None:
    (only,) = told("start -> a -> finish; start; a [label=A]; finish [label=F]")
    assert (only.rule, only.node_id, only.fix) == ("terminal_node", "finish", "write finish [shape=Msquare]")
    assert "no edge leaves finish" in only.message


@pytest.mark.covers("CP2-X2")
def test_words_of_other_tools_are_read_with_a_warning_and_the_proper_word() -> None:
    sheet = 'model_stylesheet="* { model = gpt-5; llm_provider: google }"'
    body = (
        f'{ENDS} graph [{sheet}]; start -> a -> t -> exit; a [label=A]; t [shape=parallelogram, script="ls"]'
    )
    found = prepare(f"digraph P {{ {body} }}")
    a, t = found.pipeline.stages["a"], found.pipeline.stages["t"]
    assert model_choice(a, found.pipeline).provider == "gemini"
    assert (a.text("llm_model"), t.text("tool_command")) == ("gpt-5", "ls")
    assert not found.errors
    fixes = [each.fix for each in found.diagnostics]
    assert fixes == ["write tool_command", "write llm_model", "write llm_model: VALUE", "write gemini"]


@pytest.mark.covers("CP2-X3")
def test_problems_of_an_included_file_name_it(tmp_path: Path) -> None:
    (tmp_path / "inner.dot").write_text(
        'digraph I { start; exit; a [prompt="x $foo $goal", maxretries=2]; start -> a -> exit }'
    )
    outer = 'digraph P { start; exit; graph [goal=g]; i [subgraph_file="inner.dot"]; start -> i -> exit }'
    path = tmp_path / "outer.dot"
    found = {each.rule: each.message for each in prepare(outer, path=str(path)).diagnostics}
    inner = tmp_path / "inner.dot"
    assert found["variables"].startswith(f"in {inner}: $foo in the prompt of i__a is not replaced")
    assert found["attribute_known"].startswith(f"in {inner}: unknown attribute maxretries; did you mean")


JOINED = "fan -> a -> join; fan -> b -> join; join -> exit;"
WRITERS = 'a [shape=parallelogram, tool_command="make"]; b [agent=codex];'


@pytest.mark.covers("CP2-G1")
@pytest.mark.parametrize(
    ("more", "warned"),
    [
        (WRITERS, True),
        (f"{WRITERS} fan [workspace=shared]", False),
        (f"{WRITERS} fan [workspace=worktree]", False),
        (f"{WRITERS} b [effect=read]", False),
        ("b [agent=codex];", False),
        ("graph [tools=files];", True),
        ("graph [tools=files]; b [tools=none];", False),
    ],
)
def test_a_shared_folder_is_warned_about_where_two_branches_may_write(more: str, warned: bool) -> None:
    found = [each for each in told(f"{FAN} {JOINED} {more}") if each.rule == "shared_workspaces"]
    assert bool(found) == warned
    for each in found:
        assert each.severity is DiagnosticSeverity.warning
        assert "start with a and b may write files" in each.message


SHARED = "in [workspace=shared];"
NESTED = (
    f"{ENDS} fan [shape=component, workspace=worktree]; join [shape=tripleoctagon]; a [label=A]; x [label=X];"
    "y [label=Y]; in [shape=component, workspace=worktree]; start -> fan; fan -> a -> join; fan -> in;"
    "join -> exit;"
)


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ("in -> x -> join; in -> y -> join;", ["in"]),
        ("in -> x -> join; in -> y -> join; in [merge=none];", []),
        ("in -> x -> both; in -> y -> both; both [shape=tripleoctagon]; both -> join;", []),
        ("in -> x -> both; in -> y -> both; both [label=B]; both -> join;", ["in"]),
        # Branches that share a folder inside a worktree: what they do is part of the next commit.
        (f"{SHARED} in -> x -> join; in -> y -> join;", ["in"]),
        (f"{SHARED} in -> x -> both; in -> y -> both; both [shape=diamond]; both -> join;", ["in"]),
        (f"{SHARED} in -> x -> both; in -> y -> both; both [label=B]; both -> join;", ["in"]),
        (f"{SHARED} in -> x -> both; in -> y -> both; both [shape=tripleoctagon]; both -> join;", []),
        # Of a merge inside a branch that shares its folder, no other stage would know.
        ("fan [workspace=shared]; in -> x -> m; in -> y -> m; m [shape=tripleoctagon]; m -> join;", ["in"]),
        ("fan [workspace=shared]; in [merge=none]; in -> x -> join; in -> y -> join;", []),
    ],
)  # fmt: skip
def test_branches_with_worktrees_need_a_fan_in_of_their_own(more: str, wrong: list[str]) -> None:
    found = [each for each in told(f"{NESTED} {more}") if each.rule == "workspace_joins"]
    assert [each.node_id for each in found] == wrong
    assert all(each.severity is DiagnosticSeverity.error for each in found)


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ("in -> x -> exit; in -> y -> exit;", ["in"]),
        ("in -> x -> both; in -> y -> both; both [shape=diamond]; both -> exit;", ["in"]),
        ("in -> x -> both; in -> y -> both; both [shape=tripleoctagon]; both -> exit;", []),
        ("in -> x -> both; in -> y -> both; both [shape=diamond]; both -> fan;", ["in"]),
        ("fan [merge=none]; in -> x -> exit; in -> y -> exit;", []),
    ],
)
def test_branches_that_share_the_merged_worktree_are_followed_by_a_commit(
    more: str, wrong: list[str]
) -> None:
    found = told(
        f"{ENDS} fan [shape=component, workspace=worktree]; join [shape=tripleoctagon]; start -> fan;"
        "a [label=A]; b [label=B]; x [label=X]; y [label=Y]; fan -> a -> join; fan -> b -> join; join -> in;"
        f"in [shape=component, workspace=shared]; {more}"
    )
    assert [each.node_id for each in found if each.rule == "workspace_joins"] == wrong


def test_every_fan_out_with_worktrees_is_looked_at() -> None:
    one = "f{0} [shape=component]; j{0} [shape=tripleoctagon]; f{0} -> x{0} -> j{0}; f{0} -> y{0} -> j{0};"
    chain = "".join(f"{one.format(number)} j{number} -> f{number + 1};" for number in range(40))
    last = "f40 [shape=component, workspace=worktree]; f40 -> x40 -> exit; f40 -> y40 -> exit;"
    found = told(f"{ENDS} start -> f0; {chain} {last}")
    assert [each.node_id for each in found if each.rule == "workspace_joins"] == ["f40"]


@pytest.mark.covers("SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("rule", "body"),
    [
        ("gate_terms", f'{GATE} ask -> exit; ask [human.assignee="Group: finance", human.excluded="user:eve, initiator"]'),
        ("gate_terms", f'{GATE} ask -> exit; ask [human.assignee="user:urn:x:1", human.priority=high, human.reminder=4h]'),
        ("gate_branches", f'{GATE} ask -> exit [label="[N] No"]; ask -> exit [label="[Y] Yes"]'),
        ("gate_branches", f'{FAN} ask [shape=hexagon]; no [label=N]; fan -> a -> ask; ask -> join [label="[Y] Yes"]; ask -> no [label="[N] No"]; no -> join; fan -> b -> join; join -> exit'),
        ("gate_defaults", f'{GATE} ask -> exit [label="[H] Hold"]; ask [human.default_choice=H]'),
        ("other_choices", f'{THREE} way -> a [condition="context.human.gate.selected=A"]; way -> exit'),
        ("other_choices", f'{THREE} way -> a [condition="context.human.gate.selected!=R && context.human.gate.selected!=L"]; way -> exit'),
        ("other_choices", f'{THREE.replace("[L] Later", "[R] Reject")} way -> a [condition="context.human.gate.selected!=R"]; way -> exit'),
    ],
)  # fmt: skip
def test_gate_is_not_warned_about_when_its_terms_and_answers_are_meant(rule: str, body: str) -> None:
    assert not severity(rule, body)


@pytest.mark.covers("SAFE-CHECK-11")
def test_a_condition_on_what_a_gate_sets_is_not_warned_about_when_it_can_hold() -> None:
    for condition in (
        "context.human.gate.selected=R",
        "context.human.gate.label!='[R] No'",
        "context.human.gate.selected=",
        "context.human.gate.comment=No",
    ):
        assert not severity("gate_answers", f'{ANSWERED} [condition="{condition}"]')
    assert not severity("shape_known", f"{ENDS} start -> a -> exit; a [label=A, shape=ellipse]")


def test_a_misspelt_attribute_is_a_warning() -> None:
    body = "{ENDS} start -> a -> exit; a [label=A, {odd}=diamond]"
    assert severity("attribute_known", body.format(ENDS=ENDS, odd="shpae")) == {DiagnosticSeverity.warning}
    assert severity("attribute_known", body.format(ENDS=ENDS, odd="timeoutt")) == {DiagnosticSeverity.warning}


UNGUARDED = [
    "graph [tool_aproval=shell]",
    "graph [budget_us=5]",
    "graph [human.asignee=kim]",
    "graph [human.assignee=kim]",
    "graph [goal_gate=true]",
    "a [goalgate=true]",
    "a [goal_gate=yes]",
    "a [goal_gate=true, fail_closed=on]",
    "a [fail_closed=true]",
    "a [agent=claude, agent_permission=plan]",
    "a [human.exclude=kim]",
    "a [shape=hexagn]",
    "a [shpae=hexagon]",
    "a [Shape=hexagon]",
    'a [handler="wait.human"]',
    "a [shape=hexagon, type=codergen]",
    "a [tool_approval=true]",
    "graph [tool_approval=All]",
    'a [tool_approval="shell;write_file"]',
    "a [tool_approval=shel]",
    'a [shape=hexagon, excluded="initiator; user:eve"]',
    'a [shape=hexagon, excluded="user:initiator"]',
    "a [type=wait_human]",
    "a [shape=parallelogram, tool_command=ls, tool_approval=all]",
    'a -> exit [conditon="outcome=success"]',
    'a -> exit [conditions="outcome=success"]',
]


@pytest.mark.parametrize("odd", UNGUARDED)
def test_a_guard_that_would_be_gone_is_an_error(odd: str) -> None:
    body = f"{ENDS} start -> a -> exit; a [label=A]; {odd}"
    wrong = [each for each in told(body) if each.severity is DiagnosticSeverity.error]
    assert wrong
    assert {each.rule for each in wrong} <= {
        "attribute_known", "guard_places", "values_fit", "shape_known", "type_known", "gate_kinds", "gate_terms",
        "approved_tools",
    }  # fmt: skip


@pytest.mark.parametrize(
    "odd",
    [
        'a [goal_gate="context.x=1"]',  # of another runner: a warning (AT-A29)
        "a [shape=pentagon]",
        "a [type=deploy]",
        "node [tool_approval=all]; t [shape=parallelogram, tool_command=ls]; a -> t -> exit",
        "a [shape=parallelogram, tool_command=ls, tool_approval=none]",
        "a [shape=hexagon, type=wait_human]",
    ],
)
def test_what_guards_as_it_is_written_is_no_error(odd: str) -> None:
    body = f"{ENDS} start -> a -> exit; a [label=A]; {odd}"
    assert not [each for each in told(body) if each.severity is DiagnosticSeverity.error]


def test_an_empty_approval_says_nothing() -> None:
    text = 'digraph P { graph [tool_approval=shell]; start; exit; start -> a -> exit; a [tool_approval=""] }'
    found = prepare(text).pipeline
    assert wanted_approvals(found.stages["a"], found) == {"shell"}


@pytest.mark.parametrize(
    "body",
    [
        # A refusal that is worked on and asked about again.
        f'{GATE} fix [label=F]; ask -> exit [label="Yes"]; ask -> fix [label="No"]; fix -> ask',
        # Read by what both lead to.
        f'{TWO} ask -> say [label="Yes"]; ask -> say [label="No"]; say [prompt="It is {{{{human.gate.label}}}}"]; say -> exit',
        f'{TWO} ask -> ship [label="Yes"]; ask -> exit [label="No"]; ask [human.default_choice=exit]',
        f'{FAN} ask [shape=hexagon]; x [label=X]; fan [error_policy=fail_fast]; fan -> a -> ask; ask -> join [label="Yes"]; ask -> x [label="No"]; x -> join; fan -> b -> join; join -> c; c [label=C]; c -> exit',
    ],
)
def test_a_gate_that_decides_is_not_warned_about(body: str) -> None:
    found = {each.rule for each in told(body)}
    assert not found & {"gate_defaults", "gate_exchanged", "gate_keys", "gate_branches"}
