"""`tokens` and `sign-in`: who comes in at a server."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, Text, app, run_async

tokens = typer.Typer(
    no_args_is_help=True,
    help="Tokens by which programs and people use a server.",
    epilog="Examples:  holdfast tokens create service:billing --role operator --expires 90d"
    "   ·   holdfast tokens list   ·   holdfast tokens revoke ID",
)
app.add_typer(tokens, name="tokens")

Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--role", help="viewer, member, approver, operator or admin; may be repeated", metavar="ROLE"
    ),
]
Tenant = Annotated[str, typer.Option(help="Whose runs and holds it is for")]


@tokens.command(
    epilog="Examples:  holdfast tokens create user:dana@acme.com --role operator"
    "   ·   holdfast tokens create service:reports --right runs:read --right audit:read --expires 30d"
    "   ·   holdfast tokens create user:root --role admin --right holds:override"
)
def create(
    subject: Annotated[
        str, typer.Argument(help="user:NAME for a person, service:NAME for a program", metavar="WHO")
    ],
    role: Roles = None,
    right: Annotated[
        list[str] | None, typer.Option(help="One right by its name; may be repeated", metavar="RIGHT")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="A group whose holds are theirs too; may be repeated", metavar="GROUP"),
    ] = None,
    tenant: Tenant = "default",
    expires: Annotated[Text, typer.Option(help="90d, 12h, or never", metavar="TIME")] = "90d",
    note: Annotated[str, typer.Option(help="What it is for")] = "",
    store: Store = None,
    json: Json = False,
) -> int:
    """Make a token. It is printed once; the store keeps only a digest of it."""
    from holdfast.cli.commands.tokens__tokening import create_token

    return run_async(
        create_token(
            subject,
            roles=role or [],
            rights=right or [],
            groups=group or [],
            tenant=tenant,
            expires=expires,
            note_=note,
            store=store,
            json=json,
        )
    )


@tokens.command(
    "list", epilog="Examples:  holdfast tokens list   ·   holdfast tokens list --tenant acme --all"
)
def list_(
    tenant: Annotated[Text, typer.Option(help="Only those of this tenant")] = None,
    every: Annotated[bool, typer.Option("--all", help="Also those that are expired or revoked")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """The tokens, what they may, and when each was last used (to five minutes)."""
    from holdfast.cli.commands.tokens__tokening import list_tokens

    return run_async(list_tokens(tenant=tenant, every=every, store=store, json=json))


@tokens.command(epilog="Example:  holdfast tokens revoke k3v9q2m8x1ab")
def revoke(
    name: Annotated[
        str, typer.Argument(help="Its id, as `list` shows it; not the token itself", metavar="ID")
    ],
    store: Store = None,
    json: Json = False,
) -> int:
    """A token is good no more, nor is any session that began with it. Servers hear within five seconds."""
    from holdfast.cli.commands.tokens__tokening import revoke_token

    return run_async(revoke_token(name, store=store, json=json))


@app.command(
    "sign-in",
    epilog="Examples:  holdfast sign-in   ·   holdfast sign-in --as user:dana --role approver"
    "   ·   holdfast sign-in --address https://holdfast.example.com",
    short_help="An address at which a browser is signed in, once.",
)
def sign_in(
    subject: Annotated[str, typer.Option("--as", help="Who will be signed in", metavar="WHO")] = "user:local",
    role: Roles = None,
    tenant: Tenant = "default",
    address: Annotated[
        str, typer.Option(help="Where the server is", metavar="URL")
    ] = "http://127.0.0.1:8420",
    store: Store = None,
    json: Json = False,
) -> int:
    """An address at which a browser is signed in: good once, for ten minutes.

    Without --role they are an admin.

    Whoever may work on the store may do this: it needs no password, and no server to be running yet.
    """
    from holdfast.cli.commands.tokens__tokening import make_sign_in

    return run_async(
        make_sign_in(
            subject=subject, tenant=tenant, roles=role or [], address=address, store=store, json=json
        )
    )


@app.command(
    "sign-out",
    epilog="Examples:  holdfast sign-out user:dana@acme.com   ·   holdfast sign-out user:dana --tenant acme",
    short_help="End every session of somebody.",
)
def sign_out(
    subject: Annotated[str, typer.Argument(help="Whose sessions: user:NAME", metavar="WHO")],
    tenant: Tenant = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """End every session of somebody, at once and on every server: a lost laptop, somebody who has left. Their
    tokens are another thing: `holdfast tokens revoke`."""
    from holdfast.cli.commands.tokens__tokening import end_sessions

    return run_async(end_sessions(subject, tenant=tenant, store=store, json=json))
