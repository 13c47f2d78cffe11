"""Schemas of the OpenAPI document as Python types, and the models that answers need."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
REF = "#/components/schemas/"
RENAMED = {"FiguresWire": "Figures", "ViewWire": "SavedView"}
TEMPORAL = "date-time"


class Schemas:
    """Answers take what a newer server may say: words of a list are any word. Arguments are strict."""

    def __init__(self, components: dict[str, Schema]) -> None:
        self.components = components

    # ------------------------------------------------------------------ names
    def model(self, name: str) -> str:
        bare = name.removesuffix("Wire")
        free = bare not in self.components and bare not in RENAMED.values()
        return re.sub(r"\W", "_", RENAMED.get(name, bare if free else name))

    def of(self, schema: Schema) -> tuple[str, Schema] | None:
        """(name, schema) behind a reference."""
        if "$ref" not in schema:
            return None
        name = schema["$ref"].removeprefix(REF)
        return name, self.components[name]

    def item_of_page(self, schema: Schema) -> str | None:
        """What the pages of a list hold, where this is one."""
        found = self.of(schema)
        if found is None or not found[1].get("title", "").startswith("Page["):
            return None
        items = self.of(found[1]["properties"]["items"]["items"])
        return None if items is None else items[0]

    # ------------------------------------------------------------------ types
    def answer(self, schema: Schema, prefix: str = "") -> str:
        found = self.of(schema)
        if found is not None:
            return "str" if "enum" in found[1] else f"{prefix}{self.model(found[0])}"
        if "anyOf" in schema:
            kinds = [self.answer(each, prefix) for each in schema["anyOf"]]
            # Of several objects nothing tells msgspec which one it is.
            return "Any" if len(self._objects(schema["anyOf"])) > 1 else _union(kinds)
        match schema.get("type"):
            case "array":
                return f"list[{self.answer(schema.get('items', {}), prefix)}]"
            case "object":
                return f"dict[str, {self._values(schema, self.answer, prefix)}]"
            case _:
                return _plain(schema)

    def _objects(self, several: list[Schema]) -> list[Schema]:
        behind = [found[1] if (found := self.of(each)) else each for each in several]
        return [each for each in behind if each.get("type") == "object"]

    def argument(self, schema: Schema, prefix: str = "models.") -> str:
        found = self.of(schema)
        if found is not None:
            name = f"{prefix}{self.model(found[0])}"
            return name if "enum" in found[1] else f"{name} | Mapping[str, Any]"
        if "anyOf" in schema:
            return _union([self.argument(each, prefix) for each in schema["anyOf"]])
        if "enum" in schema:
            return literal(schema)
        match schema.get("type"):
            case "array":
                return f"Sequence[{self.argument(schema.get('items', {}), prefix)}]"
            case "object":
                return f"Mapping[str, {self._values(schema, self.argument, prefix)}]"
            case "string" if schema.get("format") == TEMPORAL:
                return "str | datetime"
            case _:
                return _plain(schema)

    def _values(self, schema: Schema, kind: Any, prefix: str) -> str:
        more = schema.get("additionalProperties")
        return kind(more, prefix) if isinstance(more, dict) else "Any"

    # ------------------------------------------------------------------ models
    def reached(self, roots: list[Schema]) -> list[str]:
        """Every component that those lead to."""
        found: list[str] = []
        waiting = [name for root in roots for name in _named(root)]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.append(name)
                waiting += _named(self.components[name])
        return sorted(found, key=self.model)

    def define(self, name: str) -> str:
        schema = self.components[name]
        if "enum" in schema:
            return f"{self.model(name)} = {literal(schema)}\n"
        return self._struct(name, schema)

    def _struct(self, name: str, schema: Schema) -> str:
        about = schema.get("description", "")
        lines = [f"class {self.model(name)}(Model, kw_only=True):"]
        lines += [f'    """{_paragraph(about)}"""', ""] if about else []
        required = set(schema.get("required", ()))
        for field, shape in schema.get("properties", {}).items():
            kind = self.answer(shape)
            known = field_name(field)
            if known != field or known == "etag":
                raise ValueError(f"{name}.{field}: a field of that name needs a rename in the model")
            default = "" if field in required else f" = {_default(shape)}"
            nullable = not default.endswith("None") or kind == "Any" or kind.endswith("| None")
            lines.append(f"    {known}: {kind if nullable else f'{kind} | None'}{default}")
        if not schema.get("properties"):
            lines.append("    pass")
        return "\n".join(lines) + "\n"


def literal(schema: Schema) -> str:
    return f"Literal[{', '.join(repr(each) for each in schema['enum'])}]"


def field_name(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _plain(schema: Schema) -> str:
    if "enum" in schema:
        return "str"
    known = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
    return known.get(str(schema.get("type")), "Any")


def _union(kinds: list[str]) -> str:
    each = list(dict.fromkeys(part for kind in kinds for part in kind.split(" | ")))
    each = [kind for kind in each if kind != "None"] + (["None"] if "None" in each else [])
    return "Any" if "Any" in each else " | ".join(each)


def _default(shape: Schema) -> str:
    default = shape.get("default", shape.get("x-default"))
    return repr(list(default) if isinstance(default, tuple) else default)


def _named(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(REF)
        for each in schema.values():
            yield from _named(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _named(each)


def _paragraph(text: str, indent: int = 4) -> str:
    """Filled anew: the document's lines are those of other margins."""
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    filled = [
        textwrap.fill(part, 104 - indent, break_long_words=False, break_on_hyphens=False) for part in parts
    ]
    return textwrap.indent("\n\n".join(filled), " " * indent).strip().replace("\\", "\\\\")


paragraph = _paragraph
