"""`holdfast events`: events from machines, for runs that wait for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json
from holdfast.errors import InputError
from holdfast.types.clock import iso
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.human_time import clock_time
from holdfast.types.queue_message import MessageRow, MessageState

group = typer.Typer(
    no_args_is_help=True,
    help="Send events to runs that wait for them (`ctx.wait_for`).",
    epilog="Example:  holdfast events send payment.received '{\"amount\": 250}' --key A17",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="events")


@group.command(epilog="Example:  holdfast events send payment.received '{\"amount\": 250}' --key A17")
def send(
    name: Annotated[str, typer.Argument(help="Name of the event", metavar="NAME")],
    data: Annotated[Text, typer.Argument(help="JSON, @file, or - for stdin", metavar="[JSON]")] = None,
    key: Annotated[Text, typer.Option(help="The run that waits for this key gets it", metavar="KEY")] = None,
    run: Annotated[Text, typer.Option(help="Only the run with this id gets it", metavar="RUN")] = None,
    id: Annotated[Text, typer.Option(help="Event id; the same id is sent only once", metavar="ID")] = None,  # noqa: A002
    keep: Annotated[
        str, typer.Option(help="How long the event is kept for a run", metavar="DURATION")
    ] = "7d",
    tenant: Annotated[str, typer.Option("--tenant", help="Tenant")] = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Send an event to the run that waits for it.

    That is a run which waits for its name and key. If there is none, the event is kept.
    """
    content = None if data is None else read_json(data, "the event")
    options = {"key": key, "run": run, "id": id, "keep": _micros(keep), "tenant": tenant}
    return run_async(send_event(name, content, options, store=store, json=json))


def _micros(text: str) -> int:
    try:
        return parse_duration(text) // timedelta(microseconds=1)
    except DurationError as error:
        raise InputError(f"--keep: {error}.", hint="Write 30s, 5m, 2h or 7d.") from error


async def send_event(name: str, data: Any, options: dict[str, Any], *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        if options["run"] is not None:
            options["run"] = (await (await hf.service()).get(options["run"], tenant=options["tenant"])).id
        row: MessageRow = await (await hf.queues()).send_event(name, data, **options)
    delivered = row.state is MessageState.completed
    if json:
        expires = None if row.expires_at is None else iso(row.expires_at)
        print_json({"id": row.id, "name": name, "delivered": delivered, "expires_at": expires})
    elif delivered:
        print_line(f"{row.id}  a run has it")
    else:
        print_line(f"{row.id}  kept until {clock_time(row.expires_at or 0)}, for a run that waits for it")
    return Exit.ok
