"""What the source of a handler tells: its fingerprint, sub-steps in the wrong place, fields that it sets."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest

from holdfast.frontends.python import FlowBuilder
from holdfast.frontends.python.code import code_fingerprint, visible_substeps, visible_writes
from holdfast.model.diagnostics import Severity


def rules(flow: FlowBuilder, severity: Severity = Severity.error) -> list[tuple[str, str | None]]:
    return [(p.rule, p.node) for p in flow.problems() if p.severity is severity]


def charge(s):
    """Takes the money."""
    return {"paid": s["amount"] + 1}


def made(source: str, name: str = "charge"):
    """The same function from another text."""
    import linecache

    file = f"<made {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space: dict = {}
    exec(compile(source, file, "exec"), space)  # noqa: S102
    return space[name]


SAME = """
def decorator(fn): return fn
@decorator
def charge(s):   # a comment
    "Another docstring."
    return {  'paid':
        s["amount"]  +  1 }
"""
OTHER = """
def charge(s):
    return {"paid": s["amount"] + 2}
"""


@pytest.mark.covers("D-34")
def test_code_fingerprint_ignores_layout_comments_docstrings_and_decorators():
    assert code_fingerprint(made(SAME)) == code_fingerprint(charge)


@pytest.mark.covers("D-34")
def test_code_fingerprint_differs_when_the_code_does():
    assert code_fingerprint(made(OTHER)) != code_fingerprint(charge)


@pytest.mark.covers("D-34")
def test_declared_version_stands_for_the_code():
    assert code_fingerprint(charge, "2") == code_fingerprint(made(OTHER), "2")
    assert code_fingerprint(charge, "2") != code_fingerprint(charge, "3")


def test_code_without_source_is_distinguished_by_its_constants():
    one, same, other = (lambda s: s in {"a", "b"}), (lambda s: s in {"a", "b"}), (lambda s: s in {"a", "c"})
    assert code_fingerprint(one) == code_fingerprint(same) != code_fingerprint(other)


def test_code_of_partials_and_callable_objects_is_found():
    class Charge:
        def __call__(self, s):
            return s

    assert code_fingerprint(partial(charge)) == code_fingerprint(charge)
    assert code_fingerprint(Charge()).startswith("c1-")


_SCRIPT = """
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal
from holdfast.frontends.python import FlowBuilder, Retry

class Colour(Enum):
    red = "r"

@dataclass
class S:
    a: int | str | None = None
    b: set[str] = field(default_factory=lambda: {"x", "y", "z", "w"})
    c: Colour = Colour.red
    d: Literal["p", "q"] = "p"
    out: list[str] = field(default_factory=list)

flow = FlowBuilder("stable", S, effect="pure")
a = flow.node(id="a", retry=Retry(2, retry_on=[OSError]))(lambda s: {"a": s.a in {"k", "l", "m"}})
b = flow.hold("b", prompt="{{a}}", options=["x", "y"], context={"k": "{{a}}", "j": "{{d}}"})
c = flow.map("c", over="b", body=lambda item: item, into="out")
flow.chain(a, b, c)
program = flow.compile()
print(program.version, sorted(program.code.items()))
"""


@pytest.mark.covers("CORE-VALID-05")
def test_fingerprints_are_equal_in_processes_with_different_hash_seeds():
    seen = {
        subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1
    assert "g1-" in seen.pop()


def test_graph_fingerprint_changes_with_policies_and_state_but_not_with_code():
    def build(fn, state=None, **options):
        flow = FlowBuilder("f", state, effect="pure")
        flow.node(id="n", **options)(fn)
        return flow.compile().version

    base = build(charge)
    assert build(made(OTHER)) == base
    assert build(charge, retry=2) != base
    assert build(charge, effect="write") != base


@pytest.mark.covers("D-20")
def test_validation_refuses_substeps_in_a_node_whose_class_is_an_effect():
    flow = FlowBuilder("steps")

    @flow.node
    async def leaf(s, ctx):
        await ctx.step("a", lambda: 1)
        return await ctx.ask("sure?")

    assert rules(flow) == [("substep-in-effect", "leaf")] * 2
    (first, _) = [p for p in flow.problems() if p.severity is Severity.error]
    assert "ctx.step" in first.message
    assert "@flow.script" in (first.fix or "")


@pytest.mark.covers("D-20", "CORE-FLOW-41")
def test_script_may_hold_substeps_and_is_read_unless_reported():
    flow = FlowBuilder("steps")

    @flow.script
    async def talk(s, ctx):
        return await ctx.ask("sure?")

    @flow.script(effect="pure")
    async def count(s, ctx):
        return await ctx.step("a", lambda: 1)

    flow.chain(talk, count)
    assert rules(flow) == []
    nodes = flow.compile().graph.nodes
    assert [(node.script, node.effect) for node in nodes] == [(True, "read"), (True, "pure")]


@pytest.mark.covers("D-20")
def test_script_whose_class_is_an_effect_is_refused():
    flow = FlowBuilder("steps")
    flow.script(id="bad", effect="external")(lambda s, ctx: None)
    assert rules(flow) == [("script-effect", "bad")]


def test_substeps_are_seen_under_the_name_that_the_context_has():
    async def leaf(s, c: Context):  # noqa: F821
        other.step("no")  # noqa: F821
        return await c.step("x", lambda: 1)

    assert visible_substeps(leaf) == ["c.step (line 3 of the function)"]


@pytest.mark.covers("CORE-VALID-03")
def test_validation_hints_at_pure_or_read_only_where_no_class_is_declared():
    flow = FlowBuilder("hints")
    flow.node(id="told", effect="external")(lambda: None)
    flow.node(id="silent")(lambda: None)
    flow.chain("told", "silent")
    assert rules(flow, Severity.hint) == [("effect-undeclared", "silent")]
    (hint,) = flow.problems()
    assert "pure" in (hint.fix or "")
    assert flow.compile()


def test_fields_that_a_function_returns_are_seen_and_those_of_inner_functions_are_not():
    def work(s):
        def inner():
            return {"hidden": 1}

        if s:
            return {"a": inner(), **s}
        return {"b": 2}

    assert visible_writes(work) == {"a", "b"}


@pytest.mark.covers("CORE-VALID-04", "D-25")
def test_validation_warns_when_concurrent_branches_set_one_field_without_a_reducer():
    def build(**options):
        flow = FlowBuilder("race", effect="pure", **options)

        @flow.node
        def left():
            return {"total": 1}

        @flow.node
        def right():
            return {"total": 2}

        fork = flow.node(id="fork")(lambda: None)
        flow.start(fork)
        flow.edge(fork, left)
        flow.edge(fork, right)
        return flow

    assert rules(build(), Severity.warning) == [("concurrent-set", "left")]
    assert rules(build(reducers={"total": "sum"}), Severity.warning) == []


def test_arms_that_exclude_each_other_may_set_the_same_field():
    flow = FlowBuilder("arms", effect="pure")

    @flow.node
    def left():
        return {"total": 1}

    @flow.node
    def right():
        return {"total": 2}

    fork = flow.node(id="fork")(lambda: None)
    flow.edge(fork, left, when="input.x")
    flow.edge(fork, right, otherwise=True)
    assert flow.problems() == []


def test_probe_policy_without_a_probe_is_refused():
    flow = FlowBuilder("doubt")
    flow.node(id="send", effect="write", in_doubt="probe")(lambda: None)
    assert rules(flow) == [("probe", "send")]


def test_flow_that_contains_itself_is_refused():
    outer, inner = FlowBuilder("outer", effect="pure"), FlowBuilder("inner", effect="pure")
    outer.subflow("down", inner)
    inner.subflow("up", outer)
    assert ("subflow-cycle", None) in rules(outer)


def test_problems_of_a_subflow_name_it():
    outer, inner = FlowBuilder("outer", effect="pure"), FlowBuilder("inner", effect="pure")
    inner.node(id="a")(lambda: None)
    inner.edge("a", "nowhere")
    outer.subflow("down", inner)
    (problem,) = outer.problems()
    assert "in sub-flow 'inner'" in problem.message


def test_two_subflows_of_one_name_are_refused():
    outer = FlowBuilder("outer", effect="pure")
    for name in ("one", "two"):
        inner = FlowBuilder("same", effect="pure")
        inner.node(id="a")(lambda: None)
        outer.subflow(name, inner)
    assert rules(outer) == [("subflow-name", "two")]
