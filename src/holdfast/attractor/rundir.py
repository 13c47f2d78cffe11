"""The run directory: what the specification wants to find on disk. Nobody ever sees half a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.attractor.outcome import Outcome
from holdfast.attractor.statusfile import NAME, status_fields
from holdfast.telemetry import log
from holdfast.types.clock import to_datetime

LOGS_KEY: Final = "internal.logs_root"
"""In the run's input: where its directory is."""
VARIABLE: Final = "HOLDFAST_LOGS"
DEFAULT_ROOT: Final = Path(".holdfast") / "logs"


def default_logs(run_id: str) -> Path:
    """Where a run that names no directory has its own."""
    return Path(os.environ.get(VARIABLE) or DEFAULT_ROOT) / run_id


def logs_root(run_input: Mapping[str, Any], run_id: str) -> Path:
    given = run_input.get(LOGS_KEY)
    return Path(str(given)) if given else default_logs(run_id)


def stage_dir(logs: Path, stage: str, scope: str = "") -> Path:
    """A branch's stages stand below its own folder: two branches may share a stage."""
    return logs.joinpath(*_parts(scope), _safe(stage))


def _parts(scope: str) -> list[str]:
    return [_safe(part) for part in scope.split("/") if part]


def _safe(name: str) -> str:
    """Ids are made of word characters; what lenient parsing lets in besides must not leave the folder."""
    kept = "".join(c if c.isalnum() or c in "_-.~[]" else "_" for c in name)
    return kept if kept.strip(".") else "_" + kept


def write(path: Path, text: str) -> None:
    """Whole or not at all. A directory that cannot be written is told of: the journal has it all."""
    place, raw = str(path), text.encode("utf-8", "replace")
    fresh = f"{place}.{os.getpid()}.new"
    try:
        try:
            _put(fresh, raw)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            _put(fresh, raw)
        os.replace(fresh, place)  # noqa: PTH105 (every stage writes: paths cost more than the call)
    except OSError as error:
        log.warning("%s cannot be written: %s", place, error)


def _put(place: str, raw: bytes) -> None:
    with open(place, "wb", buffering=0) as file:  # noqa: PTH123
        file.write(raw)


def write_json(path: Path, value: Any) -> None:
    write(path, msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def write_status(folder: Path, outcome: Outcome) -> None:
    write_json(folder / NAME, status_fields(outcome))


def write_manifest(logs: Path, *, name: str, goal: str, run_id: str, started_at: int) -> None:
    fields = {"name": name, "goal": goal, "start_time": to_datetime(started_at).isoformat(), "run_id": run_id}
    write_json(logs / "manifest.json", fields)


def write_checkpoint(
    logs: Path,
    *,
    at: int,
    current_node: str,
    completed_nodes: Sequence[str],
    context: Mapping[str, Any],
    retries: Mapping[str, int],
    entries: Sequence[str] = (),
    **more: Any,
) -> None:
    """The specification's keys, and ours after them."""
    fields = {
        "timestamp": to_datetime(at).isoformat(),
        "current_node": current_node,
        "completed_nodes": list(completed_nodes),
        "node_retries": dict(retries),
        "context": dict(context),
        "logs": list(entries),
        **more,
    }
    write_json(logs / "checkpoint.json", fields)
