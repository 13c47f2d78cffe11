"""`holdfast graph`: draws a flow, a pipeline or a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.commands.check import read_pipeline
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command, shown_address, store_exists
from holdfast.cli.output.console import busy, is_plain, print_drawing, print_note, width
from holdfast.cli.output.json_output import print_json
from holdfast.errors import FlowNotFoundError, InputError, RunNotFoundError
from holdfast.types.ids import DEFAULT_TENANT

if TYPE_CHECKING:
    from holdfast.drawing import Picture
    from holdfast.runs.service import RunService

PIPELINES = (".dot", ".gv")
DOCUMENTS = (".yaml", ".yml", ".json")
_OTHERS = {".png", ".pdf", ".jpg", ".jpeg", ".gif", ".webp"}


@app.command(
    epilog="Examples:  holdfast graph refund.py   ·   holdfast graph refund.py -o refund.svg   ·   "
    "holdfast graph 3fa9c1 --expand   ·   holdfast graph build.dot"
)
def graph(
    what: Annotated[
        str,
        typer.Argument(
            help="path/to/file.py[:name], package.module[:name], file.yaml, file.dot, "
            "a flow of the store (a document also as NAME@VERSION), or a run",
            metavar="FLOW|RUN",
        ),
    ],
    svg: Annotated[
        Text,
        typer.Option(
            "--svg", "--output", "-o", help="Write an SVG to this file; - for stdout", metavar="FILE"
        ),
    ] = None,
    expand: Annotated[
        bool, typer.Option("--expand", help="Also draw the insides of maps, sub-flows and included pipelines")
    ] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Draw a flow, a pipeline, or a run with its states."""
    return run_async(draw_graph(what, svg=svg, expand=expand, store=store, json=json))


def graph_json(picture: Any) -> Any:
    return msgspec.to_builtins(picture)


async def draw_graph(what: str, *, svg: str | None, expand: bool, store: str | None, json: bool) -> Exit:
    from holdfast.drawing import to_svg, to_text

    picture = await _picture(what, expand=expand or json, store=store)
    if svg is not None:
        _write(to_svg(picture), svg)
    elif json:
        print_json(graph_json(picture))
    else:
        print_drawing(to_text(picture, width=width(), ascii_only=is_plain()))
    return Exit.ok


def _write(drawn: str, place: str) -> None:
    if Path(place).suffix.lower() in _OTHERS:
        raise InputError(f"{place} is not an SVG file name.", hint="Name a file that ends with .svg, or -.")
    if place == "-":
        sys.stdout.write(drawn)
        return
    try:
        Path(place).write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{place} cannot be written: {error.strerror}.", hint="Name another file, or -."
        ) from None
    print_note(f"Drawn to {place}.")


async def _picture(what: str, *, expand: bool, store: str | None) -> Picture:
    """The first that exists: a file, a run, a flow of the store, a module."""
    from holdfast.app.loader import is_file
    from holdfast.cli.flow_check import load_checked_flow
    from holdfast.drawing import from_graph

    if what.lower().endswith(PIPELINES):
        return picture_of_file(what, expand=expand)
    if what.lower().endswith(DOCUMENTS):
        return _picture_of_document(what, expand=expand)
    if is_file(what.rpartition(":")[0] or what) or ":" in what:
        return from_graph(load_checked_flow(what).program().graph, expand=expand)
    if store_exists(store):
        async with open_store_for_command(store, must_exist=True) as hf:
            service = await hf.service()
            for look in (_run, _deployed, _stored):
                found = await look(service, what, expand=expand)
                if found is not None:
                    return found
    try:
        return from_graph(load_checked_flow(what).program().graph, expand=expand)
    except FlowNotFoundError:
        raise FlowNotFoundError(
            f"{what!r} is neither a run nor a flow of {shown_address(store)}, nor a module with a flow.",
            hint="Name path/to/file.py[:name], a run's id, or a flow: `holdfast runs` shows both.",
        ) from None


def _picture_of_document(file: str, *, expand: bool) -> Picture:
    """A graph needs no function: their names are not looked up. Raises FlowInvalidError."""
    from holdfast.cli.document_run import graph_of_file
    from holdfast.drawing import from_graph

    return from_graph(graph_of_file(file), expand=expand)


async def _run(service: RunService, what: str, *, expand: bool) -> Picture | None:
    from holdfast.attractor.picture import picture_of_visits
    from holdfast.runs.history.timeline import make_timeline

    try:
        row = await service.get(what)
    except RunNotFoundError:
        return None
    with busy(f"Reading {row.head + 1 - row.horizon:,} records"):
        line = await make_timeline(service, row, keep=0)
    return picture_of_visits(line.graph, line.visits, expand=expand, interrupted=line.interrupted)


async def _deployed(service: RunService, what: str, *, expand: bool) -> Picture | None:
    """A document: its current version, which new runs start on, or NAME@VERSION."""
    from holdfast.documents.deploy import DeployedFlows
    from holdfast.drawing import from_graph
    from holdfast.model.graph import Graph

    name, _, version = what.partition("@")
    deployed = DeployedFlows(service, DEFAULT_TENANT)
    if not version and await deployed.current(name) is None:
        return None
    found = await deployed.find(name, version or None)
    if found is None:
        return None
    return from_graph(Graph(await deployed.spec(name, found.version)), expand=expand)


async def _stored(service: RunService, name: str, *, expand: bool) -> Picture | None:
    """The newest version of a flow."""
    from holdfast.drawing import from_graph
    from holdfast.model.fingerprint import decode_graph
    from holdfast.model.graph import Graph
    from holdfast.runs.flow_versions import newest_first

    found = [flow for flow in await service.store.flows() if flow.name == name]
    if not found:
        return None
    newest = (await newest_first(service, found))[0]
    if len(found) > 1:
        print_note(f"{len(found)} versions of {name} are stored; this is the newest, {newest.version}.")
    return from_graph(Graph(decode_graph(newest.graph)), expand=expand)


def picture_of_file(file: str, *, expand: bool) -> Picture:
    """`expand`: with included pipelines and with the stylesheet applied. Raises PipelineInvalidError."""
    from holdfast.cli.flow_check import print_warnings
    from holdfast.frontends.dot.diagnostics import DiagnosticSeverity
    from holdfast.frontends.dot.parse import parse
    from holdfast.frontends.dot.transforms import prepare
    from holdfast.reports.pipelines import picture_of_pipeline

    source = read_pipeline(file)
    prepared = prepare(source, path=file)
    pipeline = prepared.require_valid()
    print_warnings([str(d) for d in prepared.diagnostics if d.severity is DiagnosticSeverity.warning])
    return picture_of_pipeline(pipeline if expand else parse(source, path=file).pipeline)
