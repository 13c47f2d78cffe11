"""`notify` and `links`: how people hear that a decision waits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async

notify = typer.Typer(
    no_args_is_help=True,
    help="Channels that tell people of holds: test, deliver, replay.",
    epilog="Examples:  holdfast notify test mail --to me@example.com   ·   holdfast notify dead",
)
app.add_typer(notify, name="notify")

links = typer.Typer(
    no_args_is_help=True,
    help="Signed links to holds, and the keys that sign them.",
    epilog="Example:  holdfast links make 3fa9c1d2-0000-4000-8000-000000000000 --to user:dana@example.com",
)
app.add_typer(links, name="links")

Whose = Annotated[str, typer.Option("--tenant", help="Of this tenant")]
Hold = Annotated[str, typer.Argument(help="The hold's id, or enough of its beginning", metavar="HOLD")]


@notify.command(epilog="Example:  holdfast notify channels")
def channels(tenant: Whose = "default", store: Store = None, json: Json = False) -> int:
    """Which channels there are for a tenant's holds."""
    from holdfast.cli.commands.notify__notifying import list_channels

    return run_async(list_channels(tenant, store=store, json=json))


@notify.command(epilog="Example:  holdfast notify put chat.toml --tenant acme")
def put(
    file: Annotated[
        Path, typer.Argument(help="TOML: name, kind (slack, teams, webhook), url, ...", metavar="FILE")
    ],
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Keep a channel for one tenant in the store. Its address must lie outside."""
    from holdfast.cli.commands.notify__notifying import put_channel

    return run_async(put_channel(file, tenant, store=store, json=json))


@notify.command(epilog="Example:  holdfast notify drop chat --tenant acme")
def drop(
    channel: Annotated[str, typer.Argument(help="The channel's name", metavar="CHANNEL")],
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Take a tenant's channel out of the store."""
    from holdfast.cli.commands.notify__notifying import drop_channel

    return run_async(drop_channel(channel, tenant, store=store, json=json))


@notify.command("test", epilog="Example:  holdfast notify test mail --to me@example.com")
def send_test(
    channel: Annotated[str, typer.Argument(help="The channel's name", metavar="CHANNEL")],
    to: Annotated[str, typer.Option(help="For channels to people: whom", metavar="ADDRESS")] = "",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Send a notice that asks nothing, to see whether a channel works."""
    from holdfast.cli.commands.notify__notifying import try_channel

    return run_async(try_channel(channel, to, tenant, store=store, json=json))


@notify.command(epilog="Example:  holdfast notify deliver --json")
def deliver(store: Store = None, json: Json = False) -> int:
    """Tell what is due now. A worker does this all the time."""
    from holdfast.cli.commands.notify__notifying import deliver_now

    return run_async(deliver_now(store=store, json=json))


@notify.command(epilog="Example:  holdfast notify dead")
def dead(store: Store = None, json: Json = False) -> int:
    """List messages that were given up, with what went wrong."""
    from holdfast.cli.commands.notify__notifying import list_dead

    return run_async(list_dead(store=store, json=json))


@notify.command(epilog="Examples:  holdfast notify replay 17   ·   holdfast notify replay --all")
def replay(
    message: Annotated[
        int | None, typer.Argument(help="Its number, as `notify dead` has it", metavar="NUMBER")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Everything that was given up")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Try messages again that were given up. Who has a message already does not get it twice."""
    from holdfast.cli.commands.notify__notifying import replay_dead

    return run_async(replay_dead(message, every=every, store=store, json=json))


@notify.command(epilog="Example:  holdfast notify secret")
def secret(json: Json = False) -> int:
    """Make a secret for a signed webhook."""
    from holdfast.cli.commands.notify__notifying import make_secret

    return make_secret(json=json)


@links.command(epilog="Example:  holdfast links make HOLD --to user:dana@example.com --for 2d")
def make(
    hold: Hold,
    to: Annotated[str, typer.Option(help="Whose link it is: user:NAME", metavar="WHO")],
    view: Annotated[bool, typer.Option("--view", help="Only to look, not to decide")] = False,
    lasting: Annotated[str, typer.Option("--for", help="How long it is good", metavar="LENGTH")] = "7d",
    store: Store = None,
    json: Json = False,
) -> int:
    """Make a link to a hold for one person; it ends with the hold's deadline at the latest."""
    from holdfast.cli.commands.links import make_link

    return run_async(make_link(hold, to, view=view, lasting=lasting, store=store, json=json))


@links.command(epilog="Example:  holdfast links revoke HOLD")
def revoke(hold: Hold, by: By = "user:local", store: Store = None, json: Json = False) -> int:
    """Void every link of a hold that there is."""
    from holdfast.cli.commands.links import revoke_links

    return run_async(revoke_links(hold, by, store=store, json=json))


@links.command(
    epilog="Examples:  holdfast links keys   ·   holdfast links keys --rotate   ·   "
    "holdfast links keys --drop 1f2e3d4c"
)
def keys(
    rotate: Annotated[bool, typer.Option("--rotate", help="A new key signs from now on")] = False,
    drop: Annotated[Text, typer.Option(help="Void every link of this key", metavar="KEY")] = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """The keys in the store that sign links, newest first. Their secrets are not shown."""
    from holdfast.cli.commands.links import keys_of_links

    return run_async(keys_of_links(tenant, rotate=rotate, drop=drop, store=store, json=json))


@links.command("new-key", epilog="Example:  holdfast links new-key")
def new_key(json: Json = False) -> int:
    """Make a key for HOLDFAST_LINK_KEYS, where keys are kept outside the store."""
    from holdfast.cli.commands.links import print_key

    return print_key(json=json)
