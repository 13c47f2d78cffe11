"""Where queues have to be listed (`strict`), a flow that names another one is not deployed (QU-2)."""

from __future__ import annotations

from holdfast.errors import FlowInvalidError
from holdfast.model.diagnostics import GraphProblem, Severity
from holdfast.model.graph import GraphSpec
from holdfast.model.hold_declaration import named_queues
from holdfast.queues.settings import VARIABLE, QueueSettings


def queue_problems(spec: GraphSpec, settings: QueueSettings) -> list[GraphProblem]:
    """Every hold whose queue is not listed."""
    wrong = [each for each in named_queues(spec) if settings.strict and each[1] not in settings.queues]
    fix = f"list it in the file of {VARIABLE}, or correct its name"
    return [
        GraphProblem(
            rule="queue-unlisted",
            severity=Severity.error,
            message=f"hold {node!r} asks in the queue {queue}, which is not listed",
            node=node,
            fix=fix,
        )
        for node, queue in wrong
    ]


def require_listed(spec: GraphSpec, settings: QueueSettings) -> None:
    """Raises FlowInvalidError with every hold whose queue is not listed."""
    wrong = queue_problems(spec, settings)
    if wrong:
        lines = "\n".join(f"  - {each.message}" for each in wrong)
        raise FlowInvalidError(
            f"flow {spec.name!r} names queues that the settings do not list:\n{lines}",
            hint=f"List them in the file of {VARIABLE}, or correct their names.",
            flow=spec.name,
        )
