"""Rules for gates: whom they ask, what a timeout answers, and conditions that take one answer for another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Link, Stage
from holdfast.frontends.dot.parallel_regions import FAN_IN, Regions, reach
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
_ANSWER: Final = "human.gate."
_LOOKED_AT: Final = 20  # fan-outs: finding their branches looks at the whole pipeline
_TEMPLATED: Final = ("$", "{{")
_WORK: Final = frozenset({"codergen", "tool", "stack.manager_loop"})


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
    """EX-5: a timeout that approves, by its word or because only it leads to work. And a failure, such as a
    timeout without a default, that jumps to where an answer leads."""
    for stage in view.of_kind(GATE):
        links, key = view.leaving(stage), "human.default_choice"
        chosen = stage.text(key).strip().casefold()
        default = next((link for link in links if chosen and chosen in _names(link)), None)
        if default is not None and (_approves(default) or _alone_works(view, default, links)):
            label = default.label or default.target
            message = f"the timeout of gate {stage.id} chooses {label!r}: it is approved without a person"
            yield view.at("gate_defaults", WARNING, stage, message, key=key)
        for jump in ("retry_target", "fallback_retry_target"):
            target = stage.text(jump)
            if target and target != stage.id and any(link.target == target for link in links):
                message = (
                    f"a failure of gate {stage.id}, such as a timeout, jumps to {target}, as an answer does"
                )
                yield view.at(
                    "gate_defaults", WARNING, stage, message, key=jump, fix="jump to a stage before it"
                )


def _approves(link: Link) -> bool:
    return approves(_bare(link.label or link.target))


def _refuses(link: Link) -> bool:
    return refuses(_bare(link.label or link.target))


def _works(view: RuleContext, link: Link) -> bool:
    return view.kinds.get(link.target) in _WORK


def _alone_works(view: RuleContext, link: Link, links: Iterable[Link]) -> bool:
    return _works(view, link) and not any(_works(view, each) for each in links if each.target != link.target)


def gate_exchanged(view: RuleContext) -> Iterator[Diagnostic]:
    """Answers that lead where the other one should, or to the same stage while nothing reads which it was."""
    ends = {stage.id for stage in view.exits}
    for stage in view.of_kind(GATE):
        links = view.leaving(stage)
        yes = {link.target for link in links if _approves(link)}
        for link in filter(_refuses, links):
            label = link.label or link.target
            if link.target in yes - ends and not _is_answer_read(view):
                message = (
                    f"the answer {label!r} of gate {stage.id} leads to {link.target}, as the approval does"
                )
                fix = f"lead it elsewhere, or read context.{_SELECTED} behind it"
                yield view.at("gate_exchanged", WARNING, link, message, key="label", fix=fix)
            elif yes and yes <= ends and _works(view, link) and not _leads_back(view, link.target, stage.id):
                message = (
                    f"the answer {label!r} of gate {stage.id} leads to {link.target}, and the approval ends"
                )
                fix = "exchange the targets if they are mistaken"
                yield view.at("gate_exchanged", WARNING, link, message, key="label", fix=fix)


def _is_answer_read(view: RuleContext) -> bool:
    """Anywhere: by a condition, or in a text of a stage."""
    texts = [*view.conditions]
    texts += [str(value) for stage in view.pipeline.stages.values() for value in stage.attrs.values()]
    return any(_ANSWER in text or "preferred_label" in text for text in texts)


def _leads_back(view: RuleContext, start: str, gate: str) -> bool:
    seen, todo = {start}, [start]
    while todo:
        for link in view.pipeline.outgoing.get(todo.pop(), ()):
            if link.target == gate:
                return True
            if link.target not in seen:
                seen.add(link.target)
                todo.append(link.target)
    return False


def gate_keys(view: RuleContext) -> Iterator[Diagnostic]:
    """A condition on a key that two answers of a gate share, because their labels begin with one letter."""
    for condition, links in view.conditions.items():
        clauses = [each for all_of in view.reading(condition).alternatives for each in all_of]
        for clause in clauses:
            if clause.key.removeprefix("context.") != _SELECTED:
                continue
            for stage in view.of_kind(GATE):
                shared = [each for each in view.leaving(stage) if _key(each) == clause.literal]
                labels = dict.fromkeys(each.label or each.target for each in shared)
                if len(labels) > 1:
                    message = (
                        f"the condition reads {_SELECTED}, which is {clause.literal} for {name_list(labels)}"
                    )
                    fix = "give each label a key of its own: [K] Label"
                    yield view.at("gate_keys", WARNING, links[0], message, key="condition", fix=fix)


def _key(link: Link) -> str:
    label = link.label or link.target
    return (split_label(label)[0] or label.strip()[:1]).upper()


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
    """A refusal that ends its branch as a success: the fan-in counts and merges what was refused. Or as a
    failure, after which the fan-out is a partial success and what follows it runs."""
    gates = {stage.id: stage for stage in view.of_kind(GATE)}
    regions = Regions(view.pipeline, view.kinds)
    for fan in islice(view.of_kind("parallel"), _LOOKED_AT) if gates else ():
        region = regions.of(fan.id, frozenset())
        inside = reach(region.starts, regions.following, region.stops) - region.stops
        for stage in (gates[name] for name in sorted(inside & gates.keys())):
            for link in filter(_refuses, view.leaving(stage)):
                yield from _refused_in_branch(view, stage, link, fan, region.join)


def _refused_in_branch(
    view: RuleContext, gate: Stage, link: Link, fan: Stage, join: str
) -> Iterator[Diagnostic]:
    label = link.label or link.target
    if view.kinds.get(link.target) == FAN_IN and not link.condition:
        message = (
            f"the answer {label!r} of gate {gate.id} ends its branch as a success: {link.target} "
            "counts and merges what was refused"
        )
        fix = "lead it to a stage that fails, for example the command `false`"
        yield view.at("gate_branches", WARNING, link, message, key="label", fix=fix)
    elif not _fails_whole(fan) and _goes_on(view, join) and not _leads_back(view, link.target, gate.id):
        message = f"the answer {label!r} of gate {gate.id} ends its branch only: what follows {join} runs too"
        fix = f"write error_policy=fail_fast on {fan.id}, or put the gate behind {join}"
        yield view.at("gate_branches", WARNING, link, message, key="label", fix=fix)


def _fails_whole(fan: Stage) -> bool:
    """Whether one failed branch fails the fan-out; a number of branches is its author's choice."""
    return fan.text("error_policy") == "fail_fast" or fan.text("join_policy") in ("k_of_n", "quorum")


def _goes_on(view: RuleContext, join: str) -> bool:
    """Whether work follows the fan-in whatever the branches came to."""
    stage = view.pipeline.stages.get(join)
    links = () if stage is None else view.leaving(stage)
    return any(_works(view, link) for link in links) and not any(link.condition for link in links)


GATES: Final[tuple[Check, ...]] = (
    gate_terms, gate_defaults, gate_exchanged, gate_keys, gate_branches, other_choices,
)  # fmt: skip
