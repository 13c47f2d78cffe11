"""The MCP library's server with our tools, resources and prompts. It keeps no state between two requests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from holdfast._version import __version__
from holdfast.api.problems import HttpError, for_caller
from holdfast.errors import HoldfastError, NotFoundError
from holdfast.integrations.mcp import question_tools, resources, run_tools, subscriptions
from holdfast.integrations.mcp.caller import McpCaller
from holdfast.integrations.mcp.tool_registry import McpTool, schema_of
from holdfast.telemetry import log
from holdfast.types.redaction import redactor

_ASK_FIRST: Final = types.Prompt(
    name="ask_first",
    title="Ask a person first",
    description="Do a task, and ask a person before every step that cannot be undone.",
    arguments=[
        types.PromptArgument(name="task", description="The task.", required=True),
        types.PromptArgument(name="assignee", description="Who is asked: user:NAME, group:NAME, role:NAME."),
    ],
)
_WORDS: Final = """\
{task}

Before each step that cannot be undone, or that affects others, ask a person with ask_people{whom}: say \
what you are about to do and what depends on it, and give the choices. Wait with check_answer. Proceed only \
if the status is `resolved` with an agreeing decision, not if it is withdrawn or expired. Withdraw a \
question that no longer matters."""


async def list_prompts() -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[_ASK_FIRST])


async def get_prompt(params: types.GetPromptRequestParams) -> types.GetPromptResult:
    given = params.arguments or {}
    if params.name != _ASK_FIRST.name:
        raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name[:100]!r}. Known: ask_first.")
    if not given.get("task"):
        raise MCPError(types.INVALID_PARAMS, "ask_first needs a task.")
    whom = f" (assignee {given['assignee']})" if given.get("assignee") else ""
    text = types.TextContent(type="text", text=_WORDS.format(task=given["task"], whom=whom))
    return types.GetPromptResult(
        description=_ASK_FIRST.description, messages=[types.PromptMessage(role="user", content=text)]
    )


TOOLS: Final[dict[str, McpTool]] = {**question_tools.tools.found, **run_tools.tools.found}
INSTRUCTIONS: Final = """\
Holdfast runs durable workflows and asks people. Use ask_people before anything that a person should decide, \
and wait for the answer with check_answer: it may take days, longer than your session. You never decide for \
a person: only the status `resolved` is an answer. start_run and follow_run start flows and show their \
events; pass an idempotency_key with every call that you might repeat."""

Context = ServerRequestContext[Any, Any]
Who = Callable[[Context], McpCaller]


class _Server(Server[Any]):
    def get_capabilities(self, *given: Any, **named: Any) -> types.ServerCapabilities:
        """The library announces list changes whenever subscriptions are supported; our lists do not
        change, and new runs are not announced."""
        found = super().get_capabilities(*given, **named)
        for each in (found.tools, found.prompts, found.resources):
            if each is not None:
                each.list_changed = None
        return found


def make_server(who: Who) -> Server[Any]:
    """`who`: the caller of the request."""
    return _Server(
        "holdfast",
        version=__version__,
        title="Holdfast",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=_schema,
        on_list_tools=lambda ctx, params: _list_tools(who(ctx)),
        on_call_tool=lambda ctx, params: _call_tool(who(ctx), ctx, params),
        on_list_resources=lambda ctx, params: _list_resources(who(ctx), params),
        on_list_resource_templates=lambda ctx, params: _list_templates(who(ctx)),
        on_read_resource=lambda ctx, params: _read_resource(who(ctx), params.uri),
        on_list_prompts=lambda ctx, params: list_prompts(),
        on_get_prompt=lambda ctx, params: get_prompt(params),
        on_subscriptions_listen=lambda ctx, params: subscriptions.listen(who(ctx), ctx, params),
    )


# ---------------------------------------------------------------------- tools


async def _list_tools(agent: McpCaller) -> types.ListToolsResult:
    """The tools that the credential has the rights for."""
    return types.ListToolsResult(
        tools=[_described(t) for t in TOOLS.values() if agent.principal.may(t.needs)]
    )


@cache
def _described(tool: McpTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.about,
        input_schema=schema_of(tool.takes),
        output_schema=schema_of(tool.gives),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.repeats,
            open_world_hint=False,
        ),
    )


async def _call_tool(
    agent: McpCaller, ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult:
    """A failure becomes the tool's error result, so that the agent reads what to do about it."""
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name[:100]!r}. tools/list lists all.")
    try:
        result = await tool.use(agent, params.arguments or {}, ctx.session.report_progress)
    except HoldfastError as error:
        if isinstance(error, HttpError) and error.given_status == 403 and agent.refused is not None:
            await agent.refused(error)
        return _failed(f"{_shown(agent, error)} ({getattr(error, 'given_code', error.code)})")
    except Exception as error:
        # Details only in the log: an agent passes on what it
        # reads, and a traceback may contain data of others.
        log.error("tool %s failed unexpectedly", tool.name, exc_info=error)
        return _failed(
            "The tool failed with an internal error. The operator finds the details in the server's log."
        )
    body = redactor.redact_json(msgspec.json.encode(result))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=body.decode())],
        structured_content=msgspec.json.decode(body),
    )


def _schema(name: str) -> dict[str, Any] | None:
    """Called before each tool call; without it the library lists all tools."""
    tool = TOOLS.get(name)
    return None if tool is None else _described(tool).input_schema


def _shown(agent: McpCaller, error: HoldfastError) -> str:
    return str(for_caller(error, agent.principal, agent.call.request_id))


def _failed(why: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=why)], is_error=True)


# ---------------------------------------------------------------------- resources


async def _list_resources(
    agent: McpCaller, params: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    try:
        found, following = await resources.list_resources(agent, params.cursor if params else None)
    except HoldfastError as error:
        raise MCPError(types.INVALID_PARAMS, _shown(agent, error)) from error
    shown = [
        types.Resource(uri=each.uri, name=each.name, description=each.about, mime_type=resources.MEDIA)
        for each in found
    ]
    return types.ListResourcesResult(resources=shown, next_cursor=following)


async def _list_templates(agent: McpCaller) -> types.ListResourceTemplatesResult:
    found = [
        types.ResourceTemplate(
            uri_template=each.uri, name=each.name, description=each.about, mime_type=resources.MEDIA
        )
        for each in resources.TEMPLATES
        if agent.principal.may(each.needs)
    ]
    return types.ListResourceTemplatesResult(resource_templates=found)


async def _read_resource(agent: McpCaller, uri: str) -> types.ReadResourceResult:
    try:
        body = await resources.read_resource(agent, uri)
    except NotFoundError as error:
        raise MCPError(types.INVALID_PARAMS, str(error), {"uri": uri}) from error
    except HoldfastError as error:
        raise MCPError(types.INVALID_PARAMS, _shown(agent, error)) from error
    text = types.TextResourceContents(uri=uri, mime_type=resources.MEDIA, text=body.decode())
    return types.ReadResourceResult(contents=[text])
