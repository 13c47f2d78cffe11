"""Tools: declared once, with the right that they need, their input and their output.

    @tools.tool(needs=Right.runs_read, reads=True)
    async def get_run(agent: Agent, given: GetRun, progress: Progress) -> RunShown: ...

An agent sees its name, its docstring and the schemas of both structs.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_type_hints

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.problems import HttpError
from holdfast.api.request_body import require_strict
from holdfast.integrations.mcp.caller import McpCaller, Progress

Handler = Callable[[McpCaller, Any, Progress], Awaitable[Any]]


class McpTool(msgspec.Struct, frozen=True, kw_only=True):
    """`reads`: it changes nothing. `destroys`: it removes something. `repeats`: it is idempotent."""

    name: str
    title: str
    about: str
    needs: Right
    takes: type[msgspec.Struct]
    gives: type[msgspec.Struct]
    handler: Handler
    reads: bool
    destroys: bool
    repeats: bool

    async def use(self, agent: McpCaller, given: Mapping[str, Any], progress: Progress) -> msgspec.Struct:
        """Raises HoldfastError."""
        agent.require(self.needs)
        try:
            # Encoded first: text that is not valid Unicode, such as a lone surrogate, is refused here.
            asked = msgspec.json.decode(msgspec.json.encode(dict(given)), type=self.takes)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise HttpError(
                422,
                f"the arguments of {self.name} do not fit: {error}.",
                code="invalid_input",
                hint=f"It takes {', '.join(self.takes.__struct_encode_fields__) or 'none'}.",
            ) from error
        return await self.handler(agent, asked, progress)


class ToolRegistry:
    def __init__(self) -> None:
        self.found: dict[str, McpTool] = {}

    def tool(
        self, *, needs: Right, reads: bool = False, destroys: bool = False, repeats: bool = False
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            hints = get_type_hints(handler)
            name = handler.__name__
            require_strict(hints["given"], name)
            self.found[name] = McpTool(
                name=name,
                title=name.replace("_", " ").capitalize(),
                about=inspect.cleandoc(handler.__doc__ or ""),
                needs=needs,
                takes=hints["given"],
                gives=hints["return"],
                handler=handler,
                reads=reads,
                destroys=destroys,
                repeats=repeats or reads,
            )
            return handler

        return declare


def schema_of(shape: type[msgspec.Struct]) -> dict[str, Any]:
    """An object at the root, as the protocol requires, with its references under `$defs`."""
    (root,), parts = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    found: dict[str, Any] = parts.pop(str(root["$ref"]).rpartition("/")[2])
    return {**found, "$defs": parts} if parts else found
