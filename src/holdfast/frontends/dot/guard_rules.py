"""Rules for what guards a run: gates, approvals, permissions, conditions, budgets. With a misspelt or
misplaced one the run would continue without it, so those are errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from holdfast.frontends.dot.attributes import BUDGET, EDGE, GRAPH, KNOWN, NODE
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Link, Pipeline, Stage
from holdfast.frontends.dot.handler_kinds import BUILT_IN, SHAPES
from holdfast.frontends.dot.policies import APPROVAL, approvals_in
from holdfast.frontends.dot.rule_context import Check, RuleContext
from holdfast.frontends.dot.values import Value, as_text

ERROR, WARNING = DiagnosticSeverity.error, DiagnosticSeverity.warning
_LONG_NAME, _MANY_NAMES = 40, 300
"""Longer names, and names beyond that number, are not compared with others: that takes quadratic time."""
_ATTRIBUTES: Final = {"Pipeline": GRAPH, "Stage": NODE, "Link": EDGE}
_FLAGS: Final = frozenset({"goal_gate", "fail_closed"})
_GATE, _GATE_SHAPE = "wait.human", "hexagon"
_OF_GATES: Final = frozenset({"human.assignee", "human.excluded"})
_GUARDS: Final = (
    BUDGET
    | _FLAGS
    | _OF_GATES
    | frozenset(
        {APPROVAL, "agent_permissions", "tools", "tool_hooks.pre", "assignee", "excluded", "condition"}
    )
)
"""Without them somebody is not asked, a failure is not seen, or more is allowed than was meant."""
_PLACED: Final = _OF_GATES | {"goal_gate", APPROVAL}
"""Those that are likely to be written where they have no effect."""
_OF_HOLDS: Final = frozenset(
    {"approval", "approvals", "approvers", "need", "quorum", "veto", "four_eyes", "step_up",
     "strict_assignee", "approver", "reviewer", "reviewers", "assigned_to", "min_approvals",
     "required_approvals"}
)  # fmt: skip
"""Guards of the holds of flows, which gates do not have."""
_PREFIX: Final = "human."
_PREFIXED: Final = _OF_HOLDS | {"of", "mode", "votes", "voters", "strict", "distinct_people", "links"}
"""Bare, other tools may use these for something else."""
_OTHER_OF_GATES: Final = frozenset({"on_timeout", "default_choice", "question", "options"})
"""Not of gates, though of holds of flows or of gates with the prefix."""
_TOOLS: Final = ("all", "none", "shell", "read_file", "write_file", "edit_file", "apply_patch", "list_files")
_TOOL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NO_TOOLS: Final = frozenset(
    {"true", "false", "yes", "no", "on", "off", "any", "each", "every", "always", "never"}
)
_GATE_WORDS: Final = frozenset({"hexagon", "wait.human"})
_EXPRESSION: Final = re.compile(r"[=<>&|!]")


def is_guard_value(key: str, value: Value) -> bool:
    """Whether it must not be ignored. Other runners have expressions as goal gates; these are no gate here
    (AT-A29)."""
    return key in _FLAGS and not _EXPRESSION.search(as_text(value))


def is_misspelt_gate(stage: Stage) -> bool:
    """Whether the stage's unknown `type` looks like that of a gate, which its shape does not make it."""
    kind = stage.type
    return (
        stage.shape != _GATE_SHAPE
        and len(kind) < _LONG_NAME
        and bool(get_close_matches(kind, [_GATE], 1, 0.85))
    )


def attribute_known(view: RuleContext) -> Iterator[Diagnostic]:
    """Only names that are similar to a known attribute: other tools may use other attributes."""
    odd = [key for key in view.uses if key not in KNOWN and len(key) < _LONG_NAME][:_MANY_NAMES]
    for key in (*odd, *(view.uses.keys() & {"conditions"})):
        meant: dict[str, str] = {}
        for what in view.uses[key]:
            kind = type(what).__name__
            if kind not in meant and key not in _ATTRIBUTES[kind]:
                known = _ATTRIBUTES[kind] | _PLACED
                near = (
                    [key.lower()] if key.lower() in known else get_close_matches(key, sorted(known), 1, 0.85)
                )
                swapped = (each for each in sorted(known) if sorted(each) == sorted(key))
                meant[kind] = next(iter(near), "") or next(swapped, "")
            if meant.get(kind):
                message = f"unknown attribute {key}; did you mean {meant[kind]}?"
                gate = what.text(key) in _GATE_WORDS
                severity = ERROR if gate or meant[kind] in _GUARDS else WARNING
                yield view.at("attribute_known", severity, what, message, key=key)


def approved_tools(view: RuleContext) -> Iterator[Diagnostic]:
    """A `tool_approval` that names no tool: the calls that were meant would be made without asking."""
    for what in view.uses.get(APPROVAL, ()):
        for name in sorted(approvals_in(what.text(APPROVAL))) if not isinstance(what, Link) else ():
            near = get_close_matches(name.lower(), _TOOLS, 1, 0.8) if name not in _TOOLS else []
            odd = _TOOL_NAME.fullmatch(name) is None or name.lower() in _NO_TOOLS
            if odd or near:
                fix = f"did you mean {near[0]}?" if near else "write all, none, or names of tools with commas"
                message = f"{APPROVAL} asks before calls of a tool {name!r}, and of no other"
                yield view.at("approved_tools", ERROR, what, message, key=APPROVAL, fix=fix)


def gate_kinds(view: RuleContext) -> Iterator[Diagnostic]:
    """A type that takes the place of a gate's shape: nobody would be asked."""
    for stage in view.stages_with("type"):
        kind = view.kinds[stage.id]
        if stage.shape == _GATE_SHAPE and kind != _GATE:
            message = (
                f"{stage.id} has the shape of a gate, and by its type it is run as {kind}: nobody is asked"
            )
            severity = ERROR if kind in BUILT_IN else WARNING
            fix = "remove the type, or the shape"
            yield view.at("gate_kinds", severity, stage, message, key="type", fix=fix)
    for key in view.uses.keys() - KNOWN:
        for what in view.uses[key]:
            if isinstance(what, Stage) and what.text(key) in _GATE_WORDS and view.kinds[what.id] != _GATE:
                message = f"{key} does not make {what.id} a gate: it is run as {view.kinds[what.id]}"
                yield view.at("gate_kinds", ERROR, what, message, key=key, fix="write shape=hexagon")


def guard_places(view: RuleContext) -> Iterator[Diagnostic]:
    """A guard where it has no effect."""
    for key in sorted(_PLACED):
        for what in view.uses.get(key, ()):
            if what.text(key) and key not in _ATTRIBUTES[type(what).__name__]:
                where = "the graph" if isinstance(what, Pipeline) else "an edge"
                fix = "write it on each stage that it is for"
                yield view.at(
                    "guard_places", ERROR, what, f"{key} has no effect on {where}", key=key, fix=fix
                )
    yield from _guards_of_holds(view)
    for stage in view.of_kind("tool"):
        # Of a block of defaults it is that of the models in it.
        if APPROVAL in stage.explicit and approvals_in(stage.text(APPROVAL)):
            message = f"{APPROVAL} has no effect on {stage.id}: it is for tools of models, and a command runs"
            yield view.at(
                "guard_places", ERROR, stage, f"{message} without approval", key=APPROVAL,
                fix="put a gate (shape=hexagon) before it",
            )  # fmt: skip
    for stage in view.stages_with("fail_closed"):
        if "fail_closed" in stage.explicit and stage.flag("fail_closed") and not stage.flag("goal_gate"):
            message = f"fail_closed has no effect on {stage.id}, which is no goal gate"
            yield view.at("guard_places", ERROR, stage, message, key="fail_closed", fix="add goal_gate=true")


def _guards_of_holds(view: RuleContext) -> Iterator[Diagnostic]:
    gates = {stage.id for stage in view.of_kind(_GATE)}
    for key in sorted(view.uses):
        bare = key.removeprefix(_PREFIX)
        of_gates = [each for each in view.uses[key] if isinstance(each, Stage) and each.id in gates]
        if key not in KNOWN and bare not in _PREFIXED and (bare != key or bare in _OTHER_OF_GATES):
            for what in of_gates:
                message = f"{key} has no effect on gate {what.id}"
                fix = "a gate reads timeout, human.default_choice, human.assignee and human.excluded"
                yield view.at("guard_places", WARNING, what, message, key=key, fix=fix)
        if key in KNOWN or bare not in (_OF_HOLDS if bare == key else _PREFIXED):
            continue
        for what in of_gates:
            message = f"{key} has no effect on gate {what.id}: one person decides it"
            fix = "use human.assignee and human.excluded, a second gate, or a policy (approval)"
            yield view.at("guard_places", ERROR, what, message, key=key, fix=fix)


def shape_known(view: RuleContext) -> Iterator[Diagnostic]:
    """A shape without a meaning is a stage for a model: with a misspelt one a gate is gone. Only names that
    are similar to a shape with a meaning: Graphviz has many others."""
    for stage in view.stages_with("shape"):
        shape = stage.shape
        if shape in SHAPES or len(shape) >= _LONG_NAME:
            continue
        near = [each for each in SHAPES if each.lower() == shape.lower()]
        near = near or get_close_matches(shape, SHAPES, 1, 0.8)
        if near:
            message = f"shape {shape} has no meaning: {stage.id} is run as {view.kinds[stage.id]}"
            asks = near[0] == _GATE_SHAPE and view.kinds[stage.id] != _GATE
            severity = ERROR if asks else WARNING
            yield view.at(
                "shape_known", severity, stage, message, key="shape", fix=f"did you mean {near[0]}?"
            )


GUARDS: Final[tuple[Check, ...]] = (
    attribute_known, guard_places, shape_known, approved_tools, gate_kinds,
)  # fmt: skip
