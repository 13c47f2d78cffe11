"""The files of a run directory, as the specification defines them. Files are replaced as a whole: a reader
never sees a partial one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec

from holdfast.attractor.context import copied
from holdfast.attractor.detached_commands import FORKS
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.status_file import NAME, status_fields
from holdfast.checkpoint.visit import Visit
from holdfast.model.events import graph_at
from holdfast.model.graph import Graph, WalkSpec
from holdfast.model.record_bodies import StepBody
from holdfast.telemetry import current_node, log
from holdfast.types.outcome import FAIL
from holdfast.types.record import Record

if TYPE_CHECKING:
    from holdfast.runs.driver.services import RunServices

LOGS_KEY: Final = "internal.logs_root"
"""In the run's input: the path of its directory."""
VARIABLE: Final = "HOLDFAST_LOGS"
DEFAULT_ROOT: Final = Path(".holdfast") / "logs"
CHECKPOINT: Final = "checkpoint.json"
MANIFEST: Final = "manifest.json"
SOURCE: Final = "pipeline.dot"
"""The pipeline after all transforms: with it the run can be resumed from the directory alone."""
DOCUMENT: Final = "document.json"
"""What is stored with the run's graph: also what the run needs of a worker, and its child pipelines."""
OWNER: Final = "owner.json"
PROMPT: Final = "prompt.md"
RESPONSE: Final = "response.md"
PREAMBLE: Final = "preamble.md"
_numbers = count()


def default_logs(run_id: str) -> Path:
    """The default folder for run directories."""
    return Path(os.environ.get(VARIABLE) or DEFAULT_ROOT) / run_id


def logs_root(run_input: Mapping[str, Any], run_id: str, forked_from: str | None = None) -> Path:
    """A fork has the input of its origin, and a directory of its own inside the origin's."""
    given = run_input.get(LOGS_KEY)
    if not given:
        return default_logs(run_id)
    return Path(str(given)) / FORKS / run_id if forked_from else Path(str(given))


def logs_root_here(run_input: Mapping[str, Any], run_id: str) -> Path:
    """Of the run whose stage is running in this task."""
    at: Any = current_node.get()
    return logs_root(run_input, run_id, None if at is None else at[0].row.forked_from)


def restart_dir(root: Path, restarts: int) -> Path:
    """A restarted walk has a separate directory inside the first one."""
    return root / f"restart-{restarts}" if restarts else root


def stage_dir(logs: Path, stage: str, scope: str = "") -> Path:
    """The stages of a branch have their folders below the branch's: two branches may share a stage."""
    return logs.joinpath(*_parts(scope), safe_name(stage))


def _parts(scope: str) -> list[str]:
    return [safe_name(part) for part in scope.split("/") if part]


@lru_cache(maxsize=4096)
def safe_name(name: str) -> str:
    """Ids consist of word characters; lenient parsing accepts others, which must not leave the folder."""
    kept = "".join(c if c.isalnum() or c in "_-.~[]" else "_" for c in name)
    # `.` and `..` consist of allowed characters but are other folders.
    return kept if kept.strip(".") else "_" + kept


def is_refused(services: RunServices) -> bool:
    """Whether run directories are not written: their files would show what an encrypted store hides."""
    return services.blobs.encrypted is not None and not services.settings.plain_directories


def is_refused_here() -> bool:
    """The same for the run whose stage is running in this task."""
    at: Any = current_node.get()
    return at is not None and is_refused(at[0].services)


def make_private(folder: Path) -> None:
    """With its parents; each that is new can be used by its owner only."""
    if not folder.exists():
        make_private(folder.parent)
        # Another worker may create it at the same time.
        folder.mkdir(mode=0o700, exist_ok=True)


def write(path: Path, text: str) -> None:
    """Write the whole file or nothing, unless the store is encrypted. A failure is only logged, because the
    journal has everything."""
    if is_refused_here():
        return
    try:
        write_or_raise(path, text)
    except OSError as error:
        log.warning("%s cannot be written: %s", path, error)


def write_or_raise(path: Path, text: str, *, durable: bool = False) -> None:
    """Raises OSError. `durable`: synced to the disk before it replaces the old file."""
    # Unique per process and write: two workers may write the same file while the run changes hands.
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}.new")
    with _created(fresh) as file:
        file.write(text.encode("utf-8", "replace"))
        if durable:
            file.flush()
            os.fsync(file.fileno())
    fresh.replace(path)
    if durable:
        # The rename is durable only when its folder is synced too.
        _sync_names(path.parent)


def _created(path: Path) -> BinaryIO:
    """Opens first, and creates the folder only if that fails: it exists except for the first file."""
    try:
        return open_private(path)
    except FileNotFoundError:
        make_private(path.parent)
        return open_private(path)


def open_private(path: Path, *, appends: bool = False) -> BinaryIO:
    """To write; a new file can be used by its owner only."""
    how = os.O_APPEND if appends else os.O_TRUNC
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600), "ab" if appends else "wb")


def _sync_names(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def as_json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def write_status(folder: Path, outcome: StageOutcome) -> None:
    write(folder / NAME, as_json(status_fields(outcome)))


WALK_KEYS = frozenset({"outcome", "preferred_label", "current_node", "failure_reason", "failure_class"})
"""Context keys that the engine sets; they are not updates of a stage."""
_INTERNAL = "internal."
PLAIN = WalkSpec()
encode = msgspec.json.encode


def own_updates(update: Mapping[str, Any]) -> dict[str, Any]:
    """A stage's changes of the context, for its status file."""
    return {k: copied(v) for k, v in update.items() if k not in WALK_KEYS and not k.startswith(_INTERNAL)}


class RunFile(msgspec.Struct, frozen=True):
    """A file. `by_stage`: the worker that runs the stage writes it, before the stage is recorded."""

    text: str
    by_stage: bool = False


def stage_outcome(graph: Graph, record: Record, body: StepBody) -> StageOutcome:
    """The outcome of a stage, as its handler returned it."""
    node = graph_at(graph, record.scope).node_named(record.node)
    walk: Mapping[str, Any] = body.walk or {}
    passes_on = bool((node.walk or PLAIN).routing) or record.outcome == "skipped"
    notes: Any = body.notes or {}
    failed = record.outcome == FAIL and body.error is not None
    return StageOutcome(
        status=str(record.outcome),
        preferred_label="" if passes_on else str(walk.get("label", "")),
        suggested_next_ids=tuple(walk.get("suggested", ())),
        context_updates=own_updates({k: v for p, k, op, v in body.ops if p == "scratch" and op == "set"}),
        notes=str(notes.get("notes", "")),
        failure_reason=body.error.message if failed and body.error is not None else "",
    )


def execution_outcome(execution: Visit) -> StageOutcome | None:
    """The status of a stage whose record was pruned, as far as it is known; else None."""
    output: Any = execution.output
    if not isinstance(output, Mapping) and execution.error is None:
        return None
    updates: Mapping[str, Any] = output if isinstance(output, Mapping) else {}  # type: ignore[assignment]
    reason = "" if execution.error is None else execution.error["message"]
    return StageOutcome(status=execution.outcome, context_updates=own_updates(updates), failure_reason=reason)


def json_list(parts: list[bytes]) -> bytes:
    return b"[" + b", ".join(parts) + b"]"


def json_object(parts: Mapping[str, bytes], indent: str = "  ") -> bytes:
    """One key per line: readable, and encoded values are inserted unchanged."""
    if not parts:
        return b"{}"
    inner = (indent + "  ").encode()
    lines = (inner + encode(key) + b": " + text for key, text in parts.items())
    return b"{\n" + b",\n".join(lines) + b"\n" + indent.encode() + b"}"
