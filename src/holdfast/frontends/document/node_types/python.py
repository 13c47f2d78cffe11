from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from holdfast.errors import VersionMismatchError
from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    NOT_EMPTY,
    DocumentNode,
    NodeConfig,
    NodeReport,
    NodeType,
    TemplateValue,
)
from holdfast.frontends.document.render import compile_value, resolver_for
from holdfast.frontends.python.code import code_fingerprint
from holdfast.frontends.python.function_parameters import context_name, is_coroutine
from holdfast.model.checks.names import near_name
from holdfast.model.program import NodeHandler
from holdfast.types.status import Effect


class PythonConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`function`: one that the operator registered. `args`: its arguments by name."""

    function: Annotated[str, Meta(pattern=NOT_EMPTY, description="The name of a registered function.")]
    args: dict[str, TemplateValue] = msgspec.field(default_factory=dict[str, Any])


class PythonType(NodeType):
    name = "python"
    summary = "Calls a registered Python function; its result is bound."
    config = PythonConfig
    effect = Effect.external
    defaults = True
    rules = ("function-unknown", "args-mismatch")
    example: ClassVar[Json] = {"function": "score", "args": {"customer": "{{customer}}"}}

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        return (node.bind,) if node.bind else ()

    def requires(self, node: DocumentNode) -> tuple[str, ...]:
        return (f"function:{node.config.function}",)

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: PythonConfig = node.config
        if site.functions is None:
            return
        fn = site.functions.get(config.function)
        if fn is None:
            known = ", ".join(sorted(site.functions)[:20])
            fix = near_name(config.function, site.functions) or (
                f"use one of {known}" if known else "register it, or name its module with --functions"
            )
            message = f"there is no function {config.function!r}"
            found.error(("function",), "function-unknown", message, fix)
            return
        problem = _mismatch(fn, config.args)
        if problem:
            found.error(("args",), "args-mismatch", f"{config.function}: {problem}", _signature(fn))

    def handler(self, node: DocumentNode, site: DocumentSite) -> NodeHandler:
        config: PythonConfig = node.config
        fn = (site.functions or {}).get(config.function)
        if fn is None:
            raise VersionMismatchError(
                f"node {node.id!r} calls the function {config.function!r}, which is not registered here.",
                hint="Start a worker that has it: holdfast worker --functions path/to/file.py.",
            )
        call = _caller(fn, node)
        return NodeHandler(
            fn=call,
            is_async=is_coroutine(fn),
            takes=("state", "ctx"),
            code=code_fingerprint(fn),
        )


def _caller(fn: Callable[..., Any], node: DocumentNode) -> Callable[..., Any]:
    render, bind, ctx_name = compile_value(node.config.args), node.bind, context_name(fn)

    def arguments(state: Mapping[str, Any], ctx: Any) -> dict[str, Any]:
        given = render(resolver_for(state, ctx))
        return {**given, ctx_name: ctx} if ctx_name else given

    def bound(result: Any) -> dict[str, Any] | None:
        return {bind: result} if bind else None

    async def call_async(state: Mapping[str, Any], ctx: Any) -> dict[str, Any] | None:
        return bound(await fn(**arguments(state, ctx)))

    def call(state: Mapping[str, Any], ctx: Any) -> dict[str, Any] | None:
        return bound(fn(**arguments(state, ctx)))

    return call_async if is_coroutine(fn) else call


def _mismatch(fn: Callable[..., Any], args: Mapping[str, Any]) -> str:
    """Why it cannot be called with these arguments; empty if it can."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return ""  # a builtin without a signature
    context = context_name(fn)
    try:
        signature.bind(**args, **({context: None} if context and context not in args else {}))
    except TypeError as error:
        return str(error)
    return ""


def _signature(fn: Callable[..., Any]) -> str:
    return f"its parameters are {inspect.signature(fn)}"


NODE_TYPES = (PythonType(),)
