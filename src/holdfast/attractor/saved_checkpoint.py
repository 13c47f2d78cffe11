"""Reads the checkpoint of a run directory: of ours, or of any runner that follows the specification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.run_files import CHECKPOINT, SOURCE, stage_dir
from holdfast.attractor.status_file import StatusFileError, outcome_of, read_status
from holdfast.errors import InputError
from holdfast.model.pipeline_conditions import outcome_word

_LINKS = 1_000
_SUCCESS = StageStatus.SUCCESS.value


class SavedCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint. Fields that another runner does not write are empty."""

    folder: Path
    current: str
    completed: tuple[str, ...]
    context: Mapping[str, Any]
    retries: Mapping[str, int] = {}
    outcomes: Mapping[str, str] = {}
    outcome: StageOutcome = StageOutcome()
    """Of the current node."""
    gates: Mapping[str, bool] | None = None
    run: str = ""
    status: str = ""
    version: str = ""
    next_node: str = ""
    edge: str = ""
    visits: Mapping[str, int] = {}
    counters: Mapping[str, Any] = {}
    logs: tuple[str, ...] = ()

    @property
    def source(self) -> str | None:
        """The pipeline, if the directory has it."""
        try:
            return (self.folder / SOURCE).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None


def read_directory(folder: Path) -> SavedCheckpoint:
    """The newest checkpoint: after restarts, the one in the last directory. Raises InputError."""
    fields = _read(folder)
    for _ in range(_LINKS):
        onward = fields.get("goes_on_in")
        if not isinstance(onward, str) or not (folder / onward / CHECKPOINT).is_file():
            return _checkpoint_for(folder, fields)
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
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not JSON: {error}.", hint="Name an intact run directory.") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON object.", hint="Name an intact run directory.")
    return cast("dict[str, Any]", found)


def _checkpoint_for(folder: Path, fields: dict[str, Any]) -> SavedCheckpoint:
    current = _text(folder, fields, "current_node")
    completed = _ids(folder, fields, "completed_nodes")
    context = _mapping(folder, fields, "context" if "context" in fields else "context_values")
    outcomes = _outcomes(folder, fields, completed)
    onward = str(fields.get("next_node") or "")
    if completed and current not in completed and not onward:
        # Some runners name the running stage as the current one, not the last that ended.
        current, onward = completed[-1], current
    return SavedCheckpoint(
        folder=folder,
        current=current,
        completed=completed,
        context=context,
        retries={name: int(n) for name, n in _mapping(folder, fields, "node_retries").items()},
        outcomes=outcomes,
        outcome=_outcome(folder, fields, current, outcomes, context),
        gates=_gates(fields),
        run=str(fields.get("run_id") or ""),
        status=str(fields.get("status") or ""),
        version=str(fields.get("graph_version") or ""),
        next_node=onward,
        edge=str(fields.get("selected_edge") or ""),
        visits=_mapping(folder, fields, "visits"),
        counters=_mapping(folder, fields, "counters"),
        logs=tuple(str(entry) for entry in fields.get("logs") or ()),
    )


def _outcomes(folder: Path, fields: dict[str, Any], completed: tuple[str, ...]) -> dict[str, str]:
    """From `node_outcomes`, else `node_history`, else the status files of the stages."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(completed):
        status = _status(folder, name)
        found[name] = _SUCCESS if status is None else str(status.status)
    for pair in cast("list[Any]", fields.get("node_history") or []):
        if isinstance(pair, (list, tuple)) and len(cast("list[Any]", pair)) == 2:
            found[str(cast("list[Any]", pair)[0])] = _word(cast("list[Any]", pair)[1])
    result = _mapping(folder, fields, "node_outcomes")
    return {**found, **{name: _word(value) for name, value in result.items()}}


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
    except StatusFileError as fault:
        raise InputError(f"{folder / CHECKPOINT}: {fault}.", hint="Name an intact run directory.") from fault
    status = _status(folder, current) if current else None
    if isinstance(outcome, str) and outcome:
        return StageOutcome(status=_word(outcome))
    if status is not None:
        return status
    known = outcomes.get(current) or context.get("outcome") or _SUCCESS
    return StageOutcome(status=_word(known), preferred_label=str(context.get("preferred_label") or ""))


def _status(folder: Path, name: str) -> StageOutcome | None:
    try:
        return read_status(stage_dir(folder, name))
    except StatusFileError:
        return None


def _word(value: Any) -> str:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        value = fields.get("outcome") or fields.get("status") or ""
    return outcome_word(str(value))


def _gates(fields: dict[str, Any]) -> dict[str, bool] | None:
    gates = fields.get("goal_gate_status")
    return {k: bool(v) for k, v in cast("dict[str, Any]", gates).items()} if isinstance(gates, dict) else None


def _text(folder: Path, fields: dict[str, Any], key: str) -> str:
    found = fields.get(key)
    if found is not None and not isinstance(found, str):
        raise _field_error(folder, key, "text")
    return found or ""


def _ids(folder: Path, fields: dict[str, Any], key: str) -> tuple[str, ...]:
    found: Any = fields.get(key) or []
    if not isinstance(found, list) or not all(isinstance(name, str) for name in cast("list[Any]", found)):
        raise _field_error(folder, key, "a list of node ids")
    return tuple(cast("list[str]", found))


def _mapping(folder: Path, fields: dict[str, Any], key: str) -> dict[str, Any]:
    found: Any = fields.get(key) or {}
    if not isinstance(found, dict):
        raise _field_error(folder, key, "an object")
    return cast("dict[str, Any]", found)


def _field_error(folder: Path, key: str, what: str) -> InputError:
    return InputError(
        f"{folder / CHECKPOINT}: {key} is not {what}.", hint="Name a directory with an intact checkpoint."
    )
