"""`holdfast mcp`: the Model Context Protocol over stdin and stdout."""

from __future__ import annotations

import os
from importlib.util import find_spec
from logging import WARNING, getLogger
from typing import Annotated

import typer

from holdfast.cli.app import Store, Text, app, run_async
from holdfast.cli.commands.worker import LEASE
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.options.telemetry import start_logging
from holdfast.errors import InputError, SettingsError
from holdfast.types.ids import DEFAULT_TENANT


@app.command(
    epilog="Examples:  holdfast mcp flows/refund.py   ·   holdfast mcp --as service:coder   ·   "
    "holdfast mcp --url https://holds.example.com",
)
def mcp(
    flows: Annotated[
        list[str] | None,
        typer.Argument(help="Files or modules whose flows the agent may start", metavar="FLOW..."),
    ] = None,
    url: Annotated[
        Text,
        typer.Option(help="Server address, with the token in HOLDFAST_TOKEN (default: HOLDFAST_URL)"),
    ] = None,
    who: Annotated[
        str, typer.Option("--as", help="Identity of the agent on a store: service:NAME", metavar="WHO")
    ] = "service:agent",
    tenant: Annotated[Text, typer.Option(help="Tenant")] = None,
    store: Store = None,
) -> int:
    """Serve an agent over MCP (stdin and stdout).

    On a store it works alone, with a worker for its questions and the named flows. With --url it forwards
    everything to a server's /mcp. Either way the agent asks and follows; it never decides.
    """
    return run_async(serve_mcp(flows or [], url=url, who=who, tenant=tenant, store=store))


async def serve_mcp(
    specs: list[str], *, url: str | None, who: str, tenant: str | None, store: str | None
) -> Exit:
    if find_spec("mcp") is None:
        raise SettingsError(
            "`holdfast mcp` needs mcp, which is not installed.",
            hint="Install the extra `mcp` (pip install 'holdfast-flow[mcp]').",
        )
    place = url or (None if store else os.environ.get("HOLDFAST_URL"))
    with start_logging("text"):
        quiet_libraries()
        if place is not None:
            if specs or store or tenant:
                raise InputError(
                    "--url cannot be combined with flows, --store and --tenant.", hint="Leave them out."
                )
            return await _serve_remote(place)
        return await _serve_local(specs, who, tenant or DEFAULT_TENANT, store)


def quiet_libraries() -> None:
    """Silences the library's log of each request."""
    for name in ("mcp", "httpx2"):
        getLogger(name).setLevel(WARNING)


async def _serve_remote(url: str) -> Exit:
    from holdfast.client.settings import settings_of
    from holdfast.integrations.mcp.bridge import run_bridge

    settings = settings_of(url)
    if settings.token is None:
        raise SettingsError(
            "HOLDFAST_TOKEN is not set.", hint="`holdfast tokens create` on the server makes a token."
        )
    await run_bridge(settings)
    return Exit.ok


async def _serve_local(specs: list[str], who: str, tenant: str, store: str | None) -> Exit:
    from holdfast.api.auth.grants import CredentialGrant, validate_grant
    from holdfast.app.loader import load_flows
    from holdfast.app.worker import Worker
    from holdfast.integrations.ask_people_flow import ask_people
    from holdfast.integrations.mcp.caller import agent_here

    validate_grant(CredentialGrant(subject=who, tenant=tenant))
    flows = [flow for spec in specs for flow in load_flows(spec)]
    from holdfast.integrations.mcp.stdio import serve_stdio as begin

    async with (
        open_store_for_command(store, must_exist=False, lease=LEASE) as hf,
        Worker(*flows, ask_people, on=hf),
    ):
        await begin(hf, agent_here(who, tenant))
    return Exit.ok
