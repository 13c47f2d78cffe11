"""`graph`: a flow, a pipeline or a run, drawn."""

from __future__ import annotations

import sys
from pathlib import Path

from holdfast.app.loader import is_file, load_flow
from holdfast.attractor.picture import picture_of_visits
from holdfast.cli.commands.show__looking import graph_json
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command, shown_address, store_exists
from holdfast.cli.output.screen import busy, is_plain, print_drawing, print_json, print_note, width
from holdfast.drawing import Picture, from_graph, to_svg, to_text
from holdfast.errors import FlowNotFoundError, InputError, RunNotFoundError
from holdfast.model.fingerprint import decode_graph
from holdfast.model.graph import Graph
from holdfast.runs.history.timeline import make_timeline
from holdfast.runs.service import RunService
from holdfast.types.redaction import redactor
from holdfast.types.status import ENDED

PIPELINES = (".dot", ".gv")
_OTHERS = {".png", ".pdf", ".jpg", ".jpeg", ".gif", ".webp"}


async def draw_graph(what: str, *, svg: str | None, expand: bool, store: str | None, json: bool) -> Exit:
    picture = await _picture(what, expand=expand or json, store=store)
    if svg is not None:
        _write(redactor.redact(to_svg(picture)), svg)
    elif json:
        print_json(graph_json(picture))
    else:
        print_drawing(to_text(picture, width=width(), ascii_only=is_plain()))
    return Exit.ok


def _write(drawn: str, place: str) -> None:
    if Path(place).suffix.lower() in _OTHERS:
        raise InputError(
            f"{place} would be no such picture.", hint="Drawings are SVG: name a file.svg, or -."
        )
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
    """A file, then a run, then a flow of the store, then a module: the first that there is."""
    if what.lower().endswith(PIPELINES):
        from holdfast.cli.commands.graph__sketching import picture_of_file

        return picture_of_file(what, expand=expand)
    if is_file(what.rpartition(":")[0] or what) or ":" in what:
        return from_graph(load_flow(what).program().graph, expand=expand)
    if store_exists(store):
        async with open_store_for_command(store, must_exist=True) as hf:
            service = await hf.service()
            found = await _run(service, what, expand=expand) or await _stored(service, what, expand=expand)
            if found is not None:
                return found
    try:
        return from_graph(load_flow(what).program().graph, expand=expand)
    except FlowNotFoundError:
        raise FlowNotFoundError(
            f"{what!r} is neither a run nor a flow of {shown_address(store)}, nor a module with a flow.",
            hint="Name path/to/file.py[:name], a run's id, or a flow: `holdfast runs` shows both.",
        ) from None


async def _run(service: RunService, what: str, *, expand: bool) -> Picture | None:
    try:
        row = await service.get(what)
    except RunNotFoundError:
        return None
    with busy(f"Reading {row.head + 1 - row.horizon:,} records"):
        line = await make_timeline(service, row, keep=0)
    interrupted = row.worker is None and row.status not in ENDED
    return picture_of_visits(line.graph, line.visits, expand=expand, interrupted=interrupted)


async def _stored(service: RunService, name: str, *, expand: bool) -> Picture | None:
    """The version of a flow that was stored last."""
    found = [flow for flow in await service.store.flows() if flow.name == name]
    if not found:
        return None
    newest = max(found, key=lambda flow: (flow.created_at, flow.version))
    if len(found) > 1:
        print_note(f"{len(found)} versions of {name} are stored; this is the newest, {newest.version}.")
    return from_graph(Graph(decode_graph(newest.graph)), expand=expand)
