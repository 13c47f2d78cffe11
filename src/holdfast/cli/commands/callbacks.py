"""`holdfast callbacks`: complete what a run has handed to another system."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.types.clock import iso
from holdfast.types.hold import HoldRow
from holdfast.types.human_time import clock_time

if TYPE_CHECKING:
    from holdfast.holds.callbacks import Callbacks

group = typer.Typer(
    no_args_is_help=True,
    help="Complete callbacks that runs wait for (`ctx.callback`).",
    epilog='Example:  holdfast callbacks complete TOKEN \'{"image": "a17"}\'',
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="callbacks")

Token = Annotated[str, typer.Argument(help="The token, or the URL that ends with it", metavar="TOKEN")]


@group.command("list", epilog="Example:  holdfast callbacks list RUN")
def list_(
    run: Annotated[str, typer.Argument(help="Run id or a unique prefix of it", metavar="RUN")],
    tenant: Annotated[str, typer.Option("--tenant", help="Tenant")] = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """List callbacks that a run waits for, with their URLs."""
    return run_async(list_callbacks(run, tenant=tenant, store=store, json=json))


@group.command(epilog='Example:  holdfast callbacks complete TOKEN \'{"image": "a17"}\'')
def complete(
    token: Token,
    result: Annotated[Text, typer.Argument(help="JSON, @file, or - for stdin", metavar="[JSON]")] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Complete a callback: its run resumes with this result."""
    content = None if result is None else read_json(result, "the result")
    return run_async(act(lambda found, name: found.complete(name, content), token, store=store, json=json))


@group.command(epilog="Example:  holdfast callbacks fail TOKEN 'no disk' --data '{\"code\": 28}'")
def fail(
    token: Token,
    message: Annotated[str, typer.Argument(help="What went wrong", metavar="MESSAGE")],
    data: Annotated[Text, typer.Option(help="Details: JSON, @file, or - for stdin", metavar="JSON")] = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Report a failure: the run gets an error that it can handle."""
    content = None if data is None else read_json(data, "the details")
    return run_async(
        act(lambda found, name: found.fail(name, message, content), token, store=store, json=json)
    )


@group.command(epilog="Example:  holdfast callbacks heartbeat TOKEN")
def heartbeat(token: Token, store: Store = None, json: Json = False) -> int:
    """Tell the run that the work is still in progress."""
    return run_async(act(lambda found, name: found.heartbeat(name), token, store=store, json=json))


async def list_callbacks(run: str, *, tenant: str, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        row = await (await hf.service()).get(run, tenant=tenant)
        callbacks = await hf.callbacks()
        found = [(hold, callbacks.url(token)) for hold, token in await callbacks.of_run(row.id)]
    if json:
        print_list([{**_facts(hold), "url": url} for hold, url in found])
        return Exit.ok
    for hold, url in found:
        print_line(f"{_name(hold)}  {url}{_until(hold)}")
    if not found:
        print_line(f"{row.id} waits for no callback.")
    return Exit.ok


async def act(
    work: Callable[[Callbacks, str], Awaitable[HoldRow]], token: str, *, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        row = await work(await hf.callbacks(), token.rstrip("/").rpartition("/")[2])
    if json:
        print_json(_facts(row))
    else:
        print_line(f"{_name(row)}: the run has it" if row.resolution else _waits(row))
    return Exit.ok


def _name(row: HoldRow) -> str:
    from holdfast.holds.callbacks import callback_name

    return callback_name(row)


def _waits(row: HoldRow) -> str:
    return f"{_name(row)}: the run waits{_until(row)}"


def _until(row: HoldRow) -> str:
    return "" if row.expires_at is None else f"  until {clock_time(row.expires_at)}"


def _facts(row: HoldRow) -> dict[str, Any]:
    until = None if row.expires_at is None else iso(row.expires_at)
    return {"name": _name(row), "waiting": row.resolution is None, "expires_at": until}
