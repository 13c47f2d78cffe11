"""Where queues have to be listed (`strict`), a flow that names another one is not deployed (QU-2)."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.errors import FlowInvalidError
from holdfast.model.graph import GraphSpec
from holdfast.queues.settings import VARIABLE, QueueSettings


def require_listed(spec: GraphSpec, settings: QueueSettings) -> None:
    """Raises FlowInvalidError with every hold whose queue is not listed."""
    if not settings.strict:
        return
    wrong = [(node, queue) for node, queue in named_queues(spec) if queue not in settings.queues]
    if wrong:
        lines = "\n".join(
            f"  - hold {node!r} asks in the queue {queue}, which is not listed" for node, queue in wrong
        )
        raise FlowInvalidError(
            f"flow {spec.name!r} names queues that the settings do not list:\n{lines}",
            hint=f"List them in the file of {VARIABLE}, or correct their names.",
            flow=spec.name,
        )


def named_queues(spec: GraphSpec) -> Iterator[tuple[str, str]]:
    """(node, scope/queue) of each hold that asks in a queue, also in sub-graphs."""
    for node in spec.nodes:
        hold = node.hold
        if hold is not None and hold.target:
            yield node.id, hold.target.address
        elif hold is not None and hold.terms and hold.terms.queue:
            yield node.id, hold.terms.queue
    for inner in spec.subgraphs:
        yield from named_queues(inner)
