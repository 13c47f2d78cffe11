"""Fields that a question shows: one that is set again after its answer, and one that a person fills in and
that is read as it was. What acts is not what was approved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from holdfast.model.checks.effect_paths import acts, set_by, until_asked
from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.graph import EdgeKind, HoldSpec, Node
from holdfast.model.hold_declaration import fields_of_hold
from holdfast.model.template import TemplateSyntaxError, compile_template


def check_shown_fields(view: ValidationView) -> None:
    if view.walk:
        return
    for hold in view.nodes.values():
        shown = set(_shown(view, hold.hold)) if hold.hold is not None and hold.hold.options else set[str]()
        if shown:
            _check(view, hold, shown)
        if hold.hold is not None and hold.hold.form:
            _check_form(view, hold, hold.hold)


def _check(view: ValidationView, hold: Node, shown: set[str]) -> None:
    start = [edge.target for edge in view.out[hold.id] if edge.kind is not EdgeKind.failure]
    for name in until_asked(view, start, hold=hold.id):
        changed = sorted(shown.intersection(set_by(view, name)))
        act = _act_that_reads(view, name, changed) if changed else None
        if act is not None:
            view.warn(
                "shown-changed",
                f"it sets {changed[0]!r}, which {hold.id!r} has shown to the person who decided, before "
                f"{act!r} acts",
                node=name,
                fix=f"set it before {hold.id!r}, or use a field of its own",
            )


def _check_form(view: ValidationView, node: Node, hold: HoldSpec) -> None:
    """What is filled in is in the result of the decision, and in `into`; a field of the same name stays."""
    if _is_read(view, fields_of_hold(hold) - {hold.bind}):
        return
    filled = dict(_filled(view, hold))
    for name in until_asked(view, [each.target for each in view.out[node.id]], hold=node.id):
        read = sorted(filled.keys() & (view.facts.reads.get(name) or ()))
        if read and acts(view, name):
            place = f"s.{hold.into}.{filled[read[0]]}" if hold.into else "into='answer' keeps it in s.answer"
            view.warn(
                "form-unread",
                f"it reads {read[0]!r} as it was before {node.id!r}, where a person fills it in",
                node=name,
                fix=f"read what was filled in: {place}"
                if place
                else "give the hold into='answer', and read that",
            )
            return


def _is_read(view: ValidationView, names: set[str]) -> bool:
    """By code, a condition or a text; code that may read any field counts."""
    code = (*view.facts.reads.values(), *view.facts.route_reads.values())
    if any(each is None or names & each for each in code):
        return True
    bare = [_without_fields(node) for node in view.nodes.values()]
    texts = texts_in(msgspec.to_builtins([bare, list(view.spec.edges)], enc_hook=repr))
    return any(not names.isdisjoint(re.findall(r"\w+", text)) for text in texts)


def _without_fields(node: Node) -> Node:
    """Without the names of the fields that it sets."""
    if node.hold is None:
        return node
    hold = msgspec.structs.replace(node.hold, bind="", into=msgspec.UNSET)
    return msgspec.structs.replace(node, hold=hold)


def _filled(view: ValidationView, hold: HoldSpec) -> Iterator[tuple[str, str]]:
    """The fields of the form, also by the names of those with whose values it is filled in beforehand."""
    sections: list[dict[str, Any]] = (hold.form or {}).get("sections") or []
    for each in sections:
        if each.get("type") == "input":
            field = str(each.get("field"))
            yield field, field
            for name in _named(view, hold, each.get("default")):
                yield name, field


def _act_that_reads(view: ValidationView, name: str, changed: list[str]) -> str | None:
    after = [edge.target for edge in view.out[name] if edge.kind is not EdgeKind.failure]
    for each in until_asked(view, after):
        read = view.facts.reads.get(each)
        if each != name and acts(view, each) and (read is None or not read.isdisjoint(changed)):
            return each
    return None


def _shown(view: ValidationView, hold: HoldSpec) -> Iterator[str]:
    """The fields in its texts."""
    labels = [option.label for option in hold.options or ()]
    yield from _named(view, hold, [hold.prompt, labels, hold.context, (hold.form or {}).get("sections")])


def _named(view: ValidationView, hold: HoldSpec, value: Any) -> Iterator[str]:
    own = fields_of_hold(hold)
    for text in texts_in(value):
        try:
            names = compile_template(text).names if "{{" in text else ()
        except TemplateSyntaxError:
            continue  # reported
        for path in names:
            inside = view.names.field(path)
            if inside is not None and inside[0] not in own:
                yield inside[0]


def texts_in(value: Any) -> Iterator[str]:
    """All texts in it, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, Any]", value).values():
            yield from texts_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in cast("list[Any]", value):
            yield from texts_in(inner)
