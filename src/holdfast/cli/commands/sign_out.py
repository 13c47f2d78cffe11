"""`holdfast sign-out`: ends the sessions of a person."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Store, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json


@app.command(
    "sign-out",
    epilog="Examples:  holdfast sign-out user:dana@acme.com   ·   holdfast sign-out user:dana --tenant acme",
)
def sign_out(
    subject: Annotated[str, typer.Argument(help="Person: user:NAME", metavar="WHO")],
    tenant: Annotated[str, typer.Option(help="Tenant of the sessions")] = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """End every session of a person.

    Sessions end at once, on every server, for example after a lost laptop. Tokens stay valid: revoke them
    with `holdfast tokens revoke`.
    """
    return run_async(end_sessions(subject, tenant=tenant, store=store, json=json))


async def end_sessions(subject: str, *, tenant: str, store: str | None, json: bool) -> Exit:
    from holdfast.api.auth.grants import CredentialGrant, validate_grant
    from holdfast.api.auth.sessions import Sessions

    validate_grant(CredentialGrant(subject=subject, tenant=tenant))

    async with open_store_for_command(store, must_exist=True) as hf:
        ended = await Sessions(await hf.open()).end_all(subject, tenant, by="user:local")
    if json:
        print_json({"ended": ended})
    else:
        print_line(
            f"{ended} {'session' if ended == 1 else 'sessions'} of {subject} ended. Tokens stay valid."
        )
    return Exit.ok
