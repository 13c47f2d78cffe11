"""Flow documents (`file.yaml`, `file.json`) on the command line: read, check, run and resume them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.app.loader import absolute, load_module
from holdfast.cli.drive import start_run
from holdfast.cli.drive_and_print import drive_and_print, drive_started
from holdfast.cli.flow_check import print_warnings
from holdfast.cli.main import Exit
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.options.store import known_sources, open_store_for_command, remember_source
from holdfast.cli.output.results import print_created, shown_run
from holdfast.documents.functions import functions_of
from holdfast.documents.program import DocumentDialect, default_site, program_for
from holdfast.documents.queue_allow_list import require_listed_queues
from holdfast.errors import InputError
from holdfast.frontends.document.available_names import NOWHERE, DocumentSite, FoundFlow, UnusableFlow
from holdfast.frontends.document.compile import DIALECT, CompiledDocument, compile_document
from holdfast.frontends.document.document import NAME
from holdfast.frontends.document.problem import errors_of
from holdfast.frontends.document.read import format_of, read_text
from holdfast.model.diagnostics import Severity
from holdfast.model.fingerprint import graph_fingerprint
from holdfast.model.graph import Graph, GraphSpec
from holdfast.model.program import Program
from holdfast.queues.settings import queue_settings
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow

DOCUMENTS: Final = (".yaml", ".yml", ".json")


def is_document(spec: str) -> bool:
    return spec.lower().endswith(DOCUMENTS)


def site_with(functions: Iterable[str]) -> DocumentSite:
    """What this process offers, with the functions of these modules. Raises InputError."""
    modules = [load_module(spec) for spec in functions]
    # After they are loaded, which registers their tools and their functions of other names.
    site = default_site()
    found = dict(site.functions or {})
    for module in modules:
        found |= functions_of(module)
    return msgspec.structs.replace(site, functions=found)


def compile_file(file: str, functions: Iterable[str] = ()) -> CompiledDocument:
    """Raises InputError for a file that cannot be read."""
    read = read_text(read_file(file), format_of(file))
    compiled = compile_document(read, _site_beside(file, site_with(functions)))
    return require_listed_queues(compiled, read, queue_settings(None))


def _site_beside(file: str, site: DocumentSite, around: tuple[Path, ...] = ()) -> DocumentSite:
    """With the flows of the files beside this one as sub-flows: `kyc` is kyc.yaml, kyc.yml or kyc.json."""
    inside = (*around, Path(file).resolve())

    def find(name: str, version: str) -> FoundFlow | UnusableFlow | None:
        if re.fullmatch(NAME, name) is None:
            return None  # a path leads to no other folder
        for place in (Path(file).parent / f"{name}{ending}" for ending in DOCUMENTS):
            if place.is_file():
                return _flow_of_file(place, version, site, inside)
        return None

    return msgspec.structs.replace(site, flows=cache(find))


def _flow_of_file(
    place: Path, version: str, site: DocumentSite, around: tuple[Path, ...]
) -> FoundFlow | UnusableFlow | None:
    if place.resolve() in around:
        return UnusableFlow(rule="subflow-cycle", why=f"{place.name} contains itself, through other files")
    read = read_text(read_file(str(place)), format_of(place.name))
    compiled = compile_document(read, _site_beside(str(place), site, around))
    if compiled.spec is None:
        first = errors_of(compiled.problems)[0]
        around_again = first.rule == "subflow-cycle"
        why = f"{place.name}:{first}"
        return UnusableFlow(rule="subflow-cycle" if around_again else "subflow-invalid", why=why)
    found = graph_fingerprint(compiled.spec)
    return FoundFlow(version=found, spec=compiled.spec) if version in ("", found) else None


def graph_of_file(file: str) -> Graph:
    """Without looking up what it names. Raises FlowInvalidError."""
    site = _site_beside(file, NOWHERE)
    return Graph(compile_document(read_text(read_file(file), format_of(file)), site).require_valid())


def read_file(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{file} cannot be read: {why}.", hint="Name a document in YAML or JSON.") from None


def load_checked_document(file: str, functions: Iterable[str] = ()) -> Program:
    """Raises FlowInvalidError that lists every error; warnings are printed."""
    functions = list(functions)
    compiled = compile_file(file, functions)
    print_warnings(f"{file}:{each}" for each in compiled.problems if each.severity is Severity.warning)
    return program_for(compiled, site_with(functions))


async def run_document(
    file: str,
    given: Any,
    options: dict[str, Any],
    manner: OutputOptions,
    *,
    functions: list[str],
    detach: bool,
) -> Exit:
    if detach and manner.watch:
        raise InputError("--detach and --watch cannot both be given.", hint="Use one of them.")
    program = load_checked_document(file, functions)
    async with open_store_for_command(manner.store, must_exist=False, engine=manner.engine) as hf:
        service = await hf.service()
        return await start_document(service, program, given, options, manner, functions, detach=detach)


async def start_document(
    service: RunService,
    program: Program,
    given: Any,
    options: dict[str, Any],
    manner: OutputOptions,
    functions: list[str],
    *,
    detach: bool,
) -> Exit:
    given = {} if given is None else given
    if functions:
        # Before it is advanced: after a crash `holdfast resume RUN` needs them.
        remember_source(manner.store, program.version, ",".join(map(absolute, functions)))
    if detach:
        row, fresh = await service.create(program, given, **options)
        print_created(await shown_run(service.store, row), manner, fresh=fresh)
        return Exit.ok
    started = await start_run(service, program, given, **options)
    return await drive_started(service, program, started, manner)


async def resume_document(
    service: RunService, row: RunRow, functions: list[str], manner: OutputOptions
) -> Exit:
    """`functions`: else those that the run was started with."""
    known = known_sources(manner.store).get(row.version, "")
    names = functions or [each for each in known.split(",") if each]
    service.runtime.dialects = {**service.runtime.dialects, **document_dialect(names)}
    program = await service.runtime.find_program(row.version, row.flow)
    return await drive_and_print(service, program, row, manner)


def document_dialect(functions: Iterable[str]) -> dict[str, Callable[[GraphSpec], Program]]:
    """How stored documents become programs in a process that has these functions."""
    return {DIALECT: DocumentDialect(site_with(functions))}
