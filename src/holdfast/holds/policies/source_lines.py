"""The lines of rules and their fields in a file, for error messages."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

_TOML_RULE = re.compile(r"\s*\[\[\s*rules\s*\]\]")
_TOML_TABLE = re.compile(r"\s*\[")
_TOML_FIELD = re.compile(r"\s*([A-Za-z0-9_-]+)\s*[.=]")
_TOML_SUBTABLE = re.compile(r"\s*\[+\s*rules\s*\.\s*([A-Za-z0-9_-]+)")


class RuleLines:
    """(number of the rule, field) -> line; the rule's own first line under the field ''."""

    def __init__(self, found: dict[tuple[int, str], int] | None = None) -> None:
        self._found = found or {}

    def of(self, rule: int, field: str) -> int | None:
        """The line of the field; if it is not written, that of the rule."""
        head = re.split(r"[.\[]", field, maxsplit=1)[0]
        return self._found.get((rule, head), self._found.get((rule, "")))


def lines_of(text: str, form: str) -> RuleLines:
    """Empty for JSON."""
    if form == "toml":
        return RuleLines(_toml_lines(text))
    return RuleLines(_yaml_lines(text)) if form == "yaml" else RuleLines()


def _toml_lines(text: str) -> dict[tuple[int, str], int]:
    found: dict[tuple[int, str], int] = {}
    rule = -1
    inside = True
    for number, line in enumerate(text.splitlines(), 1):
        if _TOML_RULE.match(line):
            rule += 1
            inside = True
            found[rule, ""] = number
        elif part := _TOML_SUBTABLE.match(line):
            inside = False
            found.setdefault((rule, part[1]), number)
        elif _TOML_TABLE.match(line):
            inside = False
        elif inside and (field := _TOML_FIELD.match(line)):
            found.setdefault((rule, field[1]), number)
    return found


def _yaml_lines(text: str) -> dict[tuple[int, str], int]:
    yaml: Any = import_module("yaml")
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    found: dict[tuple[int, str], int] = {}
    rules: Any = root
    for key, value in _entries(root):
        found[-1, str(key.value)] = key.start_mark.line + 1
        rules = value if key.value == "rules" else rules
    for index, rule in enumerate(rules.value if getattr(rules, "id", "") == "sequence" else ()):
        found[index, ""] = rule.start_mark.line + 1
        for key, _ in _entries(rule):
            found[index, str(key.value)] = key.start_mark.line + 1
    return found


def _entries(node: Any) -> list[tuple[Any, Any]]:
    return node.value if getattr(node, "id", "") == "mapping" else []
