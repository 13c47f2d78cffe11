"""`holdfast diff`: compares two checkpoints, branches or runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import is_plain, print_drawing, print_line, print_note, width
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.tables import print_fields
from holdfast.errors import InputError
from holdfast.model.shown_names import shown_name
from holdfast.types.human_time import clock_time, human_duration
from holdfast.types.status import label_for

if TYPE_CHECKING:
    from holdfast.checkpoint.diff_result import Diff, Moment, NodeDiff, RunUsage, Sides
    from holdfast.checkpoint.value_diff import Change, ChangeList
    from holdfast.drawing import Picture

# From a stored name of a node to the one that people read.
Names = Callable[[str], str]
PARTS = ("state", "nodes", "cost")
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_COLOURS = {"added": "green", "removed": "red", "changed": "yellow"}
_LINES = 40
_NODES = 200
# Bytes that one list of the JSON may take.
_ROOM = 64 * 1024


@app.command(
    epilog="Examples:  holdfast diff 3fa9c1@4 3fa9c1@9   ·   holdfast diff old.yaml new.yaml   ·   "
    "holdfast diff 3fa9c1 77ab02 --svg diff.svg",
)
def diff(
    a: Annotated[
        str,
        typer.Argument(help="Compare from: RUN, RUN@12, RUN@node, a checkpoint id or file.yaml", metavar="A"),
    ],
    b: Annotated[str, typer.Argument(help="Compare to (same forms as A)", metavar="B")],
    only: Annotated[
        list[str] | None, typer.Option(help="Only state, nodes or cost; may be repeated", metavar="PART")
    ] = None,
    svg: Annotated[
        Text, typer.Option(help="Draw both graphs in one SVG file; - for stdout", metavar="FILE")
    ] = None,
    graph: Annotated[bool, typer.Option("--graph", help="Also draw the graphs in the terminal")] = False,
    whole: Annotated[
        bool, typer.Option("--all", help="Print everything, without cutting long lists")
    ] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Compare two checkpoints, branches, runs or flow documents.

    Documents (file.yaml, file.json) are compared by node, edge and setting, layout apart. Runs are compared
    by node, field, outcome, tool call and cost. Long lists are cut; the output says how much was left out,
    --all prints everything.
    """
    from holdfast.cli.document_run import is_document

    if is_document(a) or is_document(b):
        from holdfast.cli.deployed_run import diff_files

        if not (is_document(a) and is_document(b)):
            raise InputError(f"{a} and {b} are not of one kind.", hint="Compare two documents, or two runs.")
        draw = partial(_draw_documents, svg=svg, graph=graph and not json) if svg or graph else None
        return diff_files(a, b, draw=draw, json=json, lists=svg != "-")
    return run_async(diff_moments(a, b, only or (), svg, graph=graph, whole=whole, store=store, json=json))


def _draw_documents(picture: Picture, *, svg: str | None, graph: bool) -> None:
    if graph:
        print_line()
        from holdfast.drawing import to_text

        print_drawing(to_text(picture, width=width(), ascii_only=is_plain()))
    if svg is not None:
        _write_svg(picture, svg)


async def diff_moments(
    a: str,
    b: str,
    only: Sequence[str],
    svg: str | None,
    *,
    graph: bool,
    whole: bool,
    store: str | None,
    json: bool,
) -> Exit:
    from holdfast.reports.diff_picture import diff_picture
    from holdfast.runs.events import reader_of

    for part in only:
        if part not in PARTS:
            raise InputError(f"--only {part!r} is not one of {', '.join(PARTS)}.")
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        found = await service.diff(a, b, whole=whole)
        picture = await diff_picture(service, found) if svg is not None or graph else None
        graph_of_b = (await reader_of(service, await service.get(found.b.run))).graph
    if svg is not None and picture is not None:
        _write_svg(picture, svg)
    if json:
        print_json(_chosen(found.as_json(0 if whole else _ROOM), only))
    elif svg != "-":
        names = partial(shown_name, graph=graph_of_b)
        visits = len(found.nodes) if whole else _NODES
        _print_diff(found, set(only or PARTS), picture if graph else None, visits, names)
    return Exit.ok


def _write_svg(picture: Picture, place: str) -> None:
    from holdfast.drawing import to_svg

    drawn = to_svg(picture)
    if place == "-":
        print(drawn)
        return
    try:
        Path(place).write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{place} cannot be written: {error.strerror}.", hint="Name another file."
        ) from error
    print_note(f"Drawn in {place}.")


def _chosen(shown: dict[str, Any], only: Sequence[str]) -> dict[str, Any]:
    if not only:
        return shown
    parts = {
        "state": ("input", "state", "artifacts"),
        "nodes": ("nodes", "same_nodes", "skipped", "pending", "edges"),
        "cost": ("spent",),
    }
    kept = {"same", "a", "b", "relation", "parted", *(name for part in only for name in parts[part])}
    left_out = {name: missing for name, missing in shown["left_out"].items() if name in kept}
    return {name: value for name, value in shown.items() if name in kept} | {"left_out": left_out}


def _print_diff(found: Diff, parts: set[str], picture: Picture | None, visits: int, names: Names) -> None:
    moments = [(name, _moment(at, names)) for name, at in (("A", found.a), ("B", found.b))]
    print_fields([*moments, ("history", _fork_point_text(found, names))])
    if found.a.version != found.b.version:
        print_fields([("versions", f"{found.a.version} → {found.b.version}")])
    if picture is not None:
        from holdfast.drawing import to_text

        print_line()
        print_drawing(to_text(picture, width=width(), ascii_only=is_plain()))
    if "state" in parts:
        for name in ("input", "state", "artifacts"):
            _section(name, getattr(found, name))
    if "nodes" in parts:
        _nodes(found, visits, names)
        _sides_of("skipped", found.skipped, names)
        _sides_of("pending edges", found.pending, names)
    if "cost" in parts:
        _spent(*found.spent)
    if found.same:
        print_line("No differences.", style="green")


def _moment(at: Moment, names: Names) -> str:
    where = f" ({names(at.node)})" if at.node else ""
    return f"{at.run[:8]}@{at.seq}{where}  {at.flow}  {label_for(at.status)}  {clock_time(at.at)}"


def _fork_point_text(found: Diff, names: Names) -> str:
    if found.relation == "same":
        return "one run, two checkpoints"
    if found.parted is None:
        return "two runs without a common history"
    where = f" ({names(found.parted.node)})" if found.parted.node else ""
    return f"the same up to {found.parted.run[:8]}@{found.parted.seq}{where}"


def _section(name: str, changes: ChangeList) -> None:
    if not changes.shown:
        return
    _head(name)
    for change in changes.shown:
        _change(change, "  ")
    if changes.left_out:
        print_line(f"  and {changes.left_out:,} more; --all prints them", style="dim")


def _sides_of(name: str, sides: Sides, names: Names) -> None:
    if any(sides):
        _head(name)
        for kind, found in zip(("removed", "added"), sides, strict=True):
            for each in found:
                print_line(f"  {_SIGNS[kind]} {names(each)}", style=_COLOURS[kind])


def _head(name: str) -> None:
    print_line()
    print_line(name, style="bold")


def _change(change: Change, indent: str) -> None:
    from holdfast.checkpoint.value_diff import text_lines

    lines = text_lines(change, _LINES)
    text = "" if lines else _sides(change)
    print_line(f"{indent}{_SIGNS[change.kind]} {change.path}  {text}".rstrip(), style=_COLOURS[change.kind])
    for line in lines:
        style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
        print_line(f"{indent}    {line}", style=style)


def _sides(change: Change) -> str:
    from holdfast.checkpoint.value_diff import show_text

    if change.kind == "added":
        return show_text(change.after)
    if change.kind == "removed":
        return show_text(change.before)
    return f"{show_text(change.before)} → {show_text(change.after)}"


def _nodes(found: Diff, visits: int, names: Names) -> None:
    if not found.nodes:
        return
    _head(f"nodes ({found.same_nodes} unchanged)")
    for node in found.nodes[:visits]:
        print_line(
            f"  {_SIGNS[node.kind]} {_node(node, names(node.node))}".rstrip(), style=_COLOURS[node.kind]
        )
        if node.kind == "changed":
            _all(node.changes, "      ")
        _all(_brief(node.calls), "      ")
        _all(_brief(node.asked), "      ")
    if len(found.nodes) > visits:
        print_line(f"  and {len(found.nodes) - visits:,} more visits; --all prints them", style="dim")


def _all(changes: Iterable[Change], indent: str) -> None:
    for change in changes:
        _change(change, indent)


def _brief(changes: Iterable[Change]) -> list[Change]:
    """A whole call or question, with its result."""
    from holdfast.checkpoint.value_diff import Change

    return [
        Change(path=c.path, kind=c.kind, before=_call_result(c.before), after=_call_result(c.after))
        for c in changes
    ]


def _call_result(side: Any) -> Any:
    result = cast("dict[str, Any]", side) if isinstance(side, dict) else {}
    if "prompt" in result:
        by = f" by {result['by']}" if result["by"] else ""
        return f"{result['prompt']} {result['decision'] or result['status']}{by}"
    whole = {"value", "error"} <= result.keys()
    return (result["error"] or result["value"]) if whole else cast("Any", side)


def _node(node: NodeDiff, name: str) -> str:
    from holdfast.checkpoint.diff_result import RunUsage

    visit = f" (visit {node.visit})" if node.visit > 1 else ""
    before, after = node.outcome
    spent = node.b or node.a or RunUsage()
    took = f"  {human_duration(spent.duration)}" if spent.duration and node.kind != "changed" else ""
    cost = f"  {_cost(spent)}" if node.kind != "changed" and (spent.tokens or spent.cost) else ""
    outcome = f"{before} → {after}" if node.kind == "changed" and before != after else after or before
    return f"{name}{visit}  {outcome}{took}{cost}"


def _cost(spent: RunUsage) -> str:
    return ", ".join(
        part
        for part in (
            f"{spent.tokens:,} tokens" if spent.tokens else "",
            f"cost {spent.cost:g}" if spent.cost else "",
        )
        if part
    )


def _spent(a: RunUsage, b: RunUsage) -> None:
    rows = [
        ("steps", a.steps, b.steps),
        ("tokens", a.tokens, b.tokens),
        ("cost", a.cost, b.cost),
    ]
    lines = [(name, f"{before:g} → {after:g}") for name, before, after in rows if before != after]
    if a.duration != b.duration:
        lines.append(("work", f"{human_duration(a.duration)} → {human_duration(b.duration)}"))
    if lines:
        _head("cost")
        print_fields([(f"  {name}", text) for name, text in lines])
