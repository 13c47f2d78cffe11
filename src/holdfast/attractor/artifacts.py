"""Named outputs that are too large for the context (section 5.5), in memory or in files of the run directory.

Inside a run (`await ArtifactStore.of(visit)`) what is stored becomes part of the stage's record: it is there
for later stages and after a crash, and the files can be restored from the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from holdfast.attractor.context import copied, storable
from holdfast.attractor.event_mapper import ARTIFACT
from holdfast.attractor.run_files import as_json, safe_name, write_or_raise
from holdfast.errors import NotFoundError

if TYPE_CHECKING:
    from holdfast.attractor.handler import StageVisit
    from holdfast.runs.context.context import Context

FILE_BACKING_THRESHOLD: Final = 100 * 1024
"""Bytes of JSON above which an artifact is a file."""
FOLDER: Final = "artifacts"


class ArtifactInfo(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    size_bytes: int
    stored_at: datetime
    is_file_backed: bool


class ArtifactStore:
    """`base_dir`: where files go; without one everything stays in memory. For several threads at once."""

    def __init__(
        self, base_dir: str | Path | None = None, *, threshold: int = FILE_BACKING_THRESHOLD
    ) -> None:
        self._base = None if base_dir is None else Path(base_dir)
        self._threshold = threshold
        self._lock = RLock()
        self._found: dict[str, tuple[ArtifactInfo, Any]] = {}
        self._ctx: Context | None = None

    @classmethod
    async def of(cls, visit: StageVisit) -> ArtifactStore:
        """With the artifacts of earlier stages. Those of this stage are visible after it has ended."""
        store = cls(visit.logs)
        for name, value in (await visit.ctx.made()).items():
            kept = artifact_record(value)
            if kept is not None:
                store._take(name, str(kept["name"]), copied(kept["data"]), _moment(kept["stored_at"]))
        store._ctx = visit.ctx
        return store

    def store(self, artifact_id: str, name: str, data: Any) -> ArtifactInfo:
        """Raises ValueNotStorableError if the data is not JSON."""
        plain = storable(artifact_id, data)
        info = self._take(artifact_id, name, plain, datetime.now(UTC))
        if self._ctx is not None:
            kept = {"name": name, "stored_at": info.stored_at.isoformat(), "data": plain}
            self._ctx.artifact(artifact_id, kept)
            self._ctx.emit(artifact_id, ARTIFACT)
        return info

    def _take(self, artifact_id: str, name: str, data: Any, at: datetime) -> ArtifactInfo:
        size = len(msgspec.json.encode(data))
        backed = size > self._threshold and self._base is not None
        with self._lock:
            if backed:
                write_or_raise(self._path(artifact_id), as_json(data))
            info = ArtifactInfo(
                id=artifact_id, name=name, size_bytes=size, stored_at=at, is_file_backed=backed
            )
            self._found[artifact_id] = info, None if backed else data
        return info

    def retrieve(self, artifact_id: str) -> Any:
        """Raises NotFoundError."""
        with self._lock:
            if artifact_id not in self._found:
                raise NotFoundError(
                    f"artifact not found: {artifact_id!r}.", hint="`list()` returns the existing ones."
                )
            info, data = self._found[artifact_id]
            if not info.is_file_backed:
                # A copy: a caller that changes it must not change the artifact.
                return copied(data)
            return msgspec.json.decode(self._path(artifact_id).read_bytes())

    def has(self, artifact_id: str) -> bool:
        with self._lock:
            return artifact_id in self._found

    def list(self) -> list[ArtifactInfo]:
        with self._lock:
            return [info for info, _ in self._found.values()]

    def remove(self, artifact_id: str) -> None:
        """Removing an artifact that does not exist does nothing."""
        with self._lock:
            found = self._found.pop(artifact_id, None)
            if found is None:
                return
            if found[0].is_file_backed:
                self._path(artifact_id).unlink(missing_ok=True)
        if self._ctx is not None:
            self._ctx.artifact(artifact_id, {"removed": True})

    def clear(self) -> None:
        for info in self.list():
            self.remove(info.id)

    def _path(self, artifact_id: str) -> Path:
        assert self._base is not None
        return self._base / FOLDER / f"{safe_name(artifact_id)}.json"


def artifact_record(value: Any) -> Mapping[str, Any] | None:
    """An artifact as a record has it; None for one that was removed, or is something else."""
    if not isinstance(value, Mapping):
        return None
    found = cast("Mapping[str, Any]", value)
    return found if {"name", "stored_at", "data"} <= set(found) else None


def is_large(kept: Mapping[str, Any]) -> bool:
    return len(msgspec.json.encode(copied(kept["data"]))) > FILE_BACKING_THRESHOLD


def _moment(text: Any) -> datetime:
    return datetime.fromisoformat(str(text))
