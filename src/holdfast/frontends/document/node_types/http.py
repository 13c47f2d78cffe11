from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    DocumentNode,
    NodeConfig,
    NodeReport,
    NodeType,
    Template,
    TemplateValue,
    base_node,
)
from holdfast.frontends.document.secret_rules import check_address, is_secret
from holdfast.model.checks.names import near_name
from holdfast.model.graph import Node
from holdfast.types.status import Effect

READS: Final = frozenset({"GET", "HEAD"})
MAX_RESPONSE: Final = 16_000_000
_HOST: Final = re.compile(r"[a-z]+://[^/?#]*", re.IGNORECASE)
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STATUS: Final = re.compile(r"[1-5]([0-9]{2}|xx)")
_OURS: Final = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect",
     "accept-encoding", "keep-alive"}
)  # fmt: skip


class HttpConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`url`, or `connection` with `path`. Values of `query` and `headers` are texts or `{secret: NAME}`.
    `body`: text as it is, anything else as JSON. `expect`: the statuses that are no failure."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: Template | None = None
    connection: str | None = None
    path: Template | None = None
    query: dict[str, TemplateValue] = msgspec.field(default_factory=dict[str, Any])
    headers: dict[str, TemplateValue] = msgspec.field(default_factory=dict[str, Any])
    body: TemplateValue = msgspec.UNSET
    # Not a type with constraints: msgspec crashes on a union of constrained values and lists of them.
    expect: Annotated[
        int | str | tuple[int | str, ...], Meta(description="Statuses such as 404, or 2xx for all of these.")
    ] = "2xx"
    max_bytes: Annotated[int, Meta(ge=0, le=MAX_RESPONSE)] = 1_000_000


class HttpType(NodeType):
    name = "http"
    summary = "Sends an HTTP request; the body of the response is bound."
    config = HttpConfig
    effect = Effect.external
    defaults = True
    rules = (
        "connection-kind", "connection-unknown", "egress-refused", "http-body", "http-expect", "http-header",
        "http-one-of", "http-path", "secret-literal", "secret-target",
    )  # fmt: skip
    example: ClassVar[Json] = {"connection": "crm", "path": "/customers/{{id}}"}

    @staticmethod
    def expected(config: HttpConfig) -> tuple[str, ...]:
        given = config.expect if isinstance(config.expect, tuple) else (config.expect,)
        return tuple(str(each).lower() for each in given)

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        return (node.bind, f"{node.bind}_response") if node.bind else ()

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: HttpConfig = node.config
        self._check_address(config, found, site)
        for name in config.headers:
            if _TOKEN.fullmatch(name) is None or name.lower() in _OURS:
                why = "is set by Holdfast" if name.lower() in _OURS else "is no name of a header"
                found.error(("headers", name), "http-header", f"{name!r} {why}", "remove it")
        wrong = [each for each in self.expected(config) if _STATUS.fullmatch(each) is None]
        if wrong or not self.expected(config):
            message = f"{wrong[0]!r} is no status" if wrong else "no status is expected"
            found.error(("expect",), "http-expect", message, "write 200, or 2xx, or a list of them")
        if config.body is not msgspec.UNSET and config.method in READS:
            message = f"a {config.method} request has no body"
            fix = "use another method, or query"
            found.error(("body",), "http-body", message, fix, rests_on=("method",))

    def _check_address(self, config: HttpConfig, found: NodeReport, site: DocumentSite) -> None:
        if (config.url is None) == (config.connection is None) or (
            (config.path is None) == (config.connection is not None)
        ):
            message = "it needs either url, or connection and path"
            fix = "give url alone, or connection with path"
            found.error((), "http-one-of", message, fix, rests_on=("url", "connection", "path"))
            return
        if config.connection is not None:
            check_connection(config.connection, "http", found, site)
            check_address("path", config.path or "", found)
            if not (config.path or "").startswith(("/", "{{")):
                found.error(("path",), "http-path", "the path does not begin with /", "write /...")
            return
        self._check_url(config, found, site)

    def _check_url(self, config: HttpConfig, found: NodeReport, site: DocumentSite) -> None:
        url = config.url or ""
        check_address("url", url, found)
        host = _HOST.match(url)
        fixed = host is not None and "{{" not in host[0]
        sends = any(is_secret(each) for each in (*config.headers.values(), *config.query.values()))
        if sends and not fixed:
            message = "it sends a secret to a host that only the run knows"
            found.error(("url",), "secret-target", message, "write the host down, or use a connection")
        if fixed and site.refuses_url is not None and host is not None:
            why = site.refuses_url(host[0] if "{{" in url else url)
            if why:
                fix = "use a public https address, or a connection"
                found.error(("url",), "egress-refused", why, fix)

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        config: HttpConfig = node.config
        reads = config.method in READS and config.effect is None
        return base_node(node, found, **({"effect": Effect.read} if reads else {}))


def check_connection(name: str, kind: str, found: NodeReport, site: DocumentSite) -> None:
    """That the operator has a connection of this name and kind."""
    if site.connections is None:
        return
    known = site.connections.get(name)
    if known is None:
        same = sorted(each for each, of in site.connections.items() if of == kind)
        fix = near_name(name, same) or (
            f"use one of {', '.join(same[:20])}" if same else "add it to the operator's file of connections"
        )
        found.error(("connection",), "connection-unknown", f"there is no connection {name!r}", fix)
    elif known != kind:
        message = f"the connection {name!r} is of kind {known}, not {kind}"
        found.error(("connection",), "connection-kind", message, f"use one of kind {kind}")


NODE_TYPES = (HttpType(),)
