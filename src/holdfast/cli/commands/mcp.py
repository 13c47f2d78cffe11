"""`mcp`: what an agent starts to ask people, and to start and follow runs."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Store, Text, app, run_async


@app.command(
    epilog="Examples:  holdfast mcp flows/refund.py   ·   holdfast mcp --as service:coder   ·   "
    "holdfast mcp --url https://holds.example.com",
    short_help="Let an agent ask people and start runs (MCP over stdin and stdout).",
)
def mcp(
    flows: Annotated[
        list[str] | None, typer.Argument(help="Files or modules whose flows it may start", metavar="FLOW...")
    ] = None,
    url: Annotated[
        Text,
        typer.Option(help="A server to speak to, with the token in HOLDFAST_TOKEN; else HOLDFAST_URL"),
    ] = None,
    who: Annotated[
        str, typer.Option("--as", help="Who the agent is on a store: service:NAME", metavar="WHO")
    ] = "service:agent",
    tenant: Annotated[Text, typer.Option(help="Whose questions and runs they are")] = None,
    store: Store = None,
) -> int:
    """Speak the Model Context Protocol over stdin and stdout, for the agent that starts it.

    On a store it works by itself, with a worker for its questions and the flows that are named. With --url
    it carries everything to a server's /mcp. Either way the agent asks and follows; it never decides.
    """
    from holdfast.cli.commands.mcp__speaking import serve_mcp

    return run_async(serve_mcp(flows or [], url=url, who=who, tenant=tenant, store=store))
