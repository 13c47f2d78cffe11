"""Large values: put before the record that names them, fetched when somebody looks (D-37)."""

from __future__ import annotations

from typing import Any, Protocol

from holdfast.checkpoint import Blob, TypeRegistry, unspill
from holdfast.errors import BlobMissingError
from holdfast.model.position import Position
from holdfast.store.base import Store
from holdfast.telemetry import crashpoint
from holdfast.types.value import BlobRef, FrozenDict

IN_ROW = 1 << 20


class Objects(Protocol):
    """Where blobs that are too large for a row live."""

    async def put(self, digest: bytes, data: bytes) -> None: ...

    async def get(self, digest: bytes) -> bytes: ...

    async def delete(self, digest: bytes) -> None: ...


class BlobDesk:
    def __init__(self, store: Store, objects: Objects | None) -> None:
        self.store = store
        self.objects = objects
        self._known: set[bytes] = set()

    async def put(self, blobs: list[Blob]) -> None:
        """Blobs go first: an orphan blob is garbage, a missing blob is data loss."""
        for blob in blobs:
            digest = blob.ref.digest
            inside = self.objects is None or len(blob.data) <= IN_ROW
            if self.objects is not None and not inside:
                await self.objects.put(digest, blob.data)
            await self.store.put_blob(digest, len(blob.data), blob.data if inside else None)
            self._known.add(digest)
        crashpoint("after_blob_put")

    def knows(self, blob: Blob) -> bool:
        return blob.ref.digest in self._known

    async def fetch(self, ref: BlobRef, registry: TypeRegistry) -> Any:
        row = await self.store.blob(ref.digest)
        data = row[1] if row is not None else None
        if row is not None and data is None and self.objects is not None:
            data = await self.objects.get(ref.digest)
        if data is None:
            raise BlobMissingError(
                f"The blob {ref.digest.hex()} ({ref.size} bytes) that a checkpoint names is gone.",
                hint="Restore the blob folder or the database from a backup, then resume.",
                digest=ref.digest.hex(),
            )
        return unspill(ref, data, registry)

    async def materialise(self, pos: Position, registry: TypeRegistry) -> None:
        """Fetch what the present state still refers to: not every blob that its history ever named."""
        for scope in pos.scopes.values():
            for frame in scope.tree.frames.values():
                for partition, inside in frame.over.items():
                    refs = scope.tree.refs if frame.parent < 0 else {}
                    filled = await self._filled(partition, inside, refs, registry)
                    if filled:
                        # The input is frozen, so it is made anew; values only, the keys stay as they are.
                        frozen = isinstance(inside, FrozenDict)
                        frame.over[partition] = FrozenDict({**inside, **filled}) if frozen else {**inside, **filled}
            if isinstance(scope.output, BlobRef):
                scope.output = await self.fetch(scope.output, registry)
        for execution in pos.execs.values():
            for sub in execution.subs.values():
                if isinstance(sub.value, BlobRef):
                    sub.value = await self.fetch(sub.value, registry)

    async def _filled(
        self, partition: str, inside: dict[str, Any], refs: dict[tuple[str, str], BlobRef], registry: TypeRegistry
    ) -> dict[str, Any]:
        """The values that lay elsewhere, by key."""
        filled: dict[str, Any] = {}
        for key, value in inside.items():
            if isinstance(value, BlobRef):
                filled[key] = await self.fetch(value, registry)
                refs[(partition, key)] = value
        return filled
