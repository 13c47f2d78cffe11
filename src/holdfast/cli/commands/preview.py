"""`holdfast preview`: what each answer to a hold would lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.commands.holds.group import As, Whose
from holdfast.cli.hold_session import ActorOptions, HoldSession, open_hold_session
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.options.store import recall_source
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.errors import FlowNotFoundError

if TYPE_CHECKING:
    from holdfast.app.flow import Flow
    from holdfast.runs.preview.preview import HoldPreview
    from holdfast.types.hold import HoldRow


@app.command(
    epilog="Examples:  holdfast preview 3fa9c1d2   ·   "
    "holdfast preview 3fa9c1d2 flows/refund.py --decision approve --data '{\"amount\": 90}'"
)
def preview(
    hold: Annotated[
        str, typer.Argument(help="Hold id, or a run with exactly one open hold", metavar="RUN|HOLD")
    ],
    flow: Annotated[
        Text, typer.Argument(help="Location of the flow's code (default: where the run was started from)")
    ] = None,
    decision: Annotated[Text, typer.Option(help="Only this answer")] = None,
    data: Annotated[
        Text, typer.Option(help="Values of the form (default: proposed): JSON, @file or -", metavar="JSON")
    ] = None,
    as_: As = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Show what each answer to a hold would lead to.

    The run is continued in memory up to its next questions and outside effects. Nothing is done outside, and
    nothing is stored.
    """
    options = ActorOptions(as_=as_, tenant=tenant, store=store, json=json)
    return run_async(preview_hold(hold, flow, decision, read_json(data, "--data"), options))


async def preview_hold(
    which: str, flow: str | None, decision: str | None, data: Any, options: ActorOptions
) -> Exit:
    async with open_hold_session(options) as session:
        row = await session.find(which)
        await _load_code(session, row, flow, options.store)
        found = await (await session.hf.service()).preview(row, decision=decision, data=data)
    if options.json:
        print_json(msgspec.to_builtins(found))
    else:
        _print(row, found)
    return Exit.ok


async def _load_code(session: HoldSession, row: HoldRow, flow: str | None, store: str | None) -> None:
    """Without it, the preview ends at the first node that needs it, and says so."""
    from holdfast.model.fingerprint import dialect_of

    service = await session.hf.service()
    run = await service.get(row.run)
    if flow is None and dialect_of(run.version) in service.runtime.dialects:
        return
    try:
        program = _flow_in(flow or recall_source(store, run.flow, run.version), run.flow).program()
    except FlowNotFoundError:
        if flow is not None:
            raise
        return
    service.runtime.register(program)
    if flow is not None:
        # The code that was named must be that of the run.
        service.runtime.program_for(run.version, run.flow)


def _flow_in(place: str, name: str) -> Flow:
    """The run says which one of several flows of a file it is."""
    from holdfast.app.loader import load_flow, load_flows

    named = [each for each in load_flows(place) if each.name == name]
    return named[0] if len(named) == 1 else load_flow(place)


def _print(row: HoldRow, found: HoldPreview) -> None:
    print_line(row.prompt or f"{row.flow} at {row.node}", style="bold")
    for option in found.options:
        print_line()
        print_line(option.label or option.option or "Any answer", style="bold")
        for entry in option.entries:
            print_line(f"  {entry.text}")
    print_line()
    print_note("This is a preview: nothing was decided, done or stored.")
