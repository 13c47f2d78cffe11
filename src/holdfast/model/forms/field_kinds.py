"""The kinds of sections and fields, and the limits of a form."""

from __future__ import annotations

from typing import Final

SECTIONS: Final = ("context", "input", "decision")
TEXTS: Final = frozenset(
    {"text", "textarea", "markdown", "code", "diff", "phone", "user", "secret-reference"}
)
CHOICES: Final = frozenset({"select", "radio", "multiselect"})
NUMBERS: Final = frozenset({"number", "integer", "percent", "currency"})
TIMES: Final = frozenset({"date", "datetime", "time", "duration"})
KINDS: Final = TEXTS | CHOICES | NUMBERS | TIMES | {"boolean", "email", "url", "file", "json", "table"}
CONDITIONS: Final = ("visible_if", "required_if", "readonly_if")
COMMON: Final = frozenset({"type", "title", "help", "visible_if", "extras"})
CONTEXT: Final = COMMON | {"content"}
DECISION: Final = COMMON | {"field", "label", "options"}
INPUT: Final = COMMON | {
    "field", "kind", "label", "required", "required_if", "readonly", "readonly_if", "default", "original",
    "min", "max", "step", "pattern", "min_length", "max_length", "options", "currency", "locale", "columns",
    "schema", "max_size", "accept",
}  # fmt: skip

MAX_SECTIONS: Final = 200
MAX_FORM: Final = 256 * 1024
"""Maximum size of a form in bytes, as written."""
MAX_DEPTH: Final = 20
