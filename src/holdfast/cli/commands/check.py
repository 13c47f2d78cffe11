"""`holdfast check`: every problem of flows and pipelines, with its place, rule and fix."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from holdfast.cli.app import Functions, Json, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json
from holdfast.errors import HoldfastError, InputError, PipelineSyntaxError
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import SourceLocation
from holdfast.model.diagnostics import GraphProblem, Severity
from holdfast.model.fingerprint import graph_fingerprint

if TYPE_CHECKING:
    from holdfast.app.flow import Flow
    from holdfast.frontends.document.problem import DocumentProblem

FORMATS: Final = ("text", "json", "sarif")
PIPELINES: Final = (".dot", ".gv")
DOCUMENTS: Final = (".yaml", ".yml", ".json")
_STYLES: Final = {
    DiagnosticSeverity.error: "red",
    DiagnosticSeverity.warning: "yellow",
    DiagnosticSeverity.info: "dim",
}
_SEVERITIES: Final = {
    Severity.error: DiagnosticSeverity.error,
    Severity.warning: DiagnosticSeverity.warning,
    Severity.hint: DiagnosticSeverity.info,
}


@app.command(
    epilog="Examples:  holdfast check refund.py   ·   holdfast check shop.flows:refund build.dot   ·   "
    "holdfast check refund.py --format sarif > out.sarif"
)
def check(
    what: Annotated[
        list[str],
        typer.Argument(
            help="path/to/file.py[:name], package.module[:name], file.yaml or file.dot",
            metavar="FILE|MODULE|PIPELINE|DOCUMENT",
        ),
    ],
    strict: Annotated[
        bool, typer.Option("--strict", help="Pipelines: strict grammar, tolerated deviations are errors")
    ] = False,
    form: Annotated[Text, typer.Option("--format", help="text, json or sarif", metavar="FORM")] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type", help="Pipelines: handler type that you registered; may be repeated", metavar="NAME"
        ),
    ] = None,
    functions: Functions = None,
    json: Json = False,
) -> int:
    """Report every problem of flows, documents and pipelines.

    A flow's module is imported, but nothing is run. Exit code 1: at least one has an error; 2: one of them
    could not be read or loaded.
    """
    chosen = form or ("json" if json else "text")
    return run_async(
        check_all(what, strict=strict, form=chosen, types=types or [], functions=functions or [])
    )


_UNREADABLE: Final = "file"
"""The rule of what cannot be read or loaded: the command was used wrongly, and says nothing about a flow."""


class CheckedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one flow or pipeline. No name if it could not be parsed or loaded. `size`: its nodes or
    stages, which `unit` says."""

    file: str
    diagnostics: tuple[Diagnostic, ...]
    name: str = ""
    size: int = 0
    edges: int = 0
    unit: str = "stage"
    version: str = ""
    problems: tuple[dict[str, Any], ...] = ()
    """Of a document: the diagnostics with all that is known of each."""

    @property
    def valid(self) -> bool:
        return not any(each.severity is DiagnosticSeverity.error for each in self.diagnostics)

    def count(self, severity: DiagnosticSeverity) -> int:
        return sum(each.severity is severity for each in self.diagnostics)


async def check_all(
    what: Sequence[str], *, strict: bool, form: str, types: Sequence[str], functions: Sequence[str] = ()
) -> Exit:
    checked = [
        one for spec in what for one in check_spec(spec, strict=strict, types=types, functions=functions)
    ]
    return print_checked(checked, form)


def check_spec(
    spec: str, *, strict: bool = False, types: Sequence[str] = (), functions: Sequence[str] = ()
) -> list[CheckedFile]:
    """The flows of a module, or one pipeline or document. What cannot be loaded becomes a diagnostic, so that
    the rest is still checked."""
    if spec == "-" or spec.lower().endswith(PIPELINES):
        return [check_pipeline(spec, strict=strict, types=types)]
    if spec.lower().endswith(DOCUMENTS):
        return [check_document(spec, functions)]
    from holdfast.app.loader import load_flows

    if Path(spec).is_dir():
        return [CheckedFile(file=spec, diagnostics=(_unreadable(spec, _folder(spec)),), unit="node")]
    try:
        return [check_flow(flow, spec) for flow in load_flows(spec)]
    except HoldfastError as error:
        return [CheckedFile(file=spec, diagnostics=(_unreadable(spec, error),), unit="node")]


def _folder(spec: str) -> InputError:
    """A folder is not loaded: its other files may do anything when they are imported."""
    found = sorted(each for each in Path(spec).iterdir() if each.suffix in (".py", *PIPELINES))
    named = " ".join(map(str, found[:5])) + (" ..." if len(found) > 5 else "")
    hint = f"Name its files: holdfast check {named}" if found else "It has no .py and no .dot files."
    return InputError(f"{spec} is a folder.", hint=hint)


def check_flow(flow: Flow, file: str) -> CheckedFile:
    from holdfast.frontends.python.lower import lower
    from holdfast.queues.allow_list import queue_problems
    from holdfast.queues.settings import queue_settings

    lowered = lower(flow)
    ends = {edge.id: (edge.source, edge.target) for edge in lowered.spec.edges}
    problems = [*lowered.problems, *queue_problems(lowered.spec, queue_settings(None))]
    found = [diagnostic_of(problem, ends) for problem in problems]
    return CheckedFile(
        file=file,
        diagnostics=tuple(sorted(found, key=_order)),
        name=flow.name,
        size=len(lowered.spec.nodes),
        edges=len(lowered.spec.edges),
        unit="node",
    )


def check_document(file: str, functions: Sequence[str] = ()) -> CheckedFile:
    from holdfast.cli.document_run import compile_file

    try:
        compiled = compile_file(file, functions)
    except HoldfastError as error:
        return CheckedFile(file=file, diagnostics=(_unreadable(file, error),), unit="node")
    spec, document = compiled.spec, compiled.document
    return CheckedFile(
        file=file,
        diagnostics=tuple(_of_document(each, file) for each in compiled.problems),
        name=compiled.name,
        size=len(document.nodes) if document is not None else 0,
        edges=len(document.edges) if document is not None else 0,
        unit="node",
        version="" if spec is None else graph_fingerprint(spec),
        problems=tuple({**msgspec.to_builtins(each), "file": file} for each in compiled.problems),
    )


def _of_document(problem: DocumentProblem, file: str) -> Diagnostic:
    of = f"node {problem.node!r}: " if problem.node else f"edge {problem.edge!r}: " if problem.edge else ""
    return Diagnostic(
        rule=problem.rule,
        severity=_SEVERITIES[problem.severity],
        message=f"{of}{problem.message}",
        node_id=problem.node or "",
        fix=problem.fix or "",
        place=SourceLocation(problem.line or 0, problem.column or 0),
        path=file,
    )


def diagnostic_of(problem: GraphProblem, ends: dict[str, tuple[str, str]]) -> Diagnostic:
    """A problem of a graph in the form that pipelines have."""
    return Diagnostic(
        rule=problem.rule,
        severity=_SEVERITIES[problem.severity],
        message=problem.text,
        node_id=problem.node or "",
        edge=ends.get(problem.edge or ""),
        fix=problem.fix or "",
        place=SourceLocation(problem.line, 1 if problem.line else 0),
        path=_relative(problem.file),
    )


def _relative(file: str) -> str:
    """As a reader of the output, or a code scanner, finds it from here."""
    try:
        return str(Path(file).resolve().relative_to(Path.cwd())) if file else ""
    except (ValueError, OSError):
        return file


def _unreadable(file: str, error: HoldfastError) -> Diagnostic:
    return Diagnostic(
        rule=_UNREADABLE,
        severity=DiagnosticSeverity.error,
        message=error.message.rstrip("."),
        fix=error.hint or "",
        path=file,
    )


def check_pipeline(file: str, *, strict: bool = False, types: Sequence[str] = ()) -> CheckedFile:
    """An unreadable file becomes a diagnostic, so that the other files are still checked."""
    from holdfast.frontends.dot.handler_kinds import BUILT_IN
    from holdfast.frontends.dot.transforms import prepare

    try:
        prepared = prepare(read_pipeline(file), path=file, strict=strict, known_types=BUILT_IN | set(types))
    except PipelineSyntaxError as error:
        found: Any = error.facts["diagnostics"]
        return CheckedFile(file=file, diagnostics=tuple(found))
    except InputError as error:
        return CheckedFile(file=file, diagnostics=(_unreadable(file, error),))
    pipeline = prepared.pipeline
    return CheckedFile(
        file=file,
        diagnostics=tuple(sorted(prepared.diagnostics, key=_order)),
        name=pipeline.name,
        size=len(pipeline.stages),
        edges=len(pipeline.links),
    )


def read_pipeline(file: str) -> bytes:
    """`-` is stdin. Raises InputError."""
    if file == "-":
        return sys.stdin.buffer.read()
    if file.lower().endswith(".py"):
        raise InputError(f"{file} is not a pipeline.", hint=f"Flows are checked by: holdfast check {file}.")
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{file} cannot be read: {why}.", hint="Name a file in DOT, or - for stdin."
        ) from None


def _order(diagnostic: Diagnostic) -> tuple[str, int, int]:
    return diagnostic.path, diagnostic.place.line, diagnostic.place.column


def print_checked(checked: Sequence[CheckedFile], form: str) -> Exit:
    """In one of FORMATS. Raises InputError for another."""
    from holdfast.cli.output.sarif import sarif_log

    if form not in FORMATS:
        raise InputError(f"unknown --format {form!r}.", hint=f"Use one of: {', '.join(FORMATS)}.")
    if form == "sarif":
        print_json(sarif_log([each for one in checked for each in one.diagnostics]))
    elif form == "json":
        print_json({"valid": all(one.valid for one in checked), "files": [_json(one) for one in checked]})
    else:
        for one in checked:
            _print_text(one)
    if any(each.rule == _UNREADABLE for one in checked for each in one.diagnostics):
        return Exit.bad_input
    return Exit.ok if all(one.valid for one in checked) else Exit.run_failed


def _print_text(checked: CheckedFile) -> None:
    for each in checked.diagnostics:
        print_line(str(each), _STYLES[each.severity])
    counts = [(checked.count(each), each) for each in (DiagnosticSeverity.error, DiagnosticSeverity.warning)]
    words = [f"{count} {severity}{'' if count == 1 else 's'}" for count, severity in counts if count]
    size = f"{_count_text(checked.size, checked.unit)}, {_count_text(checked.edges, 'edge')}"
    verdict = f"valid: {checked.name}, {size}" if checked.valid else "not valid"
    print_line(f"{checked.file}: {verdict}{'; ' + ', '.join(words) if words else ''}")


def _count_text(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _json(checked: CheckedFile) -> dict[str, Any]:
    return {
        "file": checked.file,
        "valid": checked.valid,
        "name": checked.name,
        f"{checked.unit}s": checked.size,
        "edges": checked.edges,
        **({"version": checked.version} if checked.version else {}),
        "diagnostics": list(checked.problems) or [_diagnostic(each) for each in checked.diagnostics],
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
