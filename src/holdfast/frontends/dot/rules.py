"""The rules of the specification, in its order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Link, Stage
from holdfast.frontends.dot.guard_rules import is_misspelt_gate
from holdfast.frontends.dot.rule_context import Check, RuleContext, name_list
from holdfast.frontends.dot.stylesheet import ATTRIBUTE, parse_stylesheet

ERROR, WARNING, INFO = DiagnosticSeverity.error, DiagnosticSeverity.warning, DiagnosticSeverity.info
FIDELITIES: Final = ("full", "truncate", "compact", "summary:low", "summary:medium", "summary:high")
RETRY_TARGETS: Final = ("retry_target", "fallback_retry_target")


def start_node(view: RuleContext) -> Iterator[Diagnostic]:
    fix = "give exactly one stage shape=Mdiamond"
    found = view.starts
    if not found:
        yield view.at("start_node", ERROR, view.pipeline, "the pipeline has no start", fix=fix)
    elif len(found) > 1:
        names = name_list(stage.id for stage in found)
        message = f"a pipeline has exactly one start, found {len(found)}: {names}"
        yield view.at("start_node", ERROR, found[1], message, key="shape", fix=fix)


def terminal_node(view: RuleContext) -> Iterator[Diagnostic]:
    fix = "give exactly one stage shape=Msquare"
    found = view.exits
    if not found:
        ends = dead_ends(view)
        message, fixed = "the pipeline has no exit", fix
        if ends:
            # One message for the missing exit and the end that was meant to be it.
            last = ends[-1]
            message += (
                f": no edge leaves {name_list(stage.id for stage in ends)}, and an exit has shape=Msquare "
                "or the id exit or end"
            )
            fixed = f"write {last.id} [shape=Msquare]" if len(ends) == 1 else fix
        yield view.at("terminal_node", ERROR, ends[-1] if ends else view.pipeline, message, fix=fixed)
    elif len(found) > 1:
        names = name_list(stage.id for stage in found)
        message = f"a pipeline has exactly one exit, found {len(found)}: {names}"
        yield view.at("terminal_node", ERROR, found[1], message, key="shape", fix=fix)


def dead_ends(view: RuleContext) -> list[Stage]:
    """Stages apart from the exit that no edge leaves. A gate asks a person where to go."""
    exits = {stage.id for stage in view.exits}
    return [
        stage
        for stage in view.pipeline.stages.values()
        if stage.id not in exits and not view.leaving(stage) and view.kinds[stage.id] != "wait.human"
    ]


def reachability(view: RuleContext) -> Iterator[Diagnostic]:
    """Along edges and jumps: a stage that only a retry target names does run."""
    if not view.starts:
        return
    seen = _reached(view)
    for stage in view.pipeline.stages.values():
        if stage.id not in seen:
            message = f"stage {stage.id} is unreachable from the start"
            fix = f"add an edge to {stage.id}, or remove it"
            yield view.at("reachability", ERROR, stage, message, fix=fix)


def _reached(view: RuleContext) -> set[str]:
    stages = view.pipeline.stages
    seen = {stage.id for stage in view.starts}
    todo = list(seen)
    jumps: dict[str, list[str]] = {}
    for key in RETRY_TARGETS:
        for stage in view.stages_with(key):
            jumps.setdefault(stage.id, []).append(stage.text(key))
    if any(stage.flag("goal_gate") for stage in view.stages_with("goal_gate")):
        todo += [view.pipeline.text(key) for key in RETRY_TARGETS]
    while todo:
        name = todo.pop()
        if name not in stages:
            continue
        seen.add(name)
        ways = [link.target for link in view.pipeline.outgoing.get(name, ())]
        for way in (*ways, *jumps.get(name, ())):
            if way not in seen:
                seen.add(way)
                todo.append(way)
    return seen


def edge_target_exists(view: RuleContext) -> Iterator[Diagnostic]:
    stages = view.pipeline.stages
    for link in view.pipeline.links:
        for end in (link.source, link.target):
            if end not in stages:
                message = f"the edge {link.source} -> {link.target} names {end}, which is not a stage"
                yield view.at("edge_target_exists", ERROR, link, message, fix=f"declare {end}")
    for stage in stages.values():
        if not stage.declared:
            message = f"stage {stage.id} is used by an edge but not declared: it is treated as a box"
            if view.strict:
                message = f"stage {stage.id} is used by an edge but not declared"
            yield view.at(
                "edge_target_exists",
                ERROR if view.strict else WARNING,
                stage,
                message,
                fix=f'declare it: {stage.id} [prompt="..."]',
            )


def start_no_incoming(view: RuleContext) -> Iterator[Diagnostic]:
    for stage in view.starts:
        for link in view.pipeline.incoming.get(stage.id, ()):
            message = f"the start has an incoming edge, from {link.source}"
            fix = f"let the edge end at the stage after {stage.id}"
            yield view.at("start_no_incoming", ERROR, link, message, fix=fix)


def exit_no_outgoing(view: RuleContext) -> Iterator[Diagnostic]:
    for stage in view.exits:
        for link in view.leaving(stage):
            message = f"the exit has an outgoing edge, to {link.target}"
            yield view.at(
                "exit_no_outgoing", ERROR, link, message, fix="let the edge start at an earlier stage"
            )


def condition_syntax(view: RuleContext) -> Iterator[Diagnostic]:
    for condition, links in view.conditions.items():
        for problem in view.reading(condition).all_problems(extended=view.extended):
            fix = ""
            if "is an extension" in problem.message:
                fix = 'write two edges, or allow it by graph [conditions="extended"]'
            message = f"{problem.message}, at column {problem.column} of the condition {_shown(condition)}"
            for link in links:
                yield view.at("condition_syntax", ERROR, link, message, key="condition", fix=fix)


def stylesheet_syntax(view: RuleContext) -> Iterator[Diagnostic]:
    text = view.pipeline.text(ATTRIBUTE)
    if not text:
        return
    sheet = parse_stylesheet(text)
    for severity, faults in ((ERROR, sheet.faults), (WARNING, sheet.aliases)):
        for fault in faults:
            line = text.count("\n", 0, fault.offset) + 1
            column = fault.offset - text.rfind("\n", 0, fault.offset)
            message = f"{fault.message}, at line {line}, column {column} of the stylesheet"
            yield view.at("stylesheet_syntax", severity, view.pipeline, message, key=ATTRIBUTE, fix=fault.fix)


def type_known(view: RuleContext) -> Iterator[Diagnostic]:
    """A misspelt type of a gate is an error: without the gate's shape nobody would be asked."""
    for stage in view.pipeline.stages.values():
        if stage.type and stage.type not in view.known:
            message = (
                f"no handler is known for type {stage.type}: {stage.id} is run as {view.kinds[stage.id]}"
            )
            fix = f"use one of {', '.join(sorted(view.known))}, or register a handler"
            severity = DiagnosticSeverity.error if is_misspelt_gate(stage) else WARNING
            yield view.at("type_known", severity, stage, message, key="type", fix=fix)


def fidelity_valid(view: RuleContext) -> Iterator[Diagnostic]:
    fix = f"use one of {', '.join(FIDELITIES)}"
    for key in ("default_fidelity", "fidelity"):
        for what in view.uses.get(key, ()):
            mode = what.text(key)
            if mode and mode not in FIDELITIES and (key == "fidelity") == (what is not view.pipeline):
                yield view.at("fidelity_valid", WARNING, what, f"{mode} is not a fidelity", key=key, fix=fix)


def retry_target_exists(view: RuleContext) -> Iterator[Diagnostic]:
    stages = view.pipeline.stages
    for key in RETRY_TARGETS:
        for what in view.uses.get(key, ()):
            target = what.text(key)
            if target and target not in stages and not isinstance(what, Link):
                message = f"{key} names {target}, which is not a stage"
                fix = "name a stage of this pipeline"
                yield view.at("retry_target_exists", WARNING, what, message, key=key, fix=fix)


def goal_gate_has_retry(view: RuleContext) -> Iterator[Diagnostic]:
    """A target of the graph serves as well: the jump falls back to it."""
    if any(view.pipeline.text(key) for key in RETRY_TARGETS):
        return
    for stage in view.stages_with("goal_gate"):
        if stage.flag("goal_gate") and not any(stage.text(key) for key in RETRY_TARGETS):
            message = f"goal gate {stage.id} has no retry target: the run fails if the goal is not met"
            yield view.at(
                "goal_gate_has_retry", WARNING, stage, message, key="goal_gate", fix="add retry_target=STAGE"
            )


def prompt_on_llm_nodes(view: RuleContext) -> Iterator[Diagnostic]:
    for stage in view.of_kind("codergen"):
        if not stage.prompt and not stage.text("label") and stage.declared:
            message = f"stage {stage.id} has neither prompt nor label: the model gets only its id"
            yield view.at("prompt_on_llm_nodes", WARNING, stage, message, fix='add prompt="..."')


def _shown(text: str) -> str:
    return f"`{text}`" if len(text) <= 80 else f"`{text[:77]}...`"


RULES: Final[tuple[Check, ...]] = (
    start_node,
    terminal_node,
    reachability,
    edge_target_exists,
    start_no_incoming,
    exit_no_outgoing,
    condition_syntax,
    stylesheet_syntax,
    type_known,
    fidelity_valid,
    retry_target_exists,
    goal_gate_has_retry,
    prompt_on_llm_nodes,
)
