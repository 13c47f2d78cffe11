"""Documents that were deployed, on the command line: run, show and activate them, and compare files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.cli.document_run import read_file, site_with, start_document
from holdfast.cli.main import Exit
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.documents.compare import DocumentDiff, PartDiff, compare_documents
from holdfast.documents.deploy import DeployedFlows, DeployedVersion
from holdfast.documents.program import program_of, program_to_start
from holdfast.errors import FlowNotFoundError, StoreUnavailableError
from holdfast.frontends.document.document import FlowDocument
from holdfast.frontends.document.dump import dump_document
from holdfast.frontends.document.problem import errors_of
from holdfast.frontends.document.read import format_of, read_text
from holdfast.types.ids import DEFAULT_TENANT

if TYPE_CHECKING:
    from holdfast.drawing import Picture

_SIGNS: Final = {"added": "+", "removed": "-", "changed": "~"}


def may_be_deployed(spec: str) -> bool:
    """Whether this may be the name of a deployed flow: it is no file and names no flow of a module."""
    return "/" not in spec and ":" not in spec and not spec.endswith(".py")


def is_module(spec: str) -> bool:
    """Whether code can be loaded by this name. It comes before a deployed document; NAME@VERSION and
    NAME@current are documents always."""
    if "@" in spec or "-" in spec:
        return False
    try:
        return find_spec(spec.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return True


async def note_if_deployed(spec: str, options: dict[str, Any], manner: OutputOptions) -> None:
    """Says how to run the document of this name, if there is one beside the code."""
    try:
        opened = open_store_for_command(manner.store, must_exist=True)
    except StoreUnavailableError:
        return
    async with opened as hf:
        deployed = DeployedFlows(await hf.service(), options.get("tenant", DEFAULT_TENANT))
        if await deployed.current(spec) is not None:
            print_note(
                f"{spec} is a module, which is run, and a deployed document: {spec}@current runs that."
            )


async def _find(deployed: DeployedFlows, name: str, version: str | None) -> DeployedVersion:
    found = await deployed.find(name, version)
    if found is None:
        raise FlowNotFoundError(
            f"no document of the name {name!r} was deployed here.",
            hint="Deploy it: holdfast deploy FILE.yaml.",
            flow=name,
        )
    return found


async def run_deployed(
    spec: str,
    given: Any,
    options: dict[str, Any],
    manner: OutputOptions,
    *,
    functions: list[str],
    detach: bool,
) -> Exit | None:
    """`spec`: NAME or NAME@VERSION. None: no document of that name was deployed here."""
    name, _, version = spec.partition("@")
    try:
        opened = open_store_for_command(manner.store, must_exist=True, engine=manner.engine)
    except StoreUnavailableError:
        return None
    async with opened as hf:
        service = await hf.service()
        deployed = DeployedFlows(service, options.get("tenant", DEFAULT_TENANT))
        found = await deployed.find(name, version or None)
        if found is None:
            return None
        site = site_with(functions)
        graph = await deployed.spec(name, found.version)
        # A worker calls the functions; a process that only starts the run need not have them.
        program = program_to_start(graph) if detach else program_of(graph, site)
        return await start_document(service, program, given, options, manner, functions, detach=detach)


async def show_document(
    name: str, version: str | None, form: str, tenant: str, *, store: str | None, json: bool
) -> Exit:
    """`form`: source, json or yaml."""
    async with open_store_for_command(store, must_exist=True) as hf:
        deployed = DeployedFlows(await hf.service(), tenant)
        found = await _find(deployed, name, version)
        document = await deployed.document(name, found.version)
        sent = await deployed.sent(name, found.version)
    assert sent is not None
    text = sent.raw.decode() if form == "source" else dump_document(document, form)  # pyright: ignore[reportArgumentType]
    if json:
        written = sent.format if form == "source" else form
        print_json({"flow": name, "version": found.version, "format": written, "text": text})
    else:
        _print_text(text)
    return Exit.ok


async def activate_version(
    name: str, version: str, tenant: str, *, by: str, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        found = await DeployedFlows(await hf.service(), tenant).activate(name, version, by=by)
    if json:
        print_json({"flow": name, "version": found.version, "current": True})
    else:
        print_line(f"New runs of {name} start on {found.version}.")
    return Exit.ok


def diff_files(
    a: str, b: str, *, draw: Callable[[Picture], None] | None, json: bool, lists: bool = True
) -> Exit:
    """Exit code 1: one of them has errors. `draw`: gets the picture of both. `lists`: whether the differences
    are printed."""
    documents: list[FlowDocument] = []
    for file in (a, b):
        read = read_text(read_file(file), format_of(file))
        problems = errors_of(read.problems())
        if problems or read.document is None:
            if json:
                print_json({"file": file, "valid": False, "problems": msgspec.to_builtins(problems)})
            else:
                for each in problems:
                    print_line(f"{file}:{each}")
            return Exit.run_failed
        documents.append(read.document)
    found = compare_documents(*documents)
    if json:
        print_json(msgspec.to_builtins(found))
    elif lists:
        _print_diff(found)
    if draw is not None:
        from holdfast.documents.picture import diff_picture

        draw(diff_picture(documents[0], documents[1], found))
    return Exit.ok


def _print_text(text: str) -> None:
    if sys.stdout.isatty():
        # Somebody else wrote it: control characters are shown and do nothing.
        for line in text.splitlines():
            print_line(line)
    else:
        print(text, end="" if text.endswith("\n") else "\n")


def _print_diff(found: DocumentDiff) -> None:
    from holdfast.checkpoint.value_diff import Change, show_text

    def changes(listed: list[Change], indent: str) -> None:
        for each in listed:
            before, after = show_text(each.before), show_text(each.after)
            sides = {"added": after, "removed": before}.get(each.kind, f"{before} → {after}")
            print_line(f"{indent}{_SIGNS[each.kind]} {each.path}  {sides}")

    def parts(title: str, listed: list[PartDiff]) -> None:
        if listed:
            print_line(title, style="bold")
        for each in listed:
            print_line(f"  {_SIGNS[each.change]} {each.id}")
            changes(each.changes, "      ")

    parts("nodes", found.nodes)
    parts("edges", found.edges)
    for title, listed in (("settings", found.settings), ("layout", found.layout)):
        if listed:
            print_line(title, style="bold")
            changes(listed, "  ")
    if found.reordered:
        print_line("The order of the nodes differs.")
    if found.same:
        print_line("They mean the same: one version.")
