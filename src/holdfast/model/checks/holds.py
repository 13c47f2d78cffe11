"""Rules for holds: the assignee, the possible answers, and what happens at the timeout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final, cast

import msgspec

from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.checks.names import near_name
from holdfast.model.checks.shown_fields import texts_in
from holdfast.model.checks.value_types import TEXT
from holdfast.model.forms.compile import compile_form
from holdfast.model.forms.field_kinds import CONDITIONS, KINDS
from holdfast.model.graph import HoldSpec, Node
from holdfast.model.hold_declaration import (
    ASSIGNEE_KINDS,
    assignee_fault,
    decision_fields,
    default_of,
    kind_fault,
)
from holdfast.model.hold_terms import seatless_veto
from holdfast.types.decision_words import approves
from holdfast.types.hold import Option
from holdfast.types.skill import RESOLVED_SKILLS
from holdfast.types.terms import PRIORITIES, HoldTerms
from holdfast.types.text import clean_text

_TIMEOUTS: Final = "cancel, default_option, fail, escalate:<assignee>, branch:<node>"


def check_hold(view: ValidationView, node: Node, hold: HoldSpec) -> None:
    view.template(hold.prompt, "its prompt", node=node.id)
    for option in hold.options or ():
        if isinstance(option.label, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            view.template(option.label, f"the label of its option {option.id!r}", node=node.id)
    _assignee(view, node, hold.assignee or "", "assignee")
    for rung in hold.terms.ladder if hold.terms else ():
        _assignee(view, node, rung.to, "ladder")
    for name, value in hold.context.items():
        for text in texts_in(value):
            view.template(text, f"its context {name!r}", node=node.id)
    if RESOLVED_SKILLS in hold.context:
        problem = (
            f"its context has the reserved key {RESOLVED_SKILLS!r}, which is replaced by the run's skills"
        )
        view.warn("hold-context", problem, node=node.id, fix="use another key")
    view.one_of("hold-priority", hold.priority, PRIORITIES, node=node.id)
    view.field_name(hold.bind, "bind", node=node.id, implied="decision")
    if view.facts.given is not None and hold.bind in view.facts.given:
        view.warn(
            "hold-bind",
            f"its decision is stored in {hold.bind!r}, which the input of a run gives",
            node=node.id,
            fix="store it in a field that is no input",
        )
    _veto(view, node, hold)
    _before(view, node, hold)
    _options(view, node, hold)
    _option_types(view, node, hold)
    _timeout(view, node, hold)
    _form(view, node, hold)
    for fault in [] if hold.schema is None else schema_faults(hold.schema):
        view.error("hold-schema", fault, node=node.id)


def _assignee(view: ValidationView, node: Node, text: Any, what: str) -> None:
    if not isinstance(text, str):
        view.error("assignee", f"its {what} {clean_text(repr(text), 80)} is not text", node=node.id)
        return
    view.template(text, f"its {what}", node=node.id)
    fault = assignee_fault(text)
    if fault is not None:
        view.error(
            "assignee", f"its {what} {text!r}: {fault}", node=node.id, fix="write user:NAME or role:KEY"
        )
    # It is one person's id then (AS-3), so it is no error.
    unknown = kind_fault(text)
    if unknown is not None:
        problem, _, fix = unknown.partition(": ")
        fix = near_name(text.partition(":")[0].strip(), ASSIGNEE_KINDS) or fix
        message = f"its {what} {text!r} is taken for the id of one person, because {problem}"
        view.warn("assignee", message, node=node.id, fix=fix)


def _veto(view: ValidationView, node: Node, hold: HoldSpec) -> None:
    alone = seatless_veto(hold.terms.approval, hold.assignee) if hold.terms else None
    if alone is not None:
        view.warn(
            "veto-seat",
            f"{alone!r} has a veto and no seat: they are not asked, and others can approve before they look",
            node=node.id,
            fix="name them in `of` too, so that they are asked; mode 'sequential' waits for each seat",
        )


def _before(view: ValidationView, node: Node, hold: HoldSpec) -> None:
    first = view.spec.defaults.get(hold.bind)
    if isinstance(first, str) and approves(first, hold.options):
        view.warn(
            "approving-default",
            f"{hold.bind!r} is {first!r} before a person has decided, and after a timeout that branches",
            node=node.id,
            fix="give it an empty default, or none",
        )


def _form(view: ValidationView, node: Node, hold: HoldSpec) -> None:
    if hold.into:
        view.field_name(hold.into, "into", node=node.id)
        if hold.into in decision_fields(hold):
            # Its edges would ask the form, and none of them would be taken.
            message = f"its form is stored in {hold.into!r}, in place of its decision"
            view.error("hold-into", message, node=node.id, fix="give into= another name")
    for kind, field in (hold.modifies or {}).items():
        view.field_name(field, f"modifies[{kind!r}]", node=node.id)
    if not hold.form:
        return
    found = compile_form(hold.form.get("sections"), templates=not hold.form.get("literal"))
    for problem in found.problems:
        view.error("hold-form", problem, node=node.id)
    for section in hold.form.get("sections", ()):
        _section(view, node, section, literal=bool(hold.form.get("literal")))
    if hold.schema is not None:
        view.error("hold-form", "it has both a form and a schema", node=node.id, fix="remove one of them")


def _section(view: ValidationView, node: Node, section: Mapping[str, Any], *, literal: bool) -> None:
    where = f"its field {section['field']!r}" if section.get("field") else "a section of its form"
    if "asked_as" in section:
        view.error(
            "field-kind",
            f"{where} has the kind {section['asked_as']!r}, which does not exist",
            node=node.id,
            fix=near_name(section["asked_as"], KINDS) or f"use one of {', '.join(sorted(KINDS))}",
        )
    for column in section.get("columns") or ():
        if isinstance(column, Mapping):
            _section(view, node, cast("Mapping[str, Any]", column), literal=literal)
    if not literal:
        for text in texts_in({name: value for name, value in section.items() if name not in CONDITIONS}):
            view.template(text, where, node=node.id)


def _options(view: ValidationView, node: Node, hold: HoldSpec) -> None:
    if hold.options is None:
        return
    if not hold.options:
        view.error(
            "hold-options", "its list of options is empty", node=node.id, fix="leave it out for a free answer"
        )
    for name, count in Counter(option.id for option in hold.options).items():
        if not name.strip():
            view.error("hold-options", "an option has an empty id", node=node.id, fix="give it an id")
        elif "{{" in name:
            problem = f"the option's id {name!r} must not have placeholders: edges and answers refer to it"
            view.error("hold-options", problem, node=node.id, fix="give it an id, and this text as its label")
        elif count > 1:
            problem = f"{count} options have the id {name!r}"
            view.error("hold-options", problem, node=node.id, fix="give each another id")
    _confusable(view, node, hold.options)
    flagged = [option.id for option in hold.options if option.default is True]
    if len(flagged) > 1:
        problem = f"{', '.join(flagged)} are all marked as the default"
        view.error("hold-options", problem, node=node.id, fix="mark only one of them")
    odd = [option.id for option in hold.options if not _sound_flags(option)]
    if odd:
        fix = "write default=True"
        view.error("hold-options", f"a flag of {', '.join(odd)} is not True or False", node=node.id, fix=fix)


def _confusable(view: ValidationView, node: Node, options: Sequence[Option]) -> None:
    """Options that a person, or an edge, takes for one another."""

    def refuse(problem: str, fix: str) -> None:
        view.error("hold-options", problem, node=node.id, fix=fix)

    for first, second in combinations(options, 2):
        if first.id == second.id:
            continue
        one, other = _plain_text(first.label), _plain_text(second.label)
        if _plain_text(first.id) == _plain_text(second.id):
            spelled = f"its options {first.id!r} and {second.id!r} differ only in their spelling"
            refuse(spelled, "give one of them another id")
        elif one == other:
            same = f"its options {first.id!r} and {second.id!r} have the same label {first.label!r}"
            refuse(same, "give each a label of its own")
        elif one == _plain_text(second.id) or other == _plain_text(first.id):
            crossed = f"the label of one of its options {first.id!r} and {second.id!r} is the id of the other"
            refuse(crossed, "exchange the labels, or the ids")


def _plain_text(text: object) -> str:
    return str(text).strip().casefold()


def _sound_flags(option: Option) -> bool:
    flags: list[Any] = [option.default, option.requires_comment]
    return all(flag is msgspec.UNSET or isinstance(flag, bool) for flag in flags)


def _timeout(view: ValidationView, node: Node, hold: HoldSpec) -> None:
    terms = hold.terms or HoldTerms()
    action, _, target = (hold.on_timeout or "fail").partition(":")
    if action == "escalate":
        _escalation(view, node, target)
    elif action == "branch":
        _expired_value(view, node, hold)
        if target not in view.nodes:
            view.error(
                "timeout-branch",
                f"on_timeout leads to {target!r}, which does not exist",
                node=node.id,
                fix="name a node of this flow",
            )
    elif action not in ("cancel", "default", "default_option", "fail", "expired") or target:
        view.error(
            "on-timeout",
            f"on_timeout {hold.on_timeout!r} is not one of {_TIMEOUTS}",
            node=node.id,
            fix=f"use {_TIMEOUTS}",
        )
    if (action in ("default", "default_option") and not target) or terms.final_action == "default_option":
        _default(view, node, hold, terms)
    if hold.wait:
        view.template(hold.wait, "its timeout", node=node.id)
    _never(view, node, hold, terms)


def _expired_value(view: ValidationView, node: Node, hold: HoldSpec) -> None:
    """Nobody decided: the field gets its default, or null if its type allows that."""
    spec = view.spec
    about: Any = (spec.fields or {}).get(hold.bind)
    if about is None or hold.bind in spec.defaults or hold.bind in spec.reducers:
        return
    if not {"None", "Any", "object", ""}.intersection(str(about.get("type", "")).split(" | ")):
        view.error(
            "timeout-value",
            f"after its timeout {hold.bind!r} has no decision, and the state declares no value for that",
            node=node.id,
            fix=f"give the field {hold.bind!r} a default, or allow None",
        )


def _option_types(view: ValidationView, node: Node, hold: HoldSpec) -> None:
    """An option that the state's field does not accept would fail the run after a person decided."""
    known = view.names.type_at((hold.bind,))
    if known.families is None or hold.bind in view.spec.reducers:
        return
    for option in hold.options or ():
        if TEXT not in known.families or (known.values is not None and option.id not in known.values):
            view.error(
                "option-type",
                f"its option {option.id!r} does not fit the type of the field {hold.bind!r}",
                node=node.id,
                fix=f"add it to the type of {hold.bind!r}, or correct the option",
            )


def _escalation(view: ValidationView, node: Node, target: str) -> None:
    if not target.strip():
        view.error(
            "escalate-target",
            "its escalation has no target",
            node=node.id,
            fix='write "escalate:role:manager"',
        )
    _assignee(view, node, target, "escalation")


def _default(view: ValidationView, node: Node, hold: HoldSpec, terms: HoldTerms) -> None:
    """A timeout may decide only as the author wrote it, and never approve without a warning (EX-5)."""
    found, ids = default_of(hold.options, terms), [option.id for option in hold.options or ()]
    if terms.default_option is not None and ids and terms.default_option not in ids:
        known = ", ".join(ids)
        view.error("default-option", f"its default {found!r} is not one of {known}", node=node.id)
    elif found not in ids and terms.default_option is None:
        # 'default' is no value that a typed state declares, and no edge of the flow asks for it.
        report = view.error if view.names.typed else view.warn
        report(
            "default-option",
            "on_timeout is default_option, but no option is marked as the default: the flow gets 'default'",
            node=node.id,
            fix='mark one: {"id": "reject", "default": True}, or write default_option="reject"',
        )
    if approves(found, hold.options):
        view.warn(
            "approving-default",
            f"its timeout answers {found!r}: it is approved without a person",
            node=node.id,
        )


def _never(view: ValidationView, node: Node, hold: HoldSpec, terms: HoldTerms) -> None:
    ends = hold.timeout is not None or bool(hold.wait) or any(rung.after for rung in terms.ladder)
    if ends:
        return
    if terms.ladder:
        view.error("no-timeout", "its ladder has no duration", node=node.id, fix="add timeout=")
    elif hold.on_timeout is not None:
        view.warn(
            "no-timeout",
            "it has on_timeout but no timeout: it never expires",
            node=node.id,
            fix="add timeout=",
        )
