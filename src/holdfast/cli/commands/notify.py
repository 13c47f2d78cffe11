"""`holdfast notify`: notification channels and their messages."""

from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from holdfast.cli.app import Json, OfTenant, Store, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.results import command
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError, NotFoundError
from holdfast.types.clock import iso
from holdfast.types.human_time import clock_time
from holdfast.types.ids import new_id
from holdfast.types.outbox import OutboxRow, OutboxState
from holdfast.types.terms import Assignee

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast
    from holdfast.holds.notify.channel import Channel
    from holdfast.holds.notify.deliverer import Deliverer
    from holdfast.holds.notify.notice import Notice

ALL = 10_000
SECRET_SIZE = 32
notify = typer.Typer(
    no_args_is_help=True,
    help="Test notification channels, deliver and replay messages.",
    epilog="Examples:  holdfast notify test mail --to me@example.com   ·   holdfast notify dead",
)
app.add_typer(notify, name="notify")


@notify.command(epilog="Example:  holdfast notify channels")
def channels(tenant: OfTenant = "default", store: Store = None, json: Json = False) -> int:
    """List a tenant's channels."""
    return run_async(list_channels(tenant, store=store, json=json))


@notify.command("set", epilog="Example:  holdfast notify set chat.toml --tenant acme")
def set_(
    file: Annotated[
        Path, typer.Argument(help="TOML: name, kind (slack, teams, webhook), url, ...", metavar="FILE")
    ],
    tenant: OfTenant = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Store a channel for a tenant. Its address must not be internal."""
    return run_async(set_channel(file, tenant, store=store, json=json))


@notify.command(epilog="Example:  holdfast notify delete chat --tenant acme")
def delete(
    channel: Annotated[str, typer.Argument(help="The channel's name", metavar="CHANNEL")],
    tenant: OfTenant = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Delete a tenant's channel."""
    return run_async(delete_channel(channel, tenant, store=store, json=json))


@notify.command("test", epilog="Example:  holdfast notify test mail --to me@example.com")
def send_test(
    channel: Annotated[str, typer.Argument(help="The channel's name", metavar="CHANNEL")],
    to: Annotated[
        str, typer.Option(help="Recipient, for channels that address people", metavar="ADDRESS")
    ] = "",
    tenant: OfTenant = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Send a test notification."""
    return run_async(try_channel(channel, to, tenant, store=store, json=json))


@notify.command(epilog="Example:  holdfast notify deliver --json")
def deliver(store: Store = None, json: Json = False) -> int:
    """Deliver due messages now. Workers do this continuously."""
    return run_async(deliver_now(store=store, json=json))


@notify.command(epilog="Example:  holdfast notify dead")
def dead(store: Store = None, json: Json = False) -> int:
    """List messages that could not be delivered, with their errors."""
    return run_async(list_dead(store=store, json=json))


@notify.command(epilog="Examples:  holdfast notify replay 17   ·   holdfast notify replay --all")
def replay(
    message: Annotated[
        int | None, typer.Argument(help="Message number, as listed by `notify dead`", metavar="NUMBER")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All messages that were given up")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Retry messages that were given up. No recipient gets a message twice."""
    return run_async(replay_dead(message, every=every, store=store, json=json))


@notify.command(epilog="Example:  holdfast notify secret")
def secret(json: Json = False) -> int:
    """Create a secret for a signed webhook."""
    return make_secret(json=json)


async def list_channels(tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=False) as hf:
        found = await (await _deliverer(hf)).channels.of(tenant)
    if json:
        print_list([{"name": each.name, "kind": _kind(each), "to": _to(each)} for each in found])
    elif not found:
        print_line("No channels: no notifications are sent.")
        print_note("HOLDFAST_NOTIFY names a file with channels; docs/how-to/notify-people.md shows one.")
    else:
        print_table(("name", "kind", "to"), [(each.name, _kind(each), _to(each)) for each in found])
    return Exit.ok


async def set_channel(file: Path, tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.notify.settings import read_tenant_spec

    spec = read_tenant_spec(file)
    async with open_store_for_command(store, must_exist=False) as hf:
        await (await _deliverer(hf)).channels.put(tenant, spec)
    if json:
        print_json({"name": spec.name, "tenant": tenant})
    else:
        print_line(f"{tenant} is notified through {spec.name} from now on.")
    return Exit.ok


async def delete_channel(name: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        await (await _deliverer(hf)).channels.delete(tenant, name)
    if json:
        print_json({"name": name, "tenant": tenant})
    else:
        print_line(f"{tenant} is no longer notified through {name}.")
    return Exit.ok


async def try_channel(name: str, to: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.notify.channel import send_notice

    async with open_store_for_command(store, must_exist=False) as hf:
        deliverer = await _deliverer(hf)
        channel = _channel_named(name, await deliverer.channels.of(tenant))
        if channel.personal and not to:
            raise InputError(
                f"{name} is a channel that addresses people.", hint="Name the recipient: --to ADDRESS."
            )
        delivery = await send_notice(channel, _test_notice(tenant, to or channel.name, deliverer.store.now()))
    if json:
        print_json(msgspec.to_builtins(delivery))
    elif delivery.accepted:
        print_line(f"{name} accepted the message. {delivery.detail}".strip())
    else:
        print_line(f"{name} did not accept the message: {delivery.detail or 'no reason given'}")
    return Exit.ok if delivery.accepted else Exit.run_failed


async def deliver_now(*, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        found = await (await _deliverer(hf)).deliver()
    if json:
        print_json(msgspec.to_builtins(found))
    else:
        counts = (
            f"{found.done} delivered",
            f"{found.skipped} not needed",
            f"{found.waiting} to be tried again",
        )
        print_line(", ".join((*counts, f"{found.dead} given up.")))
    return Exit.ok


async def list_dead(*, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        found = await (await hf.open()).list_outbox(state=OutboxState.dead, limit=ALL)
    if json:
        print_list([_message_json(each) for each in found])
    elif not found:
        print_line("No undelivered messages.")
    else:
        heads = ("number", "since", "topic", "hold", "error")
        print_table(heads, [_cells(each) for each in found])
        print_note(f"Try one again with: {command('notify replay', str(found[0].id), store)}")
    return Exit.ok


async def replay_dead(message: int | None, *, every: bool, store: str | None, json: bool) -> Exit:
    if (message is None) is not every:
        raise InputError("name a message, or use --all.", hint="`holdfast notify dead` lists them.")
    async with open_store_for_command(store, must_exist=True) as hf:
        opened = await hf.open()
        wanted = [message] if message is not None else await _all_dead(hf)
        done = [number for number in wanted if await opened.replay_outbox(number)]
        found = await (await _deliverer(hf)).deliver()
    if message is not None and not done:
        raise NotFoundError(f"message {message} was not given up.", hint="`holdfast notify dead` lists them.")
    if json:
        print_json({"replayed": done, "delivered": found.done})
    else:
        print_line(f"{len(done)} will be retried; {found.done} delivered now.")
    return Exit.ok


def make_secret(*, json: bool) -> Exit:
    from holdfast.holds.notify.webhook import PREFIX

    made = PREFIX + b64encode(os.urandom(SECRET_SIZE)).decode()
    if json:
        print_json({"secret": made})
    else:
        print_line(made)
    return Exit.ok


async def _deliverer(hf: Holdfast) -> Deliverer:
    found = (await hf.service()).runtime.deliverer
    if found is None:
        raise InputError("this instance has no notifications.")
    return found


async def _all_dead(hf: Holdfast) -> list[int]:
    found = await (await hf.open()).list_outbox(state=OutboxState.dead, limit=ALL)
    return [each.id for each in found]


def _channel_named(name: str, found: list[Channel]) -> Channel:
    for channel in found:
        if channel.name == name:
            return channel
    names = ", ".join(channel.name for channel in found) or "none"
    raise NotFoundError(f"there is no channel {name!r}.", hint=f"There are: {names}.")


def _test_notice(tenant: str, to: str, now: int) -> Notice:
    from holdfast.holds.notify.notice import Notice

    return Notice(
        id=f"test:{new_id()}",
        topic="test",
        tenant=tenant,
        prompt="This is a test notification from Holdfast. No decision is needed.",
        assignee=Assignee("user", to),
        created_at=now,
        to=to,
    )


def _kind(channel: Channel) -> str:
    return type(channel).__name__.lower()


def _to(channel: Channel) -> str:
    return "people" if channel.personal else "everyone in the channel"


def _cells(row: OutboxRow) -> tuple[str, ...]:
    return (str(row.id), clock_time(row.at), row.topic, row.hold or "", row.error or "")


def _message_json(row: OutboxRow) -> dict[str, object]:
    return {
        "number": row.id,
        "at": iso(row.at),
        "topic": row.topic,
        "hold": row.hold,
        "tenant": row.tenant,
        "attempts": row.attempts,
        "error": row.error,
    }
