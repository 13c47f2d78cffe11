"""A field that a question shows, set again after its answer: what acts is not what was approved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

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


def _act_that_reads(view: ValidationView, name: str, changed: list[str]) -> str | None:
    after = [edge.target for edge in view.out[name] if edge.kind is not EdgeKind.failure]
    for each in until_asked(view, after):
        read = view.facts.reads.get(each)
        if each != name and acts(view, each) and (read is None or not read.isdisjoint(changed)):
            return each
    return None


def _shown(view: ValidationView, hold: HoldSpec) -> Iterator[str]:
    """The fields in its texts."""
    own = fields_of_hold(hold)
    labels = [option.label for option in hold.options or ()]
    for text in _texts([hold.prompt, labels, hold.context, (hold.form or {}).get("sections")]):
        try:
            names = compile_template(text).names if "{{" in text else ()
        except TemplateSyntaxError:
            continue  # reported
        for path in names:
            inside = view.names.field(path)
            if inside is not None and inside[0] not in own:
                yield inside[0]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, Any]", value).values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in cast("list[Any]", value):
            yield from _texts(inner)
