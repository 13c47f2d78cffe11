"""Additional rules: pipelines that the specification allows, but that behave differently than they look."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from holdfast.frontends.dot.attributes import (
    AGENTS,
    DURATIONS,
    FLAGS,
    INTEGERS,
    PERMISSIONS,
    PROVIDERS,
    WORDS,
)
from holdfast.frontends.dot.condition_rules import CONDITIONS
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Link, Pipeline, SourceLocation, Stage
from holdfast.frontends.dot.gate_rules import GATES
from holdfast.frontends.dot.guard_rules import GUARDS, is_guard_value
from holdfast.frontends.dot.model_choice import PROVIDER_ALIASES, agent_fault, model_choice
from holdfast.frontends.dot.parallel_rules import PARALLEL
from holdfast.frontends.dot.policies import wanted_approvals
from holdfast.frontends.dot.references import REFERENCES
from holdfast.frontends.dot.rule_context import Check, RuleContext, name_list
from holdfast.frontends.dot.rules import dead_ends
from holdfast.frontends.dot.schema_rules import output_schema
from holdfast.frontends.dot.values import Value, as_flag, as_integer, as_microseconds, as_text
from holdfast.frontends.dot.workspace_rules import WORKSPACE
from holdfast.model.edge_labels import split_label
from holdfast.model.pipeline_conditions import Clause, ParsedCondition

ERROR, WARNING, INFO = DiagnosticSeverity.error, DiagnosticSeverity.warning, DiagnosticSeverity.info
_VARIABLE: Final = re.compile(r"(?<![\\$\w])\$([A-Za-z_]\w*|\{[A-Za-z_]\w*\})")


def gate_conditions(view: RuleContext) -> Iterator[Diagnostic]:
    """An answer is matched with edges that have no condition (AT-A7)."""
    for stage in view.of_kind("wait.human"):
        for link in view.leaving(stage):
            if link.condition:
                edge = f"{link.source} -> {link.target}"
                message = f"the edge {edge} leaves a gate and has a condition, so no answer can choose it"
                fix = "remove the condition, or decide in a diamond after the gate"
                yield view.at("gate_conditions", WARNING, link, message, key="condition", fix=fix)


def gate_choices(view: RuleContext) -> Iterator[Diagnostic]:
    for stage in view.of_kind("wait.human"):
        links = view.leaving(stage)
        if not links:
            message = f"gate {stage.id} has no outgoing edges, so it has no choices and always fails"
            yield view.at("gate_choices", WARNING, stage, message, fix="add an edge for each choice")
        yield from _same_keys(view, stage, links)
        chosen = stage.text("human.default_choice")
        if chosen and links and not any(_names(link, chosen) for link in links):
            message = f"human.default_choice {chosen} is not a choice of gate {stage.id}"
            fix = f"use one of {name_list(link.target for link in links)}"
            yield view.at("gate_choices", WARNING, stage, message, key="human.default_choice", fix=fix)


def _same_keys(view: RuleContext, stage: Stage, links: Iterable[Link]) -> Iterator[Diagnostic]:
    """Only explicit keys: two choices may begin with the same letter."""
    seen: dict[str, Link] = {}
    for link in links:
        key = split_label(link.label)[0].lower()
        if key and key in seen:
            message = f"two choices of gate {stage.id} have the key {key.upper()}"
            yield view.at("gate_choices", WARNING, link, message, key="label", fix="give each another key")
        seen.setdefault(key, link)


def _names(link: Link, chosen: str) -> bool:
    key, rest = split_label(link.label)
    key = key or link.label[:1]
    return chosen.lower() in {link.target.lower(), key.lower(), link.label.lower(), rest.lower()}


def dead_end(view: RuleContext) -> Iterator[Diagnostic]:
    """A run that ends here has succeeded (AT-A24): goal gates are not checked."""
    # Without an exit, `terminal_node` names them.
    for stage in dead_ends(view) if view.exits else ():
        message = f"no edge leaves {stage.id}: a run that reaches it ends as a success without the exit"
        yield view.at("dead_end", WARNING, stage, message, fix="add an edge to the exit")


def no_way_out(view: RuleContext) -> Iterator[Diagnostic]:
    """Stages from which no path leads to the exit or another end: a run loops there."""
    stages = view.pipeline.stages
    ends = [stage.id for stage in stages.values() if not view.leaving(stage)]
    ends += [stage.id for stage in view.exits]
    saved, todo = set(ends), list(ends)
    while todo:
        for link in view.pipeline.incoming.get(todo.pop(), ()):
            if link.source not in saved:
                saved.add(link.source)
                todo.append(link.source)
    lost = [stage for stage in stages.values() if stage.id not in saved]
    if lost:
        message = (
            f"no path leads from {name_list(stage.id for stage in lost)} to the exit: the run loops there"
        )
        yield view.at("no_way_out", WARNING, lost[0], message, fix="add an edge that leaves the loop")


def all_conditional(view: RuleContext) -> Iterator[Diagnostic]:
    asking: dict[str, list[Link]] = {}
    for links in view.conditions.values():
        for link in links:
            asking.setdefault(link.source, []).append(link)
    for name, links in asking.items():
        stage = view.pipeline.stages.get(name)
        if stage is None or len(links) < len(view.leaving(stage)) or _complete(view, links):
            continue
        message = f"every edge that leaves {name} has a condition: if none holds, the run ends there"
        yield view.at("all_conditional", INFO, stage, message, fix="add an edge without a condition")


def _complete(view: RuleContext, links: Iterable[Link]) -> bool:
    """Whether two of them are opposites, or success and failure are both covered."""
    single: set[Clause] = set()
    for link in links:
        alternatives = view.reading(link.condition).alternatives
        single |= {clauses[0] for clauses in alternatives if len(clauses) == 1}
    words = {clause.literal for clause in single if (clause.key, clause.operator) == ("outcome", "=")}
    return {"success", "fail"} <= words or any(
        clause._replace(operator="!=") in single for clause in single if clause.operator == "="
    )


def condition_keys(view: RuleContext) -> Iterator[Diagnostic]:
    """The grammar wants `context.` in front; the lookup does not."""
    severity = DiagnosticSeverity.error if view.strict else INFO
    for condition, links in view.conditions.items():
        for key in _bare_keys(view.reading(condition)):
            message = f"the condition reads {key}, which is looked up in the context"
            fix = f"write context.{key}"
            for link in links:
                yield view.at("condition_keys", severity, link, message, key="condition", fix=fix)


def _bare_keys(reading: ParsedCondition) -> list[str]:
    keys = {clause.key for clauses in reading.alternatives for clause in clauses}
    return sorted(key for key in keys - {"outcome", "preferred_label"} if not key.startswith("context."))


def values_fit(view: RuleContext) -> Iterator[Diagnostic]:
    """A value that cannot be read as its type is ignored; of a guard it is an error."""
    for key, (fits, meant, fix) in _FITS.items():
        for what in view.uses.get(key, ()):
            value = what.attrs[key]
            if value != "" and not fits(value):
                message = f"{key} must be {meant}, not {as_text(value)[:60]}"
                if is_guard_value(key, value):
                    yield view.at("values_fit", ERROR, what, message, key=key, fix=fix)
                else:
                    yield view.at(
                        "values_fit", WARNING, what, f"{message}: the value is ignored", key=key, fix=fix
                    )


def budgets(view: RuleContext) -> Iterator[Diagnostic]:
    """One that cannot be kept is an error: the run would have no limit."""
    for key, (fits, meant) in _BUDGETS.items():
        for what in view.uses.get(key, ()):
            if not isinstance(what, Pipeline):
                message = f"{key} is that of the graph, and has no effect here"
                yield view.at("budgets", ERROR, what, message, key=key, fix=f"write graph [{key}=...]")
            elif not fits(what.attrs[key]):
                message = f"{key} must be {meant}, not {as_text(what.attrs[key])[:60]}"
                yield view.at("budgets", ERROR, what, message, key=key, fix=f"write {meant}, or remove it")


def _is_amount(value: Value) -> bool:
    try:
        return 0 <= float(as_text(value)) < math.inf
    except ValueError:
        return False


def _is_share(value: Value) -> bool:
    return _is_amount(value) and 0 < float(as_text(value)) <= 1


def _is_duration(value: Value) -> bool:
    found = as_microseconds(value)
    return found is not None and found >= 0


def _one_of(words: tuple[str, ...]) -> Callable[[Value], bool]:
    return lambda value: as_text(value) in words


_FITS: Final[dict[str, tuple[Callable[[Value], bool], str, str]]] = {
    **dict.fromkeys(
        FLAGS, (lambda value: as_flag(value) is not None, "true or false", "write true or false")
    ),
    **dict.fromkeys(INTEGERS, (lambda value: as_integer(value) is not None, "a whole number", "")),
    **dict.fromkeys(DURATIONS, (_is_duration, "a duration", "write a number with ms, s, m, h or d")),
    **{key: (_one_of(words), f"one of {', '.join(words)}", "") for key, words in WORDS.items()},
}


_BUDGETS: Final[dict[str, tuple[Callable[[Value], bool], str]]] = {
    "budget_tokens": (_is_amount, "a number of 0 or more"),
    "budget_usd": (_is_amount, "a number of 0 or more"),
    "budget_time": (_is_duration, "a duration such as 90m"),
    "budget_ask_at": (_is_share, "a share such as 0.8"),
}


def tool_command(view: RuleContext) -> Iterator[Diagnostic]:
    for stage in view.of_kind("tool"):
        if not stage.text("tool_command"):
            message = f"tool {stage.id} has no tool_command: it always fails"
            yield view.at("tool_command", WARNING, stage, message, fix='add tool_command="..."')


def goal_missing(view: RuleContext) -> Iterator[Diagnostic]:
    if view.pipeline.goal:
        return
    for stage in view.stages_with("prompt"):
        if "$goal" in stage.prompt:
            message = f"the prompt of {stage.id} uses $goal, but the graph has no goal"
            fix = 'add graph [goal="..."]'
            yield view.at("goal_missing", WARNING, stage, message, key="prompt", fix=fix)


def provider_known(view: RuleContext) -> Iterator[Diagnostic]:
    fix = f"use one of {', '.join(sorted(PROVIDERS))}, or one that HOLDFAST_MODELS declares"
    reported: set[tuple[str, SourceLocation]] = set()
    for stage in view.stages_with("llm_provider"):
        provider = stage.text("llm_provider")
        asks = view.kinds[stage.id] in ("codergen", "parallel.fan_in")
        if provider in PROVIDER_ALIASES:
            # A stylesheet sets it for many stages at one place.
            place = (provider, stage.places.get("llm_provider", stage.place))
            if place in reported or not asks:
                continue
            reported.add(place)
            meant = PROVIDER_ALIASES[provider]
            message = f"the provider {provider} is read as {meant}"
            yield view.at("provider_known", WARNING, stage, message, key="llm_provider", fix=f"write {meant}")
            continue
        if asks and provider and provider not in PROVIDERS:
            message = f"the provider {provider} is not known"
            yield view.at("provider_known", WARNING, stage, message, key="llm_provider", fix=fix)


def agent_known(view: RuleContext) -> Iterator[Diagnostic]:
    """An error: another agent, or more permissions than were meant, must not be used instead."""
    for key, words in (("agent", AGENTS), ("agent_permissions", PERMISSIONS)):
        for what in view.uses.get(key, ()):
            value = what.text(key)
            if value and value not in words:
                message, fix = f"{key} is {value[:60]}, which is not known", f"use one of {', '.join(words)}"
                yield view.at("agent_known", DiagnosticSeverity.error, what, message, key=key, fix=fix)


def agent_model(view: RuleContext) -> Iterator[Diagnostic]:
    """An error: the stage cannot begin."""
    for stage in view.stages_with("agent"):
        if model_choice(stage, view.pipeline).provider == "simulation":
            continue
        fault, fix = agent_fault(stage.text("agent"), stage, view.pipeline)
        if fault:
            fix = fix[0].lower() + fix[1:].removesuffix(".")
            yield view.at("agent_model", DiagnosticSeverity.error, stage, fault, key="llm_model", fix=fix)


def agent_approval(view: RuleContext) -> Iterator[Diagnostic]:
    """An error: an agent calls its tools itself, and nobody would be asked."""
    for stage in view.of_kind("codergen"):
        given = stage.text("agent_permissions") or view.pipeline.text("agent_permissions")
        asked = wanted_approvals(stage, view.pipeline) if stage.text("agent") else ()
        if asked and given != PERMISSIONS[0]:
            words, who = ",".join(sorted(asked)), stage.text("agent")
            message = f"tool_approval={words} has no effect: {who} runs its tools without approval"
            fix = f"set tool_approval=none or agent_permissions={PERMISSIONS[0]}, or remove agent"
            yield view.at(
                "agent_approval", DiagnosticSeverity.error, stage, message, key="tool_approval", fix=fix
            )


def variables(view: RuleContext) -> Iterator[Diagnostic]:
    """Only `$goal` is replaced in a prompt."""
    for stage in view.stages_with("prompt"):
        names = dict.fromkeys(_VARIABLE.findall(stage.prompt))
        names.pop("goal", None)
        if names:
            shown = name_list(f"${name}" for name in names)
            verb = "is" if len(names) == 1 else "are"
            message = f"{shown} in the prompt of {stage.id} {verb} not replaced: only $goal is"
            fix = "write the value itself; stages also see the context before their prompt"
            if "{goal}" in names:
                fix = "write $goal, without braces"
            yield view.at("variables", WARNING, stage, message, key="prompt", fix=fix)


def child_dotfile(view: RuleContext) -> Iterator[Diagnostic]:
    for stage in view.of_kind("stack.manager_loop"):
        resolves = stage.text("stack.child_resolve") or view.pipeline.text("stack.child_resolve")
        if resolves not in ("", "late", "create"):
            message = f"stack.child_resolve is {resolves}, and not create or late"
            yield view.at(
                "child_dotfile", DiagnosticSeverity.error, stage, message, key="stack.child_resolve",
                fix="write stack.child_resolve=late to read the child when its manager starts it",
            )  # fmt: skip
        named = view.pipeline.text("stack.child_dotfile") or stage.text("stack.child_dotfile")
        if not named and resolves != "late":
            message = f"manager {stage.id} has no child pipeline"
            fix = 'add graph [stack.child_dotfile="child.dot"]'
            yield view.at("child_dotfile", WARNING, stage, message, fix=fix)
        condition = stage.text("manager.stop_condition")
        for problem in view.reading(condition).all_problems(extended=view.extended):
            message = f"{problem.message}, at column {problem.column} of the stop condition"
            yield view.at(
                "condition_syntax", DiagnosticSeverity.error, stage, message, key="manager.stop_condition"
            )


ADVICE: Final[tuple[Check, ...]] = (
    gate_conditions,
    gate_choices,
    dead_end,
    no_way_out,
    all_conditional,
    condition_keys,
    *CONDITIONS,
    values_fit,
    budgets,
    tool_command,
    goal_missing,
    provider_known,
    agent_known,
    agent_model,
    agent_approval,
    output_schema,
    variables,
    child_dotfile,
    *GATES,
    *GUARDS,
    *REFERENCES,
    *PARALLEL,
    *WORKSPACE,
)
