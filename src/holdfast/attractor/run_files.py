"""The run directory: what the specification wants to find on disk. Nobody ever sees half a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from holdfast.attractor.outcome import Outcome
from holdfast.attractor.status_file import NAME, status_fields
from holdfast.telemetry import log

LOGS_KEY: Final = "internal.logs_root"
"""In the run's input: where its directory is."""
VARIABLE: Final = "HOLDFAST_LOGS"
DEFAULT_ROOT: Final = Path(".holdfast") / "logs"
CHECKPOINT: Final = "checkpoint.json"
MANIFEST: Final = "manifest.json"
SOURCE: Final = "pipeline.dot"
"""What the run goes by, after all transforms: whoever has the directory can go on with it."""
PROMPT: Final = "prompt.md"
RESPONSE: Final = "response.md"
_numbers = count()


def default_logs(run_id: str) -> Path:
    """Where a run that names no directory has its own."""
    return Path(os.environ.get(VARIABLE) or DEFAULT_ROOT) / run_id


def logs_root(run_input: Mapping[str, Any], run_id: str) -> Path:
    given = run_input.get(LOGS_KEY)
    return Path(str(given)) if given else default_logs(run_id)


def restart_dir(root: Path, restarts: int) -> Path:
    """A walk that began anew has a directory of its own inside the first one."""
    return root / f"restart-{restarts}" if restarts else root


def stage_dir(logs: Path, stage: str, scope: str = "") -> Path:
    """A branch's stages stand below its own folder: two branches may share a stage."""
    return logs.joinpath(*_parts(scope), safe(stage))


def _parts(scope: str) -> list[str]:
    return [safe(part) for part in scope.split("/") if part]


@lru_cache(maxsize=4096)
def safe(name: str) -> str:
    """Ids are made of word characters; what lenient parsing lets in besides must not leave the folder."""
    kept = "".join(c if c.isalnum() or c in "_-.~[]" else "_" for c in name)
    return kept if kept.strip(".") else "_" + kept


def write(path: Path, text: str) -> None:
    """Whole or not at all. A directory that cannot be written is told of: the journal has it all."""
    try:
        write_or_raise(path, text)
    except OSError as error:
        log.warning("%s cannot be written: %s", path, error)


def write_or_raise(path: Path, text: str, *, durable: bool = False) -> None:
    """Raises OSError. `durable`: on the disk when this returns, and not before it is whole there."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}.new")
    with _created(fresh) as file:
        file.write(text.encode("utf-8", "replace"))
        if durable:
            file.flush()
            os.fsync(file.fileno())
    fresh.replace(path)
    if durable:
        _sync_names(path.parent)


def _created(path: Path) -> BinaryIO:
    """Its folder is there, all but the first time."""
    try:
        return path.open("wb")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")


def _sync_names(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def as_json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def write_status(folder: Path, outcome: Outcome) -> None:
    write(folder / NAME, as_json(status_fields(outcome)))
