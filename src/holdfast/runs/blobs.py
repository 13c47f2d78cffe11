"""Large values: put before the record that names them, fetched when they are read (D-37)."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from holdfast.checkpoint import Blob, TypeRegistry, unspill
from holdfast.checkpoint.spill import is_long_to_read
from holdfast.errors import (
    BlobMissingError,
    CheckpointCorruptError,
    HoldfastError,
    StoreUnavailableError,
)
from holdfast.model.frames import Frame
from holdfast.model.position import Position
from holdfast.runs.encryption.detect import encrypted_store_within
from holdfast.runs.store_identity import (
    has_blob_place,
    keep_blob_place,
    known_identity,
    store_identity,
)
from holdfast.store.blob.objects import (
    BatchObjects,
    NamedObjects,
    Objects,
    OrphanObjects,
    OwnedObjects,
    TenantObjects,
)
from holdfast.store.protocols import Store
from holdfast.telemetry import crashpoint
from holdfast.types.ciphertext import is_encrypted
from holdfast.types.ids import DEFAULT_TENANT, RunId
from holdfast.types.own_threads import in_thread
from holdfast.types.value import BlobRef, FrozenDict, FrozenList

if TYPE_CHECKING:
    from holdfast.runs.encryption.cipher import FieldCipher

IN_ROW = 1 << 20


class StoreErrorObjects:
    """The objects of another library, with our errors instead of those that it raises."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def put(self, digest: bytes, data: bytes) -> None:
        with _store_errors("kept"):
            await self._objects.put(digest, data)

    async def replace(self, digest: bytes, data: bytes) -> None:
        with _store_errors("kept"):
            await self._objects.replace(digest, data)

    async def get(self, digest: bytes) -> bytes:
        with _store_errors("read"):
            return await self._objects.get(digest)

    async def delete(self, digest: bytes) -> None:
        with _store_errors("deleted"):
            await self._objects.delete(digest)

    async def delete_all(self, digests: Sequence[bytes]) -> None:
        with _store_errors("deleted"):
            if isinstance(self._objects, BatchObjects):
                await self._objects.delete_all(digests)
                return
            for digest in digests:
                await self._objects.delete(digest)

    def of(self, tenant: str) -> StoreErrorObjects:
        """Those of one tenant, where they are kept apart."""
        inner = self._objects
        return StoreErrorObjects(inner.of(tenant)) if isinstance(inner, TenantObjects) else self

    @property
    def listed(self) -> OrphanObjects | None:
        """The objects themselves, where they can be listed."""
        return self._objects if isinstance(self._objects, OrphanObjects) else None

    @property
    def owned(self) -> OwnedObjects | None:
        """The objects themselves, where their place belongs to one store."""
        return self._objects if isinstance(self._objects, OwnedObjects) else None

    @property
    def named(self) -> NamedObjects | None:
        """The objects themselves, where they may have names."""
        return self._objects if isinstance(self._objects, NamedObjects) else None

    @property
    def by_tenant(self) -> bool:
        return isinstance(self._objects, TenantObjects)


@contextmanager
def _store_errors(what: str) -> Generator[None]:
    try:
        yield
    except HoldfastError:
        raise
    except Exception as error:
        # Its text is not repeated: it may contain an address with a password.
        raise StoreUnavailableError(
            f"a large value cannot be {what} now: the blob store did not answer ({type(error).__name__}).",
            hint="Check that it can be reached; the run waits, and resumes when it can.",
        ) from error


def refs_in(value: Any) -> Iterator[BlobRef]:
    """The blobs that a value refers to, at any depth."""
    if isinstance(value, BlobRef):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():  # type: ignore[misc]
            yield from refs_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:  # type: ignore[misc]
            yield from refs_in(inner)


def _decrypted(cipher: FieldCipher, data: bytes, address: bytes, digest: bytes) -> bytes:
    try:
        return cipher.decrypt_blob(data, address)
    except CheckpointCorruptError as error:
        raise BlobMissingError(
            f"the blob {digest.hex()} that a checkpoint names is damaged: the bytes at {address.hex()} "
            "cannot be decrypted.",
            hint="Restore the blob folder or the database from a backup, then resume.",
            digest=digest.hex(),
        ) from error


class BlobStore:
    """`of` gives that of one tenant: in an encrypted store blobs are shared within a tenant only (D-38), and
    some blob stores keep the tenants apart."""

    def __init__(self, store: Store, objects: Objects | None, tenant: str | None = None) -> None:
        self.store = store
        self.objects = (
            objects
            if objects is None or isinstance(objects, StoreErrorObjects)
            else StoreErrorObjects(objects)
        )
        self.tenant = tenant
        self.encrypted = encrypted_store_within(store)

        self._by_tenant = self.encrypted is not None or (self.objects is not None and self.objects.by_tenant)

    def of(self, tenant: str) -> BlobStore:
        if not self._by_tenant:
            return self
        return BlobStore(self.store, None if self.objects is None else self.objects.of(tenant), tenant)

    async def of_run(self, run: RunId) -> BlobStore:
        if not self._by_tenant or self.tenant is not None:
            return self
        if self.encrypted is not None:
            return self.of(await self.encrypted.tenant_of(run))
        row = await self.store.get_run(run)
        return self.of(DEFAULT_TENANT if row is None else row.tenant)

    async def put_for(self, run: RunId, blobs: list[Blob]) -> None:
        await (await self.of_run(run)).put(blobs)

    async def keep_for(self, run: RunId, blob: Blob) -> None:
        """Put a blob that no record names: the run refers to it until its records are pruned."""
        here = await self.of_run(run)
        while True:
            await here.put([blob])
            if await self.store.keep_blob(run, here.address(blob.ref.digest)):
                return

    async def put(self, blobs: list[Blob]) -> None:
        """Blobs go first: an orphan blob is garbage, a missing blob is data loss."""
        for blob in blobs:
            await self._put(*self._closed(blob.ref.digest, blob.data))
        crashpoint("after_blob_put")

    async def _put(self, address: bytes, data: bytes) -> None:
        inside = self.objects is None or len(data) <= IN_ROW
        if self.objects is not None and not inside:
            await self.name_owner()
            await self.objects.put(address, data)
        # The row after the object: a row says that the bytes are there.
        await self.store.put_blob(address, len(data), data if inside else None)

    async def name_owner(self) -> None:
        """Before an object is written: the objects know whose they are. Raises BlobForbiddenError for a place
        of another store, StoreUnavailableError for one that is not marked although this store has marked one:
        were it marked too, values at the right place would count as lost."""
        owned = None if self.objects is None else self.objects.owned
        if owned is None or owned.owner is not None:
            return
        owner = await store_identity(self.store)
        known = await has_blob_place(self.store)
        if known and not await owned.is_taken(owner):
            raise StoreUnavailableError(
                "the blob store has no Holdfast marker, and this store has marked another one: it may be the "
                "wrong bucket, prefix or endpoint.",
                hint="Check the address in HOLDFAST_BLOBS. If the values were moved, copy the object "
                "v1/.holdfast too. Nothing was written; runs wait and then resume by themselves.",
            )
        if not known:
            await owned.take(owner)
            await keep_blob_place(self.store)
        owned.set_owner(owner)

    async def has_place(self) -> bool:
        """Whether the objects have a place that this store has taken; it writes nothing. Raises
        BlobForbiddenError if the place belongs to another store."""
        owned = None if self.objects is None else self.objects.owned
        if owned is None:
            return self.objects is not None
        return await owned.is_taken(owned.owner or await known_identity(self.store))

    def _closed(self, digest: bytes, data: bytes) -> tuple[bytes, bytes]:
        if self.encrypted is None:
            return digest, data
        cipher, tenant = self.encrypted.cipher, self.tenant or DEFAULT_TENANT
        address = cipher.address(digest, tenant)
        return address, cipher.encrypt_blob(data, address, tenant)

    async def fetch(self, ref: BlobRef, registry: TypeRegistry) -> Any:
        data = await self._get(ref.digest)
        if data is None:
            raise BlobMissingError(
                f"the blob {ref.digest.hex()} ({ref.size} bytes) that a checkpoint names is missing.",
                hint="Restore the blob folder or the database from a backup, then resume.",
                digest=ref.digest.hex(),
            )
        if is_long_to_read(data):
            # The leases of other runs depend on the event loop.
            return await in_thread(unspill, ref, data, registry)
        return unspill(ref, data, registry)

    async def data_at(self, digest: bytes) -> bytes:
        """A blob's stored bytes. Raises BlobMissingError if they are missing or damaged."""
        data = await self.raw(digest)
        if data is None or (not is_encrypted(data) and sha256(data).digest() != digest):
            raise BlobMissingError(
                f"the blob {digest.hex()} that a run names is {'missing' if data is None else 'damaged'}.",
                hint="Restore the blob folder or the database from a backup.",
                digest=digest.hex(),
            )
        return data

    def address(self, digest: bytes) -> bytes:
        """Where a new blob of this tenant is stored."""
        return self._closed(digest, b"")[0]

    def places(self, digest: bytes) -> list[bytes]:
        """The addresses at which a blob of this tenant may be stored."""
        if self.encrypted is None:
            return [digest]
        return self.encrypted.cipher.places(digest, self.tenant or DEFAULT_TENANT)

    async def content(self, digest: bytes) -> bytes | None:
        """A blob's own bytes, decrypted; None if it does not exist."""
        return await self._get(digest)

    async def _get(self, digest: bytes) -> bytes | None:
        if self.encrypted is None:
            return await self.raw(digest)
        cipher = self.encrypted.cipher
        # A caller that knows the digest has read the record that names it, so it belongs to the tenant.
        tenants = (self.tenant,) if self.tenant is not None else self.encrypted.known_tenants()
        # A blob may be at an address from before its tenant had keys of its own, or from before there were
        # any.
        for address in dict.fromkeys(place for t in tenants for place in cipher.places(digest, t)):
            data = await self.raw(address)
            if data is not None:
                return _decrypted(cipher, data, address, digest)
        return None

    async def replace(self, address: bytes, data: bytes) -> None:
        """Replace the bytes at an address, after encrypting them with another key."""
        row = await self.store.blob(address)
        if row is not None and row[1] is None and self.objects is not None:
            await self.objects.replace(address, data)
        else:
            await self.store.replace_blob(address, data)

    async def raw(self, address: bytes) -> bytes | None:
        """The stored bytes."""
        row = await self.store.blob(address)
        # What fits into a row is never stored elsewhere, so it is missing.
        if row is not None and row[1] is None and self.objects is not None and row[0] > IN_ROW:
            return await self.objects.get(address)
        return None if row is None else row[1]

    async def materialise(self, pos: Position, registry: TypeRegistry) -> None:
        """Fetch the blobs that the present state refers to, not every blob that its history named."""
        if self._by_tenant and self.tenant is None:
            await (await self.of_run(RunId(pos.run))).materialise(pos, registry)
            return
        await self.fill_state(pos, registry)
        for execution in pos.execs.values():
            for sub in execution.subs.values():
                sub.value = await self.whole(sub.value, registry)
            for index, result in execution.results.items():
                execution.results[index] = await self.whole(result, registry)
            if execution.items is not None:
                execution.items = [await self.whole(item, registry) for item in execution.items]

    async def fill_state(self, pos: Position, registry: TypeRegistry) -> None:
        for scope in pos.scopes.values():
            for frame in scope.tree.frames.values():
                for partition, inside in frame.over.items():
                    refs = scope.tree.refs if frame.parent < 0 else {}
                    filled = await self._filled(partition, inside, refs, registry)
                    if filled:
                        # The input is frozen, so it is built again; only values change, the keys stay.
                        frozen = isinstance(inside, FrozenDict)
                        both = {**inside, **filled}
                        frame.over[partition] = FrozenDict(both) if frozen else both
                await self._fill_steps(frame, registry)

    async def fill_body(self, body: Any, registry: TypeRegistry) -> Any:
        """A record's body with large values put back into their place."""
        for name in ("input", "scratch", "artifacts", "base", "value", "output", "position"):
            if getattr(body, name, None) is not None:
                setattr(body, name, await self.whole(getattr(body, name), registry))
        ops = getattr(body, "ops", None)
        if ops and any(isinstance(op[3], BlobRef) for op in ops):
            body.ops = [(p, k, o, await self.whole(v, registry)) for p, k, o, v in ops]
        return body

    async def _fill_steps(self, frame: Frame, registry: TypeRegistry) -> None:
        """What a branch wrote is applied again at its join, so it must be loaded."""
        for delta in frame.steps:
            for i, (partition, key, op, operand) in enumerate(delta.ops):
                if isinstance(operand, BlobRef):
                    delta.ops[i] = (partition, key, op, await self.fetch(operand, registry))

    async def whole(self, value: Any, registry: TypeRegistry) -> Any:
        """A value with large values put back into their place."""
        if isinstance(value, BlobRef):
            return await self.fetch(value, registry)
        if next(refs_in(value), None) is None:
            return value
        if isinstance(value, Mapping):
            return FrozenDict({k: await self.whole(v, registry) for k, v in value.items()})  # type: ignore[misc]
        parts = [await self.whole(part, registry) for part in value]
        return tuple(parts) if isinstance(value, tuple) else FrozenList(parts)

    async def _filled(
        self,
        partition: str,
        inside: dict[str, Any],
        refs: dict[tuple[str, str], BlobRef],
        registry: TypeRegistry,
    ) -> dict[str, Any]:
        """The values that were stored elsewhere, by key."""
        filled: dict[str, Any] = {}
        for key, value in inside.items():
            if isinstance(value, BlobRef):
                filled[key] = await self.fetch(value, registry)
                refs[(partition, key)] = value
        return filled
