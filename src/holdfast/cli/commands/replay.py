"""`holdfast replay`: makes a run's decisions again from its journal and compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import Code, Json, Run, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.results import command
from holdfast.cli.output.tables import print_fields
from holdfast.errors import FlowNotFoundError

if TYPE_CHECKING:
    from holdfast.model.graph import Graph
    from holdfast.runs.history.replay import Replay
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow


@app.command(
    epilog="Examples:  holdfast replay 3fa9c1   ·   holdfast replay 3fa9c1 --against flows/refund_v2.py",
)
def replay(
    run: Run,
    upto: Annotated[int | None, typer.Option(help="Stop at this record", metavar="N", min=0)] = None,
    against: Annotated[
        Text,
        typer.Option(
            help="Replay with this flow, or with this stored version of the run's flow", metavar="FLOW"
        ),
    ] = None,
    flow: Code = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Repeat a run's decisions from its journal and compare them.

    No node runs. Exit code 1: the decisions differ.
    """
    return run_async(replay_run(run, upto, against, flow, store=store, json=json))


async def replay_run(
    run: str, upto: int | None, against: str | None, flow: str | None, *, store: str | None, json: bool
) -> Exit:
    from holdfast.app.loader import load_flow

    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        row = await service.get(run)
        if flow is not None:
            service.runtime.register(load_flow(flow).program())
        graph, version = await _other_version(service, row, against)
        found = await service.replay(row.id, upto=upto, against=graph, version=version)
    if json:
        print_json(_replay_json(found))
    else:
        _print_replay(found, store)
    return Exit.ok if found.same else Exit.run_failed


async def _other_version(service: RunService, row: RunRow, against: str | None) -> tuple[Graph | None, str]:
    """Another version: a flow's code, or a stored one."""
    from holdfast.app.loader import load_flow
    from holdfast.model.fingerprint import decode_graph
    from holdfast.model.graph import Graph

    if against is None:
        return None, ""
    stored = await service.store.flow(row.flow, against)
    if stored is not None:
        return Graph(decode_graph(stored.graph)), against
    try:
        program = load_flow(against).program()
    except FlowNotFoundError as error:
        raise FlowNotFoundError(
            f"{against!r} is neither a flow nor a stored version of {row.flow!r}: {error.message}",
            hint=error.hint,
        ) from None
    return program.graph, program.version


def _replay_json(found: Replay) -> dict[str, Any]:
    return {"same": found.same, **msgspec.structs.asdict(found)}


def _print_replay(found: Replay, store: str | None) -> None:
    difference = found.difference
    if difference is None:
        _print_same(found)
        return
    print_line(f"Record {difference.seq} ({difference.kind}) differs.", style="bold red")
    print_fields(
        [
            ("run", found.run),
            ("against", found.against),
            ("record", str(difference.seq)),
            ("node", difference.node),
            ("then", difference.then),
            ("now", difference.now),
            ("differs in", ", ".join(difference.fields)),
        ]
    )
    if not found.exact:
        print_note(
            "Values of the flow's own types were read as plain data; --flow FILE reads them with their types."
        )
    seq = max(difference.seq - 1, 0)
    print_note(f"The state before it: {command('show', f'{found.run[:8]} --checkpoint {seq}', store)}")


def _print_same(found: Replay) -> None:
    if found.replayed is not None and not found.same:
        print_line(f"{found.decisions} decisions are the same, but the result differs.", style="bold red")
        print_fields([("recorded", found.recorded), ("replayed", found.replayed)])
        return
    if not found.decisions:
        print_line("There is no decision to replay: the history starts at the run's current position.")
        return
    many = f"{found.decisions} {'decision' if found.decisions == 1 else 'decisions'}"
    where = f"on version {found.against}" if found.against else f"(digest {found.recorded})"
    ends = "are the same" if found.replayed is None else "lead to the same result"
    print_line(f"{many} {ends} {where}.", style="green")
    if found.given:
        print_note(f"Of {found.records} records, {found.given} were read as the start or do not count.")
