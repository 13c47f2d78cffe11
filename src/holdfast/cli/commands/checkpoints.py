"""`holdfast checkpoints`: the list of a run's checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from holdfast.cli.app import Json, Run, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import iso_times, print_list
from holdfast.cli.output.tables import print_table
from holdfast.types.human_time import clock_time
from holdfast.types.status import label_for

if TYPE_CHECKING:
    from holdfast.checkpoint.checkpoint import CheckpointMeta


@app.command(
    epilog="Examples:  holdfast checkpoints 3fa9c1   ·   holdfast checkpoints 3fa9c1 --node pay --range 5:20"
)
def checkpoints(
    run: Run,
    node: Annotated[Text, typer.Option(help="Only checkpoints of this node")] = None,
    range_: Annotated[
        Text, typer.Option("--range", help="Only these records: 5:9, 5: or :9", metavar="FROM:TO")
    ] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of rows (0 = no limit)", min=0)] = 50,
    store: Store = None,
    json: Json = False,
) -> int:
    """List a run's checkpoints, newest first.

    No state is loaded.
    """
    return run_async(list_checkpoints(run, node, range_, limit, store=store, json=json))


async def list_checkpoints(
    run: str, node: str | None, range_: str | None, limit: int, *, store: str | None, json: bool
) -> Exit:
    from holdfast.runs.references import parse_range

    first, last = parse_range(range_) if range_ is not None else (0, None)
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        row = await service.get(run)
        before = None if last is None else last + 1
        found = await service.checkpoints(row.id, limit=limit, node=node, before=before)
    shown = [meta for meta in found if meta.seq >= first]
    if json:
        more = bool(limit) and len(found) == limit and shown[-1].seq > first
        print_list(
            [iso_times(msgspec.structs.asdict(meta)) for meta in shown], shown[-1].id if more else None
        )
    elif not shown:
        print_line("No checkpoints." if node is None and range_ is None else "No matching checkpoints.")
    else:
        print_table(
            ("checkpoint", "record", "time", "node", "status", "bytes"), [_cells(meta) for meta in shown]
        )
        if limit and len(found) == limit and shown[-1].seq > first:
            print_note(
                f"There may be more: --limit 0 shows all, --range :{shown[-1].seq - 1} shows older ones."
            )
    return Exit.ok


def _cells(meta: CheckpointMeta) -> tuple[str, ...]:
    """The id first: a narrow terminal wraps the other columns before it wraps the id."""
    size = f"{meta.state_size:,}"
    node = meta.node if meta.turn is None else f"{meta.node} turn {meta.turn}"
    return (meta.id, str(meta.seq), clock_time(meta.at), node, label_for(str(meta.status)), size)
