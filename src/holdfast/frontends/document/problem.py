"""Problems of a document: all of them at once, each with its place, its rule and a fix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from holdfast.errors import FlowInvalidError
from holdfast.frontends.document.limits import MAX_PROBLEMS
from holdfast.frontends.document.source import DocumentSource, TextProblem
from holdfast.model.checks.names import near_name
from holdfast.model.diagnostics import Severity

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the top of the document: `("nodes", 3, "config", "timeout")`."""


class DocumentProblem(msgspec.Struct, frozen=True, kw_only=True):
    """`path`: a JSON Pointer. `field`: the same for people, from the node's config or the edge on
    (`sections[2].type`). `line` and `column` count from 1; None where the document has no text."""

    rule: str
    severity: Severity = Severity.error
    message: str
    path: str = ""
    field: str = ""
    line: int | None = None
    column: int | None = None
    node: str | None = None
    edge: str | None = None
    fix: str | None = None

    def __str__(self) -> str:
        place = f"{self.line}:{self.column}: " if self.line else ""
        of = f"node {self.node!r}: " if self.node else f"edge {self.edge!r}: " if self.edge else ""
        advice = f" Fix: {self.fix}" if self.fix else ""
        return f"{place}{of}{self.message}.{advice} [{self.rule}]"


class _Found(msgspec.Struct, kw_only=True):
    problem: DocumentProblem
    path: Path
    on_key: bool
    offset: int


class ProblemReport:
    """Collects problems by path; their places in the text are looked up at the end, once."""

    def __init__(self) -> None:
        self._found: list[_Found] = []
        self._of_text: list[DocumentProblem] = []
        self.errors = 0
        self._asked = 0

    def error(self, path: Path, rule: str, message: str, fix: str | None = None, **more: Any) -> None:
        self._add(Severity.error, path, rule, message, fix, **more)

    def refuse(self, problem: TextProblem) -> None:
        """An error of the text itself."""
        self.errors += 1
        self._of_text.append(
            DocumentProblem(
                rule=problem.rule,
                message=problem.message,
                line=problem.line,
                column=problem.column,
                fix=problem.fix,
            )
        )

    def warn(self, path: Path, rule: str, message: str, fix: str | None = None, **more: Any) -> None:
        self._add(Severity.warning, path, rule, message, fix, **more)

    def hint(self, path: Path, rule: str, message: str, fix: str | None = None, **more: Any) -> None:
        self._add(Severity.hint, path, rule, message, fix, **more)

    def _add(
        self,
        severity: Severity,
        path: Path,
        rule: str,
        message: str,
        fix: str | None,
        *,
        node: str | None = None,
        edge: str | None = None,
        on_key: bool = False,
        offset: int = 0,
    ) -> None:
        """`on_key`: the key at this path is wrong, not its value. `offset`: the column inside of
        the text, from 1."""
        problem = DocumentProblem(
            rule=rule,
            severity=severity,
            message=message.rstrip("."),
            path=pointer(path),
            field=field_of(path),
            node=node,
            edge=edge,
            fix=fix,
        )
        self.errors += severity is Severity.error
        self._found.append(_Found(problem=problem, path=path, on_key=on_key, offset=offset))

    def near(self, name: str, known: Iterable[str]) -> str:
        """A question about the most similar name; empty if none is similar, or after many such questions: a
        document of nothing but misspelt names must not take long."""
        self._asked += 1
        return near_name(name, known) if self._asked <= MAX_PROBLEMS else ""

    def edges_with(self, rule: str) -> set[str | None]:
        """The edges that have this problem."""
        found = {each.problem.edge for each in self._found if each.problem.rule == rule}
        return found - {None}

    @property
    def has_errors(self) -> bool:
        return self.errors > 0

    def problems(self, source: DocumentSource | None = None) -> list[DocumentProblem]:
        """In order of place, at most `MAX_PROBLEMS`: errors are kept before warnings."""
        found = [*self._of_text, *(self._placed(each, source) for each in self._found)]
        found = list(dict.fromkeys(found))
        if len(found) > MAX_PROBLEMS:
            found = sorted(found, key=lambda each: each.severity is not Severity.error)[:MAX_PROBLEMS]
        return sorted(found, key=lambda each: (each.line or 0, each.column or 0))

    def _placed(self, found: _Found, source: DocumentSource | None) -> DocumentProblem:
        place = source.place(found.path, on_key=found.on_key) if source is not None else None
        if place is None:
            return found.problem
        inside = place.indent + found.offset - 1 if found.offset and place.inline else 0
        column = place.column + inside
        return msgspec.structs.replace(found.problem, line=place.line, column=column)


def pointer(path: Path) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def field_of(path: Path) -> str:
    """From the config of a node, the node, the edge or the top on, whichever is nearest."""
    inside = path
    if path[:1] in (("nodes",), ("edges",)) and len(path) > 2:
        inside = path[3:] if path[2] == "config" and len(path) > 3 else path[2:]
    text = ""
    for part in inside:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def errors_of(problems: Iterable[DocumentProblem]) -> list[DocumentProblem]:
    return [each for each in problems if each.severity is Severity.error]


def require_valid_document(name: str, problems: list[DocumentProblem]) -> None:
    """Raises FlowInvalidError that lists every error; `facts["problems"]` has warnings and hints too."""
    errors = errors_of(problems)
    if not errors:
        return
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    lines = "\n".join(f"  - {each}" for each in errors)
    which = "the document" if name == "?" else f"the document {name!r}"  # it may be its name that is missing
    raise FlowInvalidError(f"{which} has {count}:\n{lines}", flow=name, problems=problems)
