"""Results of validation: every problem at once, each with its place, its rule and a fix."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from holdfast.errors import FlowInvalidError


class Severity(StrEnum):
    error = "error"
    warning = "warning"
    hint = "hint"


class GraphProblem(msgspec.Struct, frozen=True, kw_only=True):
    """`rule` is stable and can be tested for; `fix` says what to write instead. `file` and `line`: where the
    node or edge is declared, if that is known."""

    rule: str
    severity: Severity = Severity.error
    message: str
    node: str | None = None
    edge: str | None = None
    fix: str | None = None
    file: str = ""
    line: int = 0

    @property
    def text(self) -> str:
        """The message, with the node or edge that it is about."""
        place = f"node {self.node!r}: " if self.node is not None else ""
        if self.edge is not None:
            place = f"edge {self.edge!r}: "
        return f"{place}{self.message}"

    def __str__(self) -> str:
        if not self.fix:
            return f"{self.text} [{self.rule}]"
        ends = "" if self.text.endswith((".", "?", "!", ":")) else "."
        return f"{self.text}{ends} Fix: {self.fix} [{self.rule}]"


def errors_in(problems: Iterable[GraphProblem]) -> list[GraphProblem]:
    return [problem for problem in problems if problem.severity is Severity.error]


def require_valid(flow: str, problems: list[GraphProblem]) -> None:
    """Raises FlowInvalidError that lists every error; `facts["problems"]` has warnings and hints too."""
    errors = errors_in(problems)
    if not errors:
        return
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    lines = "\n".join(f"  - {problem}" for problem in errors)
    raise FlowInvalidError(f"flow {flow!r} has {count}:\n{lines}", flow=flow, problems=problems)
