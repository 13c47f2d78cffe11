"""Reads the declaration of a hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from holdfast.frontends.python.inline import inlined
from holdfast.frontends.python.policies import DeclarationReader, Duration
from holdfast.model.approver_edits import FIELD, KINDS, data_schema, section
from holdfast.model.forms import field_kinds
from holdfast.model.forms.compile import SUBMIT, CompiledForm, compile_form
from holdfast.model.forms.json_schema import sections_of
from holdfast.model.graph import HoldSpec
from holdfast.model.hold_declaration import read_option
from holdfast.model.hold_terms import read_terms
from holdfast.types.duration import DurationError, is_business, parse_length
from holdfast.types.hold import Option
from holdfast.types.terms import HoldTerms


class FormOptions(NamedTuple):
    form: Any
    sections: Any
    allow_extra: bool
    into: str | None
    modifies: Mapping[str, str] | None


def hold_spec(
    read: DeclarationReader,
    *,
    prompt: str,
    options: Sequence[str | Option | Mapping[str, Any]] | None,
    assignee: str | None,
    timeout: Duration | None,
    on_timeout: str | Mapping[str, str] | None,
    priority: str,
    type: str,  # noqa: A002
    bind: str,
    context: Mapping[str, Any] | None,
    schema: Any,
    form: FormOptions,
    terms: Mapping[str, Any],
) -> HoldSpec:
    modifies = _modifies(read, form.modifies)
    found = _form(read, form, modifies)
    agreed = read_terms(terms, _action(on_timeout), read.wrong)
    normal = _options(read, options)
    if found is not None and found.options is not None and normal is not None:
        read.wrong("hold-form", "it has options and a decision section", "remove one of them")
    return HoldSpec(
        type=_text(read, "type", type) or "approval",
        prompt=_text(read, "prompt", prompt),
        options=normal if found is None else found.options or normal or (SUBMIT,),
        assignee=assignee,
        priority=priority,
        **_timeout(read, timeout),
        on_timeout=agreed.on_timeout,
        bind=bind,
        context=_context(read, context),
        schema=_schema(read, schema) or (data_schema(modifies) if modifies and found is None else None),
        form=found.form if found is not None else msgspec.UNSET,
        into=form.into or msgspec.UNSET,
        reminder=agreed.reminder or msgspec.UNSET,
        tags=agreed.tags or msgspec.UNSET,
        terms=msgspec.UNSET if agreed.terms == HoldTerms() else agreed.terms,
        modifies=modifies or msgspec.UNSET,
    )


def _modifies(read: DeclarationReader, given: Mapping[str, str] | None) -> dict[str, str]:
    for kind in given or {}:
        if kind not in KINDS:
            read.wrong("hold-modifies", f"{kind!r} cannot be changed", f"write one of {', '.join(KINDS)}")
    return {kind: field for kind, field in (given or {}).items() if kind in KINDS}


def _timeout(read: DeclarationReader, given: Duration | None) -> dict[str, Any]:
    """A timeout that is known only when the question is asked is stored as written."""
    if not isinstance(given, str) or not ("{{" in given or is_business(given)):
        return {"timeout": read.duration(given, "timeout")}
    if "{{" not in given:
        try:
            parse_length(given)
        except DurationError as error:
            read.wrong("duration", f"timeout: {error}")
            return {}
    return {"wait": given}


def _form(read: DeclarationReader, given: FormOptions, modifies: Mapping[str, str]) -> CompiledForm | None:
    sections = given.sections
    if given.form is not None:
        if sections is not None:
            read.wrong("hold-form", "it has form= and sections=", "remove one of them")
        schema = _schema(read, given.form)
        try:
            sections = sections_of(schema or {})
        except ValueError as error:
            read.wrong("hold-form", f"no form can be made of {given.form!r}: {error}")
            return None
    if not sections and not isinstance(sections, str):
        return None
    if modifies and isinstance(sections, list | tuple):
        sections = _with_changes(cast("Sequence[Any]", sections), modifies)
    # A model's own defaults are values, whatever they contain.
    found = compile_form(sections, allow_extra=given.allow_extra, templates=given.form is None)
    for problem in found.problems:
        read.wrong("hold-form", problem)
    if not found.problems:
        return found
    # Of a form without problems these are found with the graph.
    for warning in found.warnings:
        read.wrong(
            "field-kind", warning.partition(";")[0], f"use one of {', '.join(sorted(field_kinds.KINDS))}"
        )
    return None


def _with_changes(sections: Sequence[Any], modifies: Mapping[str, str]) -> list[Any]:
    """Adds the field for changes: a form accepts only fields that it asks for."""
    fields = [cast("Mapping[str, Any]", each).get("field") for each in sections if isinstance(each, Mapping)]
    return [*sections] if FIELD in fields else [*sections, section(modifies)]


def _options(read: DeclarationReader, given: Any) -> tuple[Option, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        read.wrong("hold-options", f"options={given!r} is not a list", 'write options=["approve", "reject"]')
        return None
    return tuple(_option(read, each) for each in cast("Iterable[Any]", given))


def _option(read: DeclarationReader, given: Any) -> Option:
    try:
        return read_option(given)
    except ValueError as error:
        read.wrong("hold-option", str(error), 'write "approve", or {"id": ..., "label": ...}')
        return Option("?", "?")


def _text(read: DeclarationReader, what: str, given: Any) -> str:
    if isinstance(given, str):
        return given
    read.wrong(f"hold-{what}", f"{what}={given!r} is not text")
    return ""


def _context(read: DeclarationReader, given: Any) -> dict[str, Any]:
    if given is None or isinstance(given, Mapping):
        return dict(cast("Mapping[str, Any]", given or {}))
    read.wrong(
        "hold-context", f"context={given!r} is not a mapping", 'write context={"amount": "{{amount}}"}'
    )
    return {}


def _action(given: str | Mapping[str, str] | None) -> str | None:
    if given is None or isinstance(given, str):
        return given
    target = given.get("target")
    return f"{given.get('action', '')}:{target}" if target else given.get("action", "")


def _schema(read: DeclarationReader, given: Any) -> dict[str, Any] | None:
    """A JSON Schema, given as such or as a type."""
    if given is None or isinstance(given, dict):
        return given  # type: ignore[return-value]
    try:
        made = (
            given.model_json_schema() if hasattr(given, "model_json_schema") else msgspec.json.schema(given)
        )
        return inlined(made)
    except (TypeError, ValueError) as error:
        read.wrong("hold-schema", f"no schema can be made of {given!r}: {error}")
        return None
