from __future__ import annotations

import re
from datetime import datetime
from typing import ClassVar, Final

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import (
    DocumentNode,
    Duration,
    NodeConfig,
    NodeReport,
    NodeType,
    Template,
    base_node,
    is_expression,
)
from holdfast.model.graph import Node, NodeKind, TimerSpec

_PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")


class WaitConfig(NodeConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Either of the two. `until`: an instant with a time zone, or one placeholder that gives one (or a number
    of seconds)."""

    duration: Duration | None = None
    until: Template | None = None


class WaitType(NodeType):
    name = "wait"
    summary = "Waits for a time; no process is needed meanwhile."
    config = WaitConfig
    kind = NodeKind.timer
    rules = ("wait-one-of", "wait-until", "duration")
    example: ClassVar[Json] = {"duration": "1h"}

    def check(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
        config: WaitConfig = node.config
        if (config.duration is None) == (config.until is None):
            message, fix = "it needs either duration or until", "give one of them"
            found.error((), "wait-one-of", message, fix, rests_on=("duration", "until"))
        elif config.until is not None and _until(config.until) is None:
            found.error(
                ("until",), "wait-until", f"{config.until!r} is no instant with a time zone",
                'write "2026-01-31T09:00:00Z", or one placeholder such as "{{due}}"',
            )  # fmt: skip

    def graph_node(self, node: DocumentNode, found: NodeReport, site: DocumentSite) -> Node:
        config: WaitConfig = node.config
        length = found.duration("duration", config.duration)
        until = None if config.until is None else _until(config.until)
        return base_node(node, found, timer=TimerSpec(duration=length, until=until))


def _until(text: str) -> str | None:
    """As an expression."""
    placeholder = _PLACEHOLDER.fullmatch(text.strip())
    if placeholder is not None:
        return placeholder[1] if is_expression(placeholder[1]) else None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return None if moment.tzinfo is None else repr(moment.isoformat())


NODE_TYPES = (WaitType(),)
