"""Diagnostics of a pipeline: the rule, the severity, the problem, its place and a fix."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from holdfast.frontends.dot.document import NOWHERE, SourceLocation


class DiagnosticSeverity(StrEnum):
    error = "error"
    warning = "warning"
    info = "info"


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    rule: str
    severity: DiagnosticSeverity
    message: str
    node_id: str = ""
    edge: tuple[str, str] | None = None
    fix: str = ""
    place: SourceLocation = NOWHERE
    path: str = ""

    def __str__(self) -> str:
        where = ":".join(map(str, filter(None, (self.path, self.place.line, self.place.column))))
        fix = f" ({self.fix})" if self.fix else ""
        return f"{where + ': ' if where else ''}{self.severity}: {self.message}{fix} [{self.rule}]"
