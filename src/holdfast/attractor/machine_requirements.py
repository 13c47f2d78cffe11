"""What a document needs from the worker's machine: commands to run, files to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.errors import RequirementsMissingError
from holdfast.frontends.dot.document import Attributes, Pipeline, SourceLocation
from holdfast.runs.driver.settings import ALLOW_CODE
from holdfast.runs.unserved import how_to_get
from holdfast.telemetry import current_node

if TYPE_CHECKING:
    from holdfast.attractor.handler import StageVisit

COMMANDS: Final = {
    "agent": "an agent that runs on the worker",
    "tool_command": "a command that runs on the worker",
    "tools": "tools that a model uses on the worker",
    "tool_hooks.pre": "a command that runs on the worker",
    "tool_hooks.post": "a command that runs on the worker",
}
FILES: Final = {
    "stack.child_resolve": "a file of the worker's machine",
    "workspace": "a repository of the worker's machine",
}
_HARMLESS: Final = {"tools": "none", "workspace": "shared"}
FOLDERS: Final = {
    "cwd": "a folder of the worker's machine",
    "workdir": "a folder of the worker's machine",
    "stack.child_workdir": "a folder of the worker's machine",
}

SUBMITTED: Final = "internal.submitted"
"""In the input of a child pipeline: the pipeline that started it was submitted."""


def is_submitted(visit: StageVisit) -> bool:
    return visit.pipeline.submitted or bool(visit.given.get(SUBMITTED))


def refusal_of(visit: StageVisit) -> str:
    """Why nothing of this pipeline may run on this machine; empty if it may. The server that accepted the
    document checked it too; this worker does not rely on it."""
    if not is_submitted(visit):
        return ""
    at: Any = current_node.get()
    if at is not None and at[0].services.settings.allow_code:
        return ""
    return (
        "this pipeline was submitted to a server, and this worker does not run commands of such pipelines "
        "(`holdfast worker --allow-code` does)"
    )


def require_allowed(visit: StageVisit) -> None:
    """Raises RequirementsMissingError: a worker that allows it continues the run."""
    refused = refusal_of(visit)
    if refused:
        raise RequirementsMissingError(
            f"stage {visit.stage.id!r} waits for a worker with {ALLOW_CODE}: {refused}.",
            hint=f"Start a worker that has it, or give it here: {how_to_get([ALLOW_CODE])}.",
            missing=[ALLOW_CODE],
        )


class RequiredAccess(NamedTuple):
    node: str
    """"" for the graph itself."""
    attribute: str
    what: str
    place: SourceLocation

    @property
    def is_code(self) -> bool:
        """It is refused where it would run, and not only where it is submitted."""
        return self.attribute in COMMANDS or self.attribute in FILES

    def __str__(self) -> str:
        where = f"stage {self.node}" if self.node else "the graph"
        return f"{where} has {self.attribute}: {self.what}"


def required_access_of(pipeline: Pipeline) -> list[RequiredAccess]:
    """All of them, in the pipeline with what it includes, and in its child pipelines."""
    found = _of(pipeline, "")
    for stage in pipeline.stages.values():
        found += _of(stage, stage.id)
    for child in pipeline.children.values():
        found += required_access_of(child)
    return found


def _of(what: Attributes, node: str) -> list[RequiredAccess]:
    known = {**COMMANDS, **FILES, **FOLDERS}
    found = [
        (key, known[key])
        for key in what.attrs
        if key in known and what.text(key) not in ("", _HARMLESS.get(key))
    ]
    nowhere = SourceLocation()
    return [RequiredAccess(node, key, why, what.places.get(key, nowhere)) for key, why in found]
