"""`holdfast sign-in`: an address that signs a browser in."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Roles, Store, Tenant, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_note, print_raw
from holdfast.cli.output.json_output import print_json


@app.command(
    "sign-in",
    epilog="Examples:  holdfast sign-in   ·   holdfast sign-in --as user:dana --role approver"
    "   ·   holdfast sign-in --address https://holdfast.example.com",
)
def sign_in(
    subject: Annotated[str, typer.Option("--as", help="Person to sign in", metavar="WHO")] = "user:local",
    role: Roles = None,
    tenant: Tenant = "default",
    address: Annotated[str, typer.Option(help="Server address", metavar="URL")] = "http://127.0.0.1:8420",
    store: Store = None,
    json: Json = False,
) -> int:
    """Print an address that signs a browser in once.

    The address is valid once, for ten minutes. Without --role the person is an admin.

    It needs write access to the store, no password and no running server.
    """
    return run_async(
        make_sign_in(
            subject=subject, tenant=tenant, roles=role or [], address=address, store=store, json=json
        )
    )


async def make_sign_in(
    *, subject: str, tenant: str, roles: list[str], address: str, store: str | None, json: bool
) -> Exit:
    from holdfast.api.auth.authenticator import Authenticator
    from holdfast.api.auth.first_token import sign_in_address
    from holdfast.api.auth.settings import sign_in_from_environment

    async with open_store_for_command(store, must_exist=True) as hf:
        settings = sign_in_from_environment()
        where = await sign_in_address(
            Authenticator(hf, settings),
            settings.public_url or address,
            subject=subject,
            tenant=tenant,
            roles=tuple(roles) or ("admin",),
        )
    if json:
        print_json({"sign_in": where})
    else:
        print_raw(f"{where}\n")
        print_note("Valid once, for ten minutes.")
    return Exit.ok
