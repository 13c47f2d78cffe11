"""`mcp`: the protocol over stdin and stdout, on a store or carried to a server. Logs go to stderr."""

from __future__ import annotations

import os
from importlib.util import find_spec
from logging import WARNING, getLogger

from holdfast.api.auth.grants import CredentialGrant, validate_grant
from holdfast.app.loader import load_flows
from holdfast.app.worker import Worker
from holdfast.cli.commands.worker import LEASE
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.options.telemetry import start_logging
from holdfast.errors import InputError, SettingsError
from holdfast.integrations.mcp.agent import agent_here
from holdfast.integrations.mcp.ask_people_flow import ask_people
from holdfast.types.ids import DEFAULT_TENANT


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
                    "with --url, flows, the store and the tenant are the server's.", hint="Leave them out."
                )
            return await _serve_remote(place)
        return await _serve_local(specs, who, tenant or DEFAULT_TENANT, store)


def quiet_libraries() -> None:
    """That a request came and went is ours to tell."""
    for name in ("mcp", "httpx2"):
        getLogger(name).setLevel(WARNING)


async def _serve_remote(url: str) -> Exit:
    from holdfast.client.settings import settings_of
    from holdfast.integrations.mcp.bridge import run_bridge

    settings = settings_of(url)
    if settings.token is None:
        raise SettingsError(
            "HOLDFAST_TOKEN has no token for the server.", hint="`holdfast tokens create` there makes one."
        )
    await run_bridge(settings)
    return Exit.ok


async def _serve_local(specs: list[str], who: str, tenant: str, store: str | None) -> Exit:
    validate_grant(CredentialGrant(subject=who, tenant=tenant))
    flows = [flow for spec in specs for flow in load_flows(spec)]
    from holdfast.integrations.mcp.stdio import serve_stdio as begin

    async with (
        open_store_for_command(store, must_exist=False, lease=LEASE) as hf,
        Worker(*flows, ask_people, on=hf),
    ):
        await begin(hf, agent_here(who, tenant))
    return Exit.ok
