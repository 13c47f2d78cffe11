"""Rules for gates: whom they ask, what a timeout answers, and conditions that take one answer for another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Link, Stage
from holdfast.frontends.dot.parallel_regions import FAN_IN, stages_in_branches
from holdfast.frontends.dot.rule_context import Check, RuleContext, name_list
from holdfast.model.edge_labels import split_label
from holdfast.model.graph import GATE
from holdfast.model.hold_declaration import assignee_fault, exclusion_fault, kind_fault
from holdfast.model.hold_terms import read_terms
from holdfast.model.pipeline_conditions import Clause
from holdfast.types.decision_words import approves, refuses
from holdfast.types.terms import PRIORITIES

ERROR, WARNING = DiagnosticSeverity.error, DiagnosticSeverity.warning
_SELECTED, _LABEL = "human.gate.selected", "human.gate.label"
_TEMPLATED: Final = ("$", "{{")


def gate_terms(view: RuleContext) -> Iterator[Diagnostic]:
    """What a gate cannot ask with fails it when it is reached."""
    for stage in view.of_kind(GATE):
        for name in ("assignee", "escalate", "excluded", "priority", "reminder"):
            key = f"human.{name}" if stage.text(f"human.{name}") else name
            text = stage.text(key)
            if text and not any(mark in text for mark in _TEMPLATED):
                for severity, fault in _faults(name, text):
                    yield view.at(
                        "gate_terms", severity, stage, f"{key} of gate {stage.id}: {fault}", key=key
                    )


def _faults(name: str, text: str) -> Iterator[tuple[DiagnosticSeverity, str]]:
    if name in ("assignee", "escalate"):
        fault, kind = assignee_fault(text), kind_fault(text)
        if fault is not None:
            yield ERROR, f"{text!r}: {fault}"
        elif kind is not None:
            yield WARNING, f"{text!r} is taken for the id of one person, because {kind}"
    elif name == "excluded":
        for each in filter(None, (part.strip() for part in text.split(","))):
            fault = exclusion_fault(each)
            if fault is not None:
                yield ERROR, f"{each!r}: {fault}"
    elif name == "priority" and text not in PRIORITIES:
        yield ERROR, f"{text!r} is not one of {', '.join(PRIORITIES)}"
    elif name == "reminder":
        found: list[str] = []
        read_terms({"reminder": text}, None, lambda _rule, message, _fix: found.append(message))
        yield from ((ERROR, each) for each in found)


def gate_defaults(view: RuleContext) -> Iterator[Diagnostic]:
    """EX-5: a timeout that approves."""
    for stage in view.of_kind(GATE):
        key = "human.default_choice"
        chosen = stage.text(key).strip().casefold()
        label = next(
            (link.label or link.target for link in view.leaving(stage) if chosen in _names(link)), ""
        )
        if chosen and approves(_bare(label)):
            message = f"the timeout of gate {stage.id} chooses {label!r}: it is approved without a person"
            yield view.at("gate_defaults", WARNING, stage, message, key=key)


def _names(link: Link) -> set[str]:
    label = link.label or link.target
    key = split_label(label)[0] or label.strip()[:1]
    return {each.casefold() for each in (link.target, key, label, _bare(label))}


def _bare(label: str) -> str:
    return split_label(label)[1] or label.strip()


def other_choices(view: RuleContext) -> Iterator[Diagnostic]:
    """`human.gate.selected!=R` behind a gate of three answers: the third leads on as the approval does."""
    gates = [(stage, found) for stage in view.of_kind(GATE) if len(found := _answers(view, stage)) > 2]
    asking: dict[str, list[Link]] = {}
    for links in view.conditions.values() if gates else ():
        for link in links:
            asking.setdefault(link.source, []).append(link)
    for source, links in asking.items():
        for link in links:
            for clauses in view.reading(link.condition).alternatives:
                yield from _not_named(view, link, _compared(clauses, "!="), gates, _compared(clauses, "="))
        named = {name for link in links for name in _named_alone(view, link)}
        stage = view.pipeline.stages.get(source)
        plain = [link for link in view.leaving(stage) if not link.condition] if stage is not None else []
        for link in plain if any(_is_refusal(gates, each) for each in named) else ():
            yield from _not_named(view, link, named, gates, set())


def _not_named(
    view: RuleContext,
    link: Link,
    named: set[str],
    gates: Iterable[tuple[Stage, dict[str, str]]],
    chosen: set[str],
) -> Iterator[Diagnostic]:
    for stage, answers in gates:
        left = [key for key in answers if not named & {key, answers[key]}]
        known = {name for pair in answers.items() for name in pair}
        if named and named <= known and not chosen and len(left) > 1:
            message = (
                f"the edge {link.source} -> {link.target} is taken after {name_list(left)} of gate "
                f"{stage.id}: a choice that is not named counts like the approval"
            )
            fix = f"name what is meant: context.{_SELECTED}={left[0]}"
            yield view.at("other_choices", WARNING, link, message, key="condition", fix=fix)
            return


def _answers(view: RuleContext, stage: Stage) -> dict[str, str]:
    """By key, the label as it is written."""
    labels = [link.label or link.target for link in view.leaving(stage)]
    return {(split_label(each)[0] or each.strip()[:1]).upper(): each for each in labels}


def _compared(clauses: Iterable[Clause], operator: str) -> set[str]:
    keys = (_SELECTED, _LABEL)
    return {c.literal for c in clauses if c.key.removeprefix("context.") in keys and c.operator == operator}


def _named_alone(view: RuleContext, link: Link) -> set[str]:
    alternatives = view.reading(link.condition).alternatives
    return set[str]().union(*(_compared(clauses, "=") for clauses in alternatives))


def _is_refusal(gates: Iterable[tuple[Stage, dict[str, str]]], literal: str) -> bool:
    labels = [label for _, answers in gates for key, label in answers.items() if literal in (key, label)]
    return any(refuses(_bare(label)) for label in labels)


def gate_branches(view: RuleContext) -> Iterator[Diagnostic]:
    """A refusal that ends its branch as a success: the fan-in counts and merges what was refused."""
    gates = view.of_kind(GATE)
    inside = stages_in_branches(view.pipeline, view.kinds) if gates else set[str]()
    for stage in gates:
        for link in view.leaving(stage) if stage.id in inside else ():
            label = link.label or link.target
            if view.kinds.get(link.target) == FAN_IN and not link.condition and refuses(_bare(label)):
                message = (
                    f"the answer {label!r} of gate {stage.id} ends its branch as a success: {link.target} "
                    "counts and merges what was refused"
                )
                fix = "lead it to a stage that fails, for example the command `false`"
                yield view.at("gate_branches", WARNING, link, message, key="label", fix=fix)


GATES: Final[tuple[Check, ...]] = (gate_terms, gate_defaults, gate_branches, other_choices)
