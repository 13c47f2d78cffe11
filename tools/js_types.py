"""Schemas of the OpenAPI document as types of TypeScript."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
GENERIC = re.compile(r"^(\w+)\[(\w+)\]$")


class Types:
    """`of` says what a schema is called and takes note of it; `declared` are all that were named so."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._known: dict[str, dict[str, Any]] = document["components"]["schemas"]
        self._named: set[str] = set()

    def of(self, schema: dict[str, Any], *, given: bool = False) -> str:
        """`given`: it is sent, not answered."""
        if "$ref" in schema:
            return self._reference(schema["$ref"].rpartition("/")[2])
        if "enum" in schema:
            return " | ".join(json.dumps(each) for each in schema["enum"])
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(self.of(each, given=given) for each in schema["anyOf"]))
        match schema.get("type"):
            case None:
                return "unknown"
            case "array":
                item = self.of(schema.get("items", {}), given=given)
                return f"({item})[]" if "|" in item else f"{item}[]"
            case "object":
                return self._object(schema, given)
            case "string" if given and schema.get("format") == "date-time":
                return "string | Date"
            case kind:
                return PLAIN[kind]

    def _object(self, schema: dict[str, Any], given: bool) -> str:
        if "properties" in schema:
            return self.members(schema, given=given)
        more = schema.get("additionalProperties")
        return f"Record<string, {self.of(more, given=given) if isinstance(more, dict) else 'unknown'}>"

    def _reference(self, name: str) -> str:
        if found := GENERIC.match(self._known[name].get("title", "")):
            self._named.add(name)
            return f"{found[1]}<{self._reference(found[2])}>"
        self._named.add(name)
        return name

    def members(self, schema: dict[str, Any], *, given: bool = False) -> str:
        """Those that the document does not promise or demand may be missing."""
        required = set(schema.get("required", ()))
        lines = [
            f"{comment(each.get('description', ''), '  ')}"
            f"  {_name(name)}{'' if name in required else '?'}: {self.of(each, given=given)};"
            for name, each in schema["properties"].items()
        ]
        return "{\n" + "\n".join(lines) + "\n}" if lines else "{}"

    def fields(self, schema: dict[str, Any]) -> set[str]:
        return set(self._whole(schema).get("properties", ()))

    def may_be_empty(self, schema: dict[str, Any]) -> bool:
        """Whether an object without any field fits: the client sends it for a caller who gives none."""
        whole = self._whole(schema)
        return "properties" in whole and not whole.get("required")

    def item(self, schema: dict[str, Any]) -> str:
        """Of a page."""
        return self.of(self._whole(schema)["properties"]["items"]["items"])

    def _whole(self, schema: dict[str, Any]) -> dict[str, Any]:
        return self._known[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema

    def declared(self) -> Iterator[str]:
        """Also what only these name."""
        listed: set[str] = set()
        found: dict[str, str] = {}
        while waiting := self._named - listed:
            for name in sorted(waiting):
                listed.add(name)
                title, text = self._declaration(name)
                found.setdefault(title, text)
        return iter(text for _, text in sorted(found.items()))

    def _declaration(self, name: str) -> tuple[str, str]:
        schema = self._known[name]
        about = comment(schema.get("description", ""), "")
        if generic := GENERIC.match(schema.get("title", "")):
            members = self.members(schema).replace(f"{generic[2]}[]", "T[]")
            return generic[1], f"{about}export interface {generic[1]}<T> {members}"
        if "properties" in schema:
            return name, f"{about}export interface {name} {self.members(schema)}"
        return name, f"{about}export type {name} = {self.of(schema)};"


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name)


def comment(text: str, indent: str) -> str:
    lines = [line.strip() for line in text.replace("*/", "* /").strip().splitlines()]
    if not lines:
        return ""
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    result = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{result}{indent} */\n"
