"""Schemas of the OpenAPI document in a form that linters accept and generators of clients read correctly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

Schema = dict[str, Any]
PREFIX = "#/components/schemas/"
GIVEN_DEFAULT = "x-default"
"""The default of a field that a caller may leave out. Generators of TypeScript take `default` as a promise
that the value is there, and would require every such field of a caller."""


def prepare_schemas(document: Schema) -> None:
    """Changes the document: no schema that nothing uses, objects of any shape say so, and what callers send
    has no `default` but `x-default`."""
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    components: dict[str, Schema] = document["components"]["schemas"]
    used = reached(components, operations)
    for name in [name for name in components if name not in used]:
        del components[name]
    for part in _objects(document):
        # Without it, generators make an object that may have no property at all.
        if part.get("type") == "object" and "properties" not in part:
            part.setdefault("additionalProperties", True)
    for name in reached(components, [each.get("requestBody", {}) for each in operations]):
        for field in components[name].get("properties", {}).values():
            _mark_default(field)


def _mark_default(field: Schema) -> None:
    if "default" not in field:
        return
    default = field[GIVEN_DEFAULT] = field.pop("default")
    if default not in (None, [], (), {}, ""):
        about = field.get("description", "").rstrip(".")
        field["description"] = f"{about}{'. ' if about else ''}Default: {_shown(default)}."


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def reached(components: dict[str, Schema], roots: Iterable[Any]) -> set[str]:
    """The names of all schemas that those refer to, directly or through others."""
    found: set[str] = set()
    waiting = [name for root in roots for name in _references(root)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(components[name])
    return found


def _references(part: Any) -> Iterator[str]:
    for each in _objects(part):
        reference = each.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(PREFIX)


def _objects(part: Any) -> Iterator[Schema]:
    """Every JSON object in it."""
    if isinstance(part, dict):
        whole = cast("Schema", part)
        yield whole
        for each in whole.values():
            yield from _objects(each)
    elif isinstance(part, list):
        for each in cast("list[Any]", part):
            yield from _objects(each)
