"""JSON Schemas of Python types, and parsing by them: for the arguments of tools and typed answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, cast, get_args, get_origin

import msgspec

from holdfast.errors import InputError
from holdfast.holds.forms.json_schema import problems_in
from holdfast.model.annotations import field_types, is_pydantic
from holdfast.model.checks.json_schemas import schema_faults

Read = Callable[[str], Any]
"""From JSON text to a value. Raises ValueError with the problem and its place."""


def parameters_of(fn: Callable[..., Any], name: str, without: frozenset[str]) -> type[msgspec.Struct]:
    """A struct of the function's parameters, without those that the model does not set."""
    try:
        hints = field_types(fn)
    except AttributeError:
        hints = {}
    fields: list[Any] = []
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.name in without:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InputError(
                f"tool {name!r}: its parameter {parameter.name!r} cannot be given by name.",
                hint="Write plain named parameters with types.",
            )
        annotation = _described(hints.get(parameter.name, Any))
        empty = parameter.default is parameter.empty
        fields.append(
            (parameter.name, annotation) if empty else (parameter.name, annotation, parameter.default)
        )
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def _described(annotation: Any) -> Any:
    """`Annotated[str, "the order's number"]` is enough to describe a parameter."""
    if get_origin(annotation) is not Annotated:
        return annotation
    inner, *extras = get_args(annotation)
    for extra in extras:
        inner = Annotated[inner, msgspec.Meta(description=extra) if isinstance(extra, str) else extra]
    return inner


def schema_of(kind: Any, where: str) -> dict[str, Any]:
    """The schema with all references resolved. Raises InputError for a type without a schema."""
    if isinstance(kind, dict):
        return _checked(_in_place(cast("dict[str, Any]", kind), where), where)
    try:
        whole: dict[str, Any] = kind.model_json_schema() if is_pydantic(kind) else msgspec.json.schema(kind)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where}: {kind!r} has no JSON Schema: {error}.", hint="Use plain types."
        ) from error
    return _in_place(whole, where)


def _in_place(schema: dict[str, Any], where: str) -> dict[str, Any]:
    """Its definitions stand where they are referred to: a form is made of the schema."""
    named: dict[str, Any] = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    whole = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
    return cast("dict[str, Any]", _without_refs(whole, named, where, ()))


def _checked(schema: dict[str, Any], where: str) -> dict[str, Any]:
    faults = schema_faults(schema)
    if faults:
        raise InputError(
            f"{where}: the schema is not valid: {'; '.join(faults)}.", hint="Correct the schema."
        )
    return schema


def _without_refs(part: Any, named: dict[str, Any], where: str, within: tuple[str, ...]) -> Any:
    if isinstance(part, list):
        return [_without_refs(each, named, where, within) for each in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    whole = cast("dict[str, Any]", part)
    ref = whole.get("$ref")
    if not isinstance(ref, str):
        return {key: _without_refs(value, named, where, within) for key, value in whole.items()}
    name = ref.rpartition("/")[2]
    if name in within:
        raise InputError(f"{where}: the type {name!r} contains itself.", hint="Use a type without recursion.")
    if name not in named:
        raise InputError(f"{where}: the schema has no {ref}.", hint="Define it under $defs.")
    rest = {key: value for key, value in whole.items() if key != "$ref"}
    return {**_without_refs(named[name], named, where, (*within, name)), **rest}


def reader_of(kind: Any) -> Read:
    """How JSON text becomes a value of this type, or a dict that fits this schema."""
    if isinstance(kind, dict):
        return _by_schema(_in_place(cast("dict[str, Any]", kind), "the schema"))
    if is_pydantic(kind):
        return cast("Read", kind.model_validate_json)
    return msgspec.json.Decoder(kind).decode


def _by_schema(schema: dict[str, Any]) -> Read:
    def read(text: str) -> Any:
        value = msgspec.json.decode(text)
        problems = problems_in(value, schema)
        if problems:
            raise ValueError("; ".join(problems))
        return value

    return read
