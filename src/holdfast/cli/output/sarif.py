"""Diagnostics in the Static Analysis Results Interchange Format, version 2.1.0, as code scanners read it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from holdfast._version import __version__
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {
    DiagnosticSeverity.error: "error",
    DiagnosticSeverity.warning: "warning",
    DiagnosticSeverity.info: "note",
}


def sarif_log(diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """One run of one tool, with the rules that have something to say."""
    rules = sorted({each.rule for each in diagnostics})
    index = {rule: number for number, rule in enumerate(rules)}
    driver = {"name": "holdfast", "version": __version__, "rules": [{"id": rule} for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, index[each.rule]) for each in diagnostics],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    text = f"{diagnostic.message}. Fix: {diagnostic.fix}" if diagnostic.fix else diagnostic.message
    return {
        "ruleId": diagnostic.rule,
        "ruleIndex": rule,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": text},
        "locations": [_location(diagnostic)],
    }


def _location(diagnostic: Diagnostic) -> dict[str, Any]:
    artifact: dict[str, Any] = {"artifactLocation": {"uri": _uri(diagnostic.path)}}
    if diagnostic.place.line:
        artifact["region"] = {
            "startLine": diagnostic.place.line,
            "startColumn": max(diagnostic.place.column, 1),
        }
    location: dict[str, Any] = {"physicalLocation": artifact}
    name = diagnostic.node_id or " -> ".join(diagnostic.edge or ())
    if name:
        location["logicalLocations"] = [{"name": name, "kind": "node" if diagnostic.node_id else "edge"}]
    return location


def _uri(path: str) -> str:
    if path in ("", "-"):
        return "stdin"
    place = Path(path)
    return place.as_uri() if place.is_absolute() else quote(place.as_posix())
