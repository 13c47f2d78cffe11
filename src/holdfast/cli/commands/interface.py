"""`holdfast interface`: the checkpoint store of the graph document, with its names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import By, Json, Run, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_table
from holdfast.errors import CheckpointNotFoundError, InputError
from holdfast.types.human_time import clock_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.runs.history.checkpoint_store import CheckpointView

group = typer.Typer(
    no_args_is_help=True,
    help="Read and fork checkpoints in the graph document's format.\n\n"
    "They are JSON with its names: graphId, runId, nodeId, nodeResults, visitedNodes, pendingEdges.",
    epilog="Examples:  holdfast interface load 3fa9c1   ·   "
    "holdfast interface list refund-5d41402a --limit 5",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="interface")

Checkpoint = Annotated[str, typer.Argument(help="Checkpoint id", metavar="CHECKPOINT")]


@group.command("list", epilog="Example:  holdfast interface list refund-5d41402a --run 3fa9c1")
def list_(
    graph: Annotated[str, typer.Argument(help="Version of a flow: the graphId", metavar="GRAPH")],
    run: Annotated[Text, typer.Option(help="Only checkpoints of this run")] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of rows (0 = no limit)", min=0)] = 50,
    store: Store = None,
    json: Json = False,
) -> int:
    """List checkpoints of a graph, newest first, without their state."""
    return run_async(list_graph_checkpoints(graph, run, limit, store=store, json=json))


@group.command(epilog="Example:  holdfast interface get 3fa9c1d2-0000-4000-8000-000000000004")
def get(checkpoint: Checkpoint, store: Store = None, json: Json = False) -> int:
    """Print one checkpoint as JSON."""
    return run_async(_print_one(lambda view: view.get(checkpoint), f"checkpoint {checkpoint!r}", store=store))


@group.command(epilog="Example:  holdfast interface load 3fa9c1 --node pay")
def load(
    run: Run,
    node: Annotated[Text, typer.Option(help="The newest checkpoint of this node")] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Print the newest checkpoint of a run, or of a node of it, as JSON."""
    return run_async(load_graph_checkpoint(run, node, store=store))


@group.command(epilog="Example:  holdfast interface save @checkpoint.json")
def save(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint: JSON, @file or -", metavar="JSON")],
    store: Store = None,
    json: Json = False,
) -> int:
    """Save a checkpoint; one that differs from the store is refused.

    Checkpoints are written by the run. To continue from a changed one, fork it.
    """
    return run_async(save_graph_checkpoint(checkpoint, store=store, json=json))


@group.command(epilog="Example:  holdfast interface delete 3fa9c1d2-0000-4000-8000-000000000004")
def delete(checkpoint: Checkpoint, store: Store = None, json: Json = False) -> int:
    """Delete the oldest checkpoint of an ended run. Does nothing if there is none."""
    return run_async(delete_graph_checkpoint(checkpoint, store=store, json=json))


@group.command(
    epilog="Example:  holdfast interface fork 3fa9c1d2-0000-4000-8000-000000000004 "
    '--patch \'{"scratch": {"amount": 5}}\''
)
def fork(
    checkpoint: Checkpoint,
    patch: Annotated[
        Text, typer.Option(help="Changes to input, scratch, artifacts, diagnostics: JSON, @file or -")
    ] = None,
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Create a run that starts at a checkpoint, and print its id."""
    return run_async(fork_graph_checkpoint(checkpoint, patch, by, store=store, json=json))


async def list_graph_checkpoints(
    graph: str, run: str | None, limit: int, *, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        named = None if run is None else (await service.get(run)).id
        found = await (await hf.checkpoint_store()).list(graph, run_id=named, limit=limit)
    if json:
        print_list(found)
    elif not found:
        print_line("No checkpoints of this graph.")
    else:
        print_table(("id", "runId", "nodeId", "timestamp", "stateSize"), [_cells(each) for each in found])
    return Exit.ok


def _cells(meta: dict[str, Any]) -> tuple[str, ...]:
    at = clock_time(meta["timestamp"] * 1000)
    return (meta["id"], meta["runId"], meta["nodeId"], at, f"{meta['stateSize']:,}")


async def load_graph_checkpoint(run: str, node: str | None, *, store: str | None) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        whole = (await (await hf.service()).get(run)).id
    at = f" at node {node!r}" if node else ""
    return await _print_one(
        lambda view: view.load(whole, node), f"checkpoint of run {whole}{at}", store=store
    )


async def _print_one(
    ask: Callable[[CheckpointView], Awaitable[dict[str, Any] | None]], what: str, *, store: str | None
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        found = await ask(await hf.checkpoint_store())
    if found is None:
        raise CheckpointNotFoundError(
            f"there is no {what} in this store.", hint="`holdfast checkpoints RUN` lists them."
        )
    print_json(found)
    return Exit.ok


async def save_graph_checkpoint(text: str, *, store: str | None, json: bool) -> Exit:
    given: Any = read_json(text, "the checkpoint")
    if not isinstance(given, dict):
        raise InputError("a checkpoint is a JSON object.", hint="`holdfast interface get` prints one.")
    async with open_store_for_command(store, must_exist=True) as hf:
        await (await hf.checkpoint_store()).save(given)  # pyright: ignore[reportUnknownArgumentType]
    if json:
        print_json({"id": given["id"]})
    else:
        print_line(f"Checkpoint {given['id']} is stored exactly so.")
    return Exit.ok


async def delete_graph_checkpoint(checkpoint: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        await (await hf.checkpoint_store()).delete(checkpoint)
    if json:
        print_json({"id": checkpoint})
    else:
        print_line(f"Checkpoint {checkpoint} is not in the store.")
    return Exit.ok


async def fork_graph_checkpoint(
    checkpoint: str, patch: str | None, by: str, *, store: str | None, json: bool
) -> Exit:
    given = read_json(patch, "--patch")
    async with open_store_for_command(store, must_exist=True) as hf:
        run = await (await hf.checkpoint_store()).fork(checkpoint, given, by=by)
    if json:
        print_json({"runId": run})
    else:
        print_line(run)
    return Exit.ok
