"""What a document may refer to by name: functions, checks, tools, other flows. It never contains code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.model.graph import GraphSpec
from holdfast.model.program import NodeHandler

if TYPE_CHECKING:
    from holdfast.frontends.document.node_type import DocumentNode

Validate = Callable[[Any, Any], list[str]]
"""Of a JSON Schema and a value: what is wrong, each with its place."""


class FoundFlow(msgspec.Struct, frozen=True, kw_only=True):
    """Another flow that a document runs as a sub-flow, pinned to a version."""

    version: str
    spec: GraphSpec


class UnusableFlow(msgspec.Struct, frozen=True, kw_only=True):
    """Another flow that is there, but cannot be a part of the document. `rule`: of the problem."""

    rule: Literal["subflow-cycle", "subflow-invalid"]
    why: str


class DocumentSite(msgspec.Struct, frozen=True, kw_only=True):
    """Where a document is checked or run. None in place of names: they are not known here, and not checked.

    `handlers`: by node type, what makes the code of types whose code is in another package.
    """

    functions: Mapping[str, Callable[..., Any]] | None = None
    checks: Mapping[str, Callable[..., Any]] | None = None
    tools: Mapping[str, Any] | None = None
    listed_tools: frozenset[str] = frozenset()
    """Those that the operator lists: where functions are not known, a worker may have more of them."""
    connections: Mapping[str, str] | None = None
    """The kind of each: `http` or `model`."""
    secrets: frozenset[str] | None = None
    refuses_url: Callable[[str], str] | None = None
    """Why nodes may not reach an address, as far as can be seen without resolving it; empty: they may."""
    flows: Callable[[str, str], FoundFlow | UnusableFlow | None] | None = None
    """By name and version (empty: the current one)."""
    handlers: Mapping[str, Callable[[DocumentNode], NodeHandler]] = {}
    validate: Validate | None = None


NOWHERE = DocumentSite()
