"""`holdfast steer`: a message to the agent that is running in a run."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from holdfast.cli.app import By, Json, Run, Store, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json


@app.command(epilog="Example:  holdfast steer 3fa9c1 'Only the /health endpoint, please.'")
def steer(
    run: Run,
    text: Annotated[str, typer.Argument(help="The message, up to 16,384 characters", show_default=False)],
    stage: Annotated[
        str, typer.Option("--stage", help="The stage or node whose agent gets it", show_default=False)
    ] = "",
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Send a message to the agent that is running in a run.

    A model gets it once, after the tool calls that it makes now; a command-line agent in a further turn.
    """
    return run_async(steer_run(run, text, stage=stage, by=by, store=store, json=json))


async def steer_run(run: str, text: str, *, stage: str, by: str, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        made = await service.steer(run, text, by=by, stage=stage)
        row = await service.get(run)
    if json:
        print_json({"run": row.id, **msgspec.to_builtins(made)})
    else:
        print_line(f"The agent of run {row.id} gets the message after its tool calls.")
    return Exit.ok
