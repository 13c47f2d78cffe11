"""The checkpoints of branches in a run directory: `branches/SCOPE/checkpoint.json`, in the form of the main
one, with the whole outcome of each settled stage, so that a run on another store does not repeat it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.run_files import CHECKPOINT, as_json, safe_name
from holdfast.attractor.status_file import status_fields
from holdfast.errors import InputError
from holdfast.types.clock import to_datetime

FOLDER: Final = "branches"
SCOPE: Final = "scope"
STAGES: Final = "stages"


class BranchProgress:
    """The settled stages of one branch."""

    def __init__(self, scope: str, stages: Iterable[dict[str, Any]] = ()) -> None:
        self.scope = scope
        self._stages = {(each["node"], each["visit"]): each for each in stages}
        self.at = 0

    def add(self, node: str, visit: int, outcome: StageOutcome, at: int) -> None:
        """A stage that was settled before, in another store, is listed once."""
        self._stages.pop((node, visit), None)
        self._stages[node, visit] = {"node": node, "visit": visit, **status_fields(outcome)}
        self.at = at

    @property
    def stages(self) -> list[dict[str, Any]]:
        return list(self._stages.values())

    @property
    def path(self) -> Path:
        return Path(FOLDER) / branch_name(self.scope) / CHECKPOINT

    @property
    def summary(self) -> dict[str, Any]:
        """For the main checkpoint."""
        stages = self.stages
        last = str(stages[-1]["outcome"]) if stages else ""
        return {"status": last, "completed": [each["node"] for each in stages]}

    def checkpoint(self, run: str) -> str:
        stages = self.stages
        last = stages[-1]
        return as_json(
            {
                "timestamp": to_datetime(self.at).isoformat(),
                "current_node": last["node"],
                "completed_nodes": [each["node"] for each in stages],
                "node_retries": {},
                "context": _context(stages),
                "logs": [],
                "run_id": run,
                SCOPE: self.scope,
                "outcome": {key: last[key] for key in last if key not in ("node", "visit")},
                "node_outcomes": {each["node"]: each["outcome"] for each in stages},
                "node_history": [[each["node"], each["outcome"]] for each in stages],
                STAGES: stages,
            }
        )


def branch_name(scope: str) -> str:
    """The folder of a branch: `fan.1[0]`, and `fan.1[0]~inner.1[2]` for a branch inside it."""
    return safe_name("~".join(part for part in scope.split("/") if part))


def _context(stages: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for stage in stages:
        found |= cast("dict[str, Any]", stage.get("context_updates") or {})
    return found


def read_branches(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The settled stages of the branches of a directory. Raises InputError for a file that cannot be used:
    stages that have run would run again."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((folder / FOLDER).glob(f"*/{CHECKPOINT}")):
        try:
            fields = msgspec.json.decode(path.read_bytes(), type=_BranchFile)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(
                f"{path} cannot be read: {error}.",
                hint="Restore the file; or remove it, and the branch runs from its beginning.",
            ) from error
        found[fields.scope] = [
            {**stage.rest(), "node": stage.node, "visit": stage.visit} for stage in fields.stages
        ]
    return found


class _Stage(msgspec.Struct):
    node: str
    visit: int
    outcome: str
    preferred_label: str = ""
    suggested_next_ids: list[str] = []
    context_updates: dict[str, Any] = {}
    notes: str = ""
    failure_reason: str = ""
    terminal: bool = False

    def rest(self) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return {key: value for key, value in fields.items() if key not in ("node", "visit")}


class _BranchFile(msgspec.Struct):
    scope: str
    stages: list[_Stage]
