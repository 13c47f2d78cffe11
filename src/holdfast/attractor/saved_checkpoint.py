"""Reads the checkpoint of a run directory: of ours, or of any runner that follows the specification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from holdfast.attractor.branch_files import read_branches
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.run_files import CHECKPOINT, DOCUMENT, SOURCE, stage_dir
from holdfast.attractor.status_file import read_status
from holdfast.attractor.verdict import VerdictError, outcome_of
from holdfast.errors import InputError
from holdfast.model.pipeline_conditions import outcome_word

_LINKS = 1_000
UNKNOWN = "unknown"
"""The outcome of a stage of which the directory says nothing: it satisfies no goal gate."""
_SHOWN = 80
_COUNTERS = ("jumps", "fail_jumps", "restarts", "before")


class SavedCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint. Fields that another runner does not write are empty."""

    folder: Path
    """Of the newest walk."""
    root: Path
    current: str
    completed: tuple[str, ...]
    context: Mapping[str, Any]
    retries: Mapping[str, int] = {}
    outcomes: Mapping[str, str] = {}
    outcome: StageOutcome = StageOutcome()
    """Of the current node; its status is `unknown` if the directory does not say it."""
    gates: Mapping[str, bool] | None = None
    run: str = ""
    status: str = ""
    version: str = ""
    next_node: str = ""
    edge: str = ""
    visits: Mapping[str, int] = {}
    counters: Mapping[str, Any] = {}
    logs: tuple[str, ...] = ()
    branches: Mapping[str, list[dict[str, Any]]] = {}
    """The settled stages of each branch, by its scope (`branch_files`)."""

    @property
    def document(self) -> dict[str, Any] | None:
        """What was stored with the run's graph, if the directory has it."""
        try:
            found = msgspec.json.decode((self.folder / DOCUMENT).read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return found if isinstance(found.get("source"), str) else None

    @property
    def source(self) -> str | None:
        """The pipeline, if the directory has it."""
        try:
            return (self.folder / SOURCE).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def read_directory(folder: Path) -> SavedCheckpoint:
    """The newest checkpoint: after restarts, the one in the last directory. Raises InputError."""
    root, fields = folder, _read(folder)
    for _ in range(_LINKS):
        onward = fields.get("goes_on_in")
        if not isinstance(onward, str) or not (folder / onward / CHECKPOINT).is_file():
            return _checkpoint_for(root, folder, fields)
        folder = folder / onward
        fields = _read(folder)
    raise InputError(
        f"the restarts in {folder} form a cycle.", hint="Name a directory with an intact checkpoint."
    )


def _read(folder: Path) -> dict[str, Any]:
    path = folder / CHECKPOINT
    try:
        found: Any = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}.",
            hint="Name a run directory: it has a checkpoint.json.",
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}.", hint="Name an intact run directory.") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON object.", hint="Name an intact run directory.")
    return cast("dict[str, Any]", found)


def _checkpoint_for(root: Path, folder: Path, fields: dict[str, Any]) -> SavedCheckpoint:
    current = _text(folder, fields, "current_node")
    completed = _ids(folder, fields, "completed_nodes")
    context = _mapping(folder, fields, "context" if "context" in fields else "context_values")
    outcomes = _outcomes(folder, fields, completed)
    onward = _text(folder, fields, "next_node")
    if completed and current not in completed and not onward:
        # Some runners name the running stage as the current one, not the last that ended.
        current, onward = completed[-1], current
    return SavedCheckpoint(
        folder=folder,
        root=root,
        current=current,
        completed=completed,
        context=context,
        retries=_counts(folder, fields, "node_retries"),
        outcomes=outcomes,
        outcome=_outcome(folder, fields, current, outcomes, context),
        gates=_gates(folder, fields),
        run=_text(folder, fields, "run_id"),
        status=_text(folder, fields, "status"),
        version=_text(folder, fields, "graph_version"),
        next_node=onward,
        edge=_text(folder, fields, "selected_edge"),
        visits=_counts(folder, fields, "visits"),
        counters=_counters(folder, fields),
        logs=tuple(str(entry) for entry in _list(folder, fields, "logs")),
        branches=read_branches(folder),
    )


def _outcomes(folder: Path, fields: dict[str, Any], completed: tuple[str, ...]) -> dict[str, str]:
    """From `node_outcomes`, else `node_history`, else the status files of the stages."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(completed):
        status = _status(folder, name)
        found[name] = UNKNOWN if status is None else str(status.status)
    for number, pair in enumerate(_list(folder, fields, "node_history")):
        if not isinstance(pair, list) or len(cast("list[Any]", pair)) != 2:
            raise _field_error(folder, f"node_history[{number}]", "a pair of a stage and its outcome", pair)
        name, outcome = cast("list[Any]", pair)
        found[str(name)] = _word(folder, f"node_history[{number}]", outcome)
    result = _mapping(folder, fields, "node_outcomes")
    return {**found, **{k: _word(folder, f"node_outcomes.{k}", value) for k, value in result.items()}}


def _outcome(
    folder: Path,
    fields: dict[str, Any],
    current: str,
    outcomes: Mapping[str, str],
    context: Mapping[str, Any],
) -> StageOutcome:
    outcome: Any = fields.get("outcome")
    try:
        if isinstance(outcome, dict):
            return outcome_of(cast("dict[str, Any]", outcome))
    except VerdictError as fault:
        raise InputError(f"{folder / CHECKPOINT}: {fault}.", hint="Name an intact run directory.") from fault
    if outcome is not None and not isinstance(outcome, str):
        raise _field_error(folder, "outcome", "an object or text", outcome)
    if outcome:
        return StageOutcome(status=_word(folder, "outcome", outcome))
    status = _status(folder, current) if current else None
    known = outcomes.get(current, UNKNOWN)
    if status is not None and str(status.status) == known:
        return status
    if known == UNKNOWN and context.get("outcome"):
        known = _word(folder, "context.outcome", context["outcome"])
    return StageOutcome(status=known, preferred_label=str(context.get("preferred_label") or ""))


def _status(folder: Path, name: str) -> StageOutcome | None:
    try:
        return read_status(stage_dir(folder, name))
    except VerdictError:
        return None


def _word(folder: Path, key: str, value: Any) -> str:
    given = value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        given = fields.get("outcome") or fields.get("status")
    if not isinstance(given, str) or not given:
        raise _field_error(folder, key, "an outcome", value)
    return outcome_word(given)


def _gates(folder: Path, fields: dict[str, Any]) -> dict[str, bool] | None:
    if fields.get("goal_gate_status") is None:
        return None
    gates = _mapping(folder, fields, "goal_gate_status")
    for name, value in gates.items():
        if not isinstance(value, bool):
            raise _field_error(folder, f"goal_gate_status.{name}", "true or false", value)
    return gates


def _counts(folder: Path, fields: dict[str, Any], key: str) -> dict[str, int]:
    found = _mapping(folder, fields, key)
    for name, value in found.items():
        _require_count(folder, f"{key}.{name}", value)
    return found


def _counters(folder: Path, fields: dict[str, Any]) -> dict[str, Any]:
    found = _mapping(folder, fields, "counters")
    for key in _COUNTERS:
        value = found.get(key, 0)
        each: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {"": value}
        for name, count in each.items():
            _require_count(folder, f"counters.{key}{'.' if name else ''}{name}", count)
    return found


def _require_count(folder: Path, key: str, value: Any) -> None:
    if type(value) is not int or value < 0:
        raise _field_error(folder, key, "a whole number of 0 or more", value)


def _text(folder: Path, fields: dict[str, Any], key: str) -> str:
    found = fields.get(key)
    if found is not None and not isinstance(found, str):
        raise _field_error(folder, key, "text", found)
    return found or ""


def _ids(folder: Path, fields: dict[str, Any], key: str) -> tuple[str, ...]:
    found: Any = [] if fields.get(key) is None else fields[key]
    if not isinstance(found, list) or not all(isinstance(name, str) for name in cast("list[Any]", found)):
        raise _field_error(folder, key, "a list of node ids", found)
    return tuple(cast("list[str]", found))


def _mapping(folder: Path, fields: dict[str, Any], key: str) -> dict[str, Any]:
    found: Any = {} if fields.get(key) is None else fields[key]
    if not isinstance(found, dict):
        raise _field_error(folder, key, "an object", found)
    return cast("dict[str, Any]", found)


def _list(folder: Path, fields: dict[str, Any], key: str) -> list[Any]:
    found: Any = [] if fields.get(key) is None else fields[key]
    if not isinstance(found, list):
        raise _field_error(folder, key, "a list", found)
    return cast("list[Any]", found)


def _field_error(folder: Path, key: str, what: str, value: Any) -> InputError:
    shown = msgspec.json.encode(value).decode()
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return InputError(
        f"{folder / CHECKPOINT}: {key} is {shown}, not {what}.",
        hint="Name a directory with an intact checkpoint.",
    )
