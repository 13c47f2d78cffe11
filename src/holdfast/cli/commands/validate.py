"""`holdfast validate`: checks pipelines written in DOT."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from holdfast.cli.app import Json, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.output.screen import print_json, print_line
from holdfast.errors import InputError, PipelineSyntaxError
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity

FORMATS = ("text", "json", "sarif")
_STYLES = {
    DiagnosticSeverity.error: "red",
    DiagnosticSeverity.warning: "yellow",
    DiagnosticSeverity.info: "dim",
}


@app.command(
    epilog="Examples:  holdfast validate build.dot   ·   holdfast validate build.dot ship.dot --strict   ·   "
    "holdfast validate build.dot --format sarif > out.sarif   ·   holdfast validate - < build.dot"
)
def validate(
    files: Annotated[list[str], typer.Argument(help="Pipelines in DOT; - for stdin", metavar="FILE")],
    strict: Annotated[
        bool, typer.Option("--strict", help="Strict grammar: tolerated deviations are errors")
    ] = False,
    form: Annotated[Text, typer.Option("--format", help="text, json or sarif", metavar="FORM")] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", help="Handler type that you registered; may be repeated", metavar="NAME"),
    ] = None,
    json: Json = False,
) -> int:
    """Check pipelines and report every problem with its position."""
    return run_async(
        validate_files(files, strict=strict, form=form or ("json" if json else "text"), types=types or [])
    )


class CheckedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one file. No pipeline if its text could not be parsed."""

    file: str
    diagnostics: tuple[Diagnostic, ...]
    name: str = ""
    stages: int = 0
    edges: int = 0

    @property
    def valid(self) -> bool:
        return not any(each.severity is DiagnosticSeverity.error for each in self.diagnostics)

    def count(self, severity: DiagnosticSeverity) -> int:
        return sum(each.severity is severity for each in self.diagnostics)


async def validate_files(files: Sequence[str], *, strict: bool, form: str, types: Sequence[str]) -> Exit:
    from holdfast.cli.output.sarif import sarif_log

    if form not in FORMATS:
        raise InputError(f"unknown --format {form!r}.", hint=f"Use one of: {', '.join(FORMATS)}.")
    checked = [check(file, strict=strict, types=types) for file in files]
    if form == "sarif":
        print_json(sarif_log([each for one in checked for each in one.diagnostics]))
    elif form == "json":
        print_json({"valid": all(one.valid for one in checked), "files": [_json(one) for one in checked]})
    else:
        for one in checked:
            _print_checked(one)
    return Exit.ok if all(one.valid for one in checked) else Exit.bad_input


def check(file: str, *, strict: bool = False, types: Sequence[str] = ()) -> CheckedFile:
    """An unreadable file becomes a diagnostic, so that the other files are still checked."""
    from holdfast.frontends.dot.handler_kinds import BUILT_IN
    from holdfast.frontends.dot.transforms import prepare

    try:
        prepared = prepare(read_pipeline(file), path=file, strict=strict, known_types=BUILT_IN | set(types))
    except PipelineSyntaxError as error:
        found: Any = error.facts["diagnostics"]
        return CheckedFile(file=file, diagnostics=tuple(found))
    except InputError as error:
        result = Diagnostic(
            rule="file",
            severity=DiagnosticSeverity.error,
            message=error.message.rstrip("."),
            fix=error.hint or "",
            path=file,
        )
        return CheckedFile(file=file, diagnostics=(result,))
    pipeline = prepared.pipeline
    return CheckedFile(
        file=file,
        diagnostics=tuple(sorted(prepared.diagnostics, key=_order)),
        name=pipeline.name,
        stages=len(pipeline.stages),
        edges=len(pipeline.links),
    )


def read_pipeline(file: str) -> bytes:
    """`-` is stdin. Raises InputError."""
    if file == "-":
        return sys.stdin.buffer.read()
    if file.lower().endswith(".py"):
        raise InputError(
            f"{file} is not a pipeline.", hint="Flows are checked when they are loaded: holdfast graph."
        )
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{file} cannot be read: {why}.", hint="Name a file in DOT, or - for stdin."
        ) from None


def _order(diagnostic: Diagnostic) -> tuple[str, int, int]:
    return diagnostic.path, diagnostic.place.line, diagnostic.place.column


def _print_checked(checked: CheckedFile) -> None:
    for each in checked.diagnostics:
        print_line(str(each), _STYLES[each.severity])
    counts = [(checked.count(each), each) for each in (DiagnosticSeverity.error, DiagnosticSeverity.warning)]
    words = [f"{count} {severity}{'' if count == 1 else 's'}" for count, severity in counts if count]
    size = f"{_count_text(checked.stages, 'stage')}, {_count_text(checked.edges, 'edge')}"
    verdict = f"valid: {checked.name}, {size}" if checked.valid else "not valid"
    print_line(f"{checked.file}: {verdict}{'; ' + ', '.join(words) if words else ''}")


def _count_text(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _json(checked: CheckedFile) -> dict[str, Any]:
    return {
        "file": checked.file,
        "valid": checked.valid,
        "name": checked.name,
        "stages": checked.stages,
        "edges": checked.edges,
        "diagnostics": [_diagnostic(each) for each in checked.diagnostics],
    }


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "rule": diagnostic.rule,
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        "node_id": diagnostic.node_id or None,
        "edge": list(diagnostic.edge) if diagnostic.edge else None,
        "fix": diagnostic.fix or None,
        "file": diagnostic.path,
        "line": diagnostic.place.line,
        "column": diagnostic.place.column,
    }
