"""Where queues have to be listed (`strict`), a document that names another one is refused (QU-2)."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.frontends.document.compile import CompiledDocument
from holdfast.frontends.document.node_type import DocumentNode
from holdfast.frontends.document.read import ReadDocument
from holdfast.model.checks.names import near_name
from holdfast.queues.settings import VARIABLE, QueueSettings

_TYPES: Final = ("hitl_review", "queue_publish", "queue_consume", "queue_escalation")


def require_listed_queues(
    compiled: CompiledDocument, read: ReadDocument, settings: QueueSettings
) -> CompiledDocument:
    """With an error, and without its graph, if a node names a queue that is not listed."""
    known = settings.queues
    unlisted = [
        (node, queue) for node in compiled.nodes if (queue := _queue(node)) is not None and queue not in known
    ]
    if not settings.strict or not unlisted:
        return compiled
    for node, queue in unlisted:
        message = f"the queue {queue} is not listed in the settings of queues"
        fix = near_name(queue, known) or f'add [queues."{queue}"] to the file of {VARIABLE}'
        read.report.error(node.at("queue"), "queue-unlisted", message, fix, node=node.id)
    return msgspec.structs.replace(compiled, spec=None, problems=read.problems())


def _queue(node: DocumentNode) -> str | None:
    """Its `scope/queue`; None: it names none, or that is a problem of its own."""
    if node.type.name not in _TYPES or node.broken:
        return None
    scope = (node.config.scope or "").strip() or (node.flow.scope or "").strip()
    return f"{scope}/{node.config.queue}" if scope and node.config.queue else None
