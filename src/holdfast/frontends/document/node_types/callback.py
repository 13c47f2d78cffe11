from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import DocumentNode, Duration, NodeReport, base_node
from holdfast.frontends.document.node_types.http import HttpConfig, HttpType
from holdfast.model.graph import Node, RetryPolicy
from holdfast.types.status import Effect

CALLBACK: Final = "callback"
"""What the texts of the request call it."""


class CallbackConfig(HttpConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request of an `http` node, whose texts may have `{{callback.url}}` and `{{callback.token}}`.
    Without it the node only waits. `timeout`: how long it waits. `heartbeat`: how long for a heartbeat."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    timeout: Annotated[Duration | None, Meta(description="How long it waits.")] = None
    heartbeat: Annotated[Duration | None, Meta(description="How long it waits for a heartbeat.")] = None

    @property
    def sends(self) -> bool:
        return (self.url, self.connection, self.path) != (None, None, None)


class CallbackType(HttpType):
    name = "callback"
    summary = "Hands an address to another system and waits until it calls back; its result is bound."
    config = CallbackConfig
    rules = (*HttpType.rules, "duration")
    example: ClassVar[Json] = {
        "connection": "crm",
        "path": "/jobs",
        "body": {"order": "{{order}}", "notify": "{{callback.url}}"},
        "timeout": "2d",
        "heartbeat": "1h",
    }

    def writes(self, node: DocumentNode) -> tuple[str, ...]:
        return (node.bind,) if node.bind else ()

    def scope_names(self, node: DocumentNode) -> tuple[str, ...]:
        return (CALLBACK,)

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: CallbackConfig = node.config
        found.duration("timeout", config.timeout)
        found.duration("heartbeat", config.heartbeat)
        if config.sends:
            super().check(node, found, site)

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        # Its request is a step with the effect and the retries of the config.
        again: dict[str, Any] = {"retry": RetryPolicy(), "timeout": None, "in_doubt": None}
        return base_node(node, found, script=True, effect=Effect.read, **again)


NODE_TYPES: tuple[Any, ...] = (CallbackType(),)
