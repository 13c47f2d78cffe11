"""The saver: LangGraph's checkpoints in a Holdfast store, sync and async."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT
from langgraph.types import Command
from msgspec.structs import replace
from typing_extensions import override

from holdfast.app.holdfast import Holdfast
from holdfast.errors import ConflictError, InputError, SettingsError
from holdfast.integrations.langgraph import cleanup, private_names, thread_questions
from holdfast.integrations.langgraph.blocks import SaverOpening, ThreadBlock
from holdfast.integrations.langgraph.content import (
    Codec,
    ThreadPlace,
    config_for,
    place_of,
    require_thread,
)
from holdfast.integrations.langgraph.delta_history import delta_history
from holdfast.integrations.langgraph.interrupts import HoldOptions
from holdfast.integrations.langgraph.ownership import ThreadClaim, ThreadOwners, owned_error
from holdfast.integrations.langgraph.private_names import Invocation
from holdfast.integrations.langgraph.stored_checkpoints import CheckpointReader, filter_of
from holdfast.integrations.langgraph.sync_methods import SyncMethods
from holdfast.integrations.langgraph.task_writes import WaitingWrites
from holdfast.integrations.langgraph.value_blobs import spill_values
from holdfast.integrations.langgraph.values import StoredValue, ValueCache
from holdfast.runs.blobs import BlobStore
from holdfast.store.blob.objects import Objects
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.clock import micros
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.graph_thread import (
    GraphBatch,
    GraphCheckpointRow,
    GraphClaim,
    GraphCopy,
    GraphFilter,
)
from holdfast.types.hold import HoldRow
from holdfast.types.retention import Retention
from holdfast.types.text import require_text as require_tenant

T = TypeVar("T")

_PAGE = 50


class StoreSource(Protocol):
    """What a saver needs of a `Holdfast`, if it does not ask people itself."""

    async def open(self) -> Store: ...

    @property
    def objects(self) -> Objects | None:
        """Where large blobs are, once it is open."""
        ...


class HoldfastSaver(SyncMethods):
    """Keeps the threads of graphs in the store of a `Holdfast`.

    `serde`: LangGraph's serializer, if not its usual one. `strict`: only types that LangGraph lists as safe,
    or that `with_allowlist` adds, are made from stored bytes. `ownership`: `auto`, or `off` for several
    writers of one thread at a time. `on_conflict`: `refuse`, or `wait:30s` for so long. `lease`: how long a
    claim outlives its process. `retention`: what workers on this `Holdfast` delete of the threads
    (`Retention(keep=100, days=30)`); `apply_retention` does it at once.
    """

    def __init__(
        self,
        hf: Holdfast | StoreSource,
        *,
        tenant: str = "default",
        serde: SerializerProtocol | None = None,
        strict: bool = False,
        ownership: str = "auto",
        on_conflict: str = "refuse",
        lease: str = "30s",
        retention: Retention | None = None,
    ) -> None:
        if serde is None and strict:
            serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        super().__init__(serde)
        _require_no_pickle(self.serde)
        if ownership not in ("auto", "off"):
            raise SettingsError(f"ownership is {ownership!r}.", hint="It is `auto` or `off`.")
        if isinstance(hf, str):
            raise SettingsError("HoldfastSaver is given an address.", hint="Use HoldfastSaver.open(address).")
        if not require_tenant(tenant, "tenant"):
            raise InputError("tenant is empty.", hint="Leave it out, or give it a value.")
        if not isinstance(cast("object", retention), Retention | None):
            raise SettingsError(
                f"retention is {retention!r}.", hint="It is Retention(keep=100, days=30), of holdfast."
            )
        self.holdfast = hf
        self.tenant = tenant
        self._fenced = ownership == "auto"
        self._cache = ValueCache()
        self._waiting = WaitingWrites()
        self._blobs: BlobStore | None = None
        self._deltas = not isinstance(self.serde, EncryptedSerializer)
        if not self._deltas:
            log.info("the serializer encrypts: values of threads are stored whole, not as differences")
        self._retention = None if retention is None else cleanup.ThreadRetention(self, retention)
        if self._retention is not None and isinstance(hf, Holdfast):
            hf.cleanups.append(self._retention.apply)
        self.owners = ThreadOwners(
            hf.open,
            self._loop,
            tenant=tenant,
            lease=micros(_length("lease", lease)),
            patience=_patience(on_conflict),
        )

    @classmethod
    def open(cls, address: str | None = None, *, keys: Any = None, **settings: Any) -> SaverOpening:
        """`with` or `async with`: a saver on the store at this address, closed at the end. Settings are those
        of the class."""
        return SaverOpening(lambda: Holdfast(address, keys=keys), lambda hf: cls(hf, **settings))

    async def apply_retention(self) -> None:
        """Without `retention` nothing is deleted."""
        if self._retention is not None:
            await self._retention.apply()

    def own(self, thread_id: str) -> ThreadBlock:
        """`with` or `async with`: the thread is claimed for the block; invocations inside join it."""
        return ThreadBlock(self, require_thread(thread_id))

    async def aclose(self) -> None:
        """Gives up claims, and ends the thread of sync methods. The store stays open."""
        await self.owners.close()
        await asyncio.to_thread(self._loop.close)

    def run_sync(self, work: Coroutine[Any, Any, T]) -> T:
        """From any thread but that of a loop that the work waits for."""
        return self._loop.run(work)

    def stop(self) -> None:
        """Ends the thread of sync methods."""
        self._loop.close()

    @property
    def codec(self) -> Codec:
        return Codec(self.serde, deltas=self._deltas)

    async def store(self) -> Store:
        return await self.holdfast.open()

    async def blobs(self) -> BlobStore:
        """Of the saver's tenant."""
        if self._blobs is None:
            store = await self.holdfast.open()
            self._blobs = BlobStore(store, self.holdfast.objects).of(self.tenant)
        return self._blobs

    # ------------------------------------------------------------------ interrupts as holds
    async def ask(
        self, graph: Any, config: RunnableConfig, *, hold: HoldOptions | None = None
    ) -> Sequence[HoldRow]:
        """Opens a hold for each interrupt that the thread waits at, once; returns those that are open.

        `hold` gives assignee, timeout and so on for an interrupt. Raises VersionMismatchError if the graph
        has no node any more for one of them."""
        return await thread_questions.ask(self, graph, config, hold)

    async def answers(self, config: RunnableConfig) -> Command[Any] | None:
        """What to invoke the graph with when all holds of `ask` are decided; None before. Raises RunError if
        one expired or was withdrawn."""
        return await thread_questions.answers(self, config)

    # ------------------------------------------------------------------ reading
    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self.load(config, private_names.invocation_of_caller())

    @override
    async def load(self, config: RunnableConfig, invocation: Invocation | None) -> CheckpointTuple | None:
        place = place_of(config)
        claim, new = await self._claim_of_loop(config, place, invocation)
        store, key = await self.store(), (self.tenant, place.thread, place.ns)
        found = None
        while found is None:
            given = (self.tenant, place.thread, place.ns, place.checkpoint)
            row = None if new else await store.graph_checkpoint(*given)
            if row is None:
                # Perhaps another process has deleted the thread, and with it the values that are remembered.
                self._cache.put(key, {})
                return None
            found = await (await self.reader()).read(row)
        self._cache.put(key, found.intact, found.row.id)
        return self.codec.tuple(*found, {} if claim is None else {private_names.CLAIM: claim})

    async def _claim_of_loop(
        self, config: RunnableConfig, place: ThreadPlace, invocation: Invocation | None
    ) -> tuple[ThreadClaim | None, bool]:
        """The load of a loop claims the thread, before any node runs; a read does not. True: the thread was
        made by that."""
        given = config.get("configurable") or {}
        if not self._fenced or private_names.RUNTIME not in given:
            return None, False
        claim, new = given.get(private_names.CLAIM), False
        if not isinstance(claim, ThreadClaim) or claim.thread != place.thread:
            # A node that invokes a graph on another thread, with its own configuration, is no part of what
            # runs on that thread.
            nested = bool(given.get(private_names.TASK)) and not isinstance(claim, ThreadClaim)
            claim = await self.owners.claim(place.thread, nested=nested, invocation=invocation)
            # Not one that was joined.
            new = invocation is not None and claim.invocation is invocation and claim.claim.new_thread
            # The loop's own copy: a first invocation has no checkpoint that could carry it.
            given[private_names.CLAIM] = claim
        return claim, new

    async def reader(self, channels: Sequence[str] | None = None) -> CheckpointReader:
        """Of all values, or those of these channels."""
        return CheckpointReader(await self.blobs(), self.tenant, self.codec, channels)

    async def stored_values(self, row: GraphCheckpointRow) -> dict[str, StoredValue]:
        """Of one checkpoint, without those that are damaged."""
        found = await (await self.reader()).read(row)
        return {} if found is None else found.intact

    async def tuple_of(self, row: GraphCheckpointRow) -> CheckpointTuple | None:
        """None if it was deleted after its row was read."""
        found = await (await self.reader()).read(row)
        return None if found is None else self.codec.tuple(*found, {})

    @override
    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        where = filter_of(self.tenant, config, filter, before)
        left, after = limit, None
        while left is None or left > 0:
            step = _PAGE if left is None else min(left, _PAGE)
            page, after = await self._page(where, after, step)
            for each in page:
                yield each
            if after is None:
                return
            left = None if left is None else left - len(page)

    async def _page(
        self, where: GraphFilter, after: tuple[str, int] | None, limit: int
    ) -> tuple[list[CheckpointTuple], tuple[str, int] | None]:
        """The checkpoints, and where the next page begins."""
        store, codec = await self.store(), self.codec
        rows = await store.graph_checkpoints(where, after=after, limit=limit)
        found = await (await self.reader()).read_all(rows)
        tuples = [codec.tuple(*each, {}) for each in found]
        return tuples, (rows[-1].id, rows[-1].number) if len(rows) == limit else None

    @override
    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await delta_history(self, place_of(config), channels) if channels else {}

    # ------------------------------------------------------------------ writing
    @override
    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        place, store = place_of(config), await self.store()
        key = (self.tenant, place.thread, place.ns)
        before = await self._before(store, place, checkpoint, new_versions)
        given, codec = (config, checkpoint, metadata, new_versions, before), self.codec
        row, values, stored = codec.checkpoint(*given)
        new = self._cache.is_new(key, row.id)
        kept = await spill_values(await self.blobs(), values)
        batch = self._batch(config, place.thread, checkpoints=(row,), values=kept)
        taken, done = self._waiting.take(batch), False
        try:
            if taken:
                batch = replace(batch, writes=tuple([w for each in taken for w in each.batch.writes]))
            while not await self._put(store, batch):
                # The thread was deleted or pruned since it was read, and with it what the new values build
                # on; or a blob was deleted since it was put.
                row, values, stored = codec.checkpoint(*given, whole=True)
                kept = await spill_values(await self.blobs(), values)
                batch = replace(batch, checkpoints=(row,), values=kept)
            done = True
        finally:
            self._waiting.settle(batch, taken, stored=done)
        self._cache.put(key, stored if new else {}, row.id)
        return config_for(place.thread, place.ns, row.id)

    async def _before(
        self, store: Store, place: ThreadPlace, checkpoint: Checkpoint, new_versions: ChannelVersions
    ) -> dict[str, StoredValue]:
        """What the parent refers to: remembered, or read again where something is missing."""
        known = self._cache.get((self.tenant, place.thread, place.ns))
        kept = {c: v for c, v in checkpoint["channel_versions"].items() if c not in new_versions}
        missing = [c for c, v in kept.items() if c not in known or known[c].ref.version != v]
        if place.checkpoint is None or not any(c in checkpoint["channel_values"] for c in missing):
            return known
        rows = await store.graph_checkpoints(
            GraphFilter(
                tenant=self.tenant, thread=place.thread, ns=place.ns, id=place.checkpoint, unlisted=True
            )
        )
        return known | (await self.stored_values(rows[0]) if rows else {})

    @override
    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        place = place_of(config)
        if place.checkpoint is None:
            raise InputError("the configuration has no checkpoint_id to write to.", hint="Pass one.")
        rows = self.codec.writes(place, writes, task_id, task_path)
        batch = self._batch(config, place.thread, writes=tuple(rows))
        if not await self._waiting.stored(batch):
            await self._put(await self.store(), batch)
        claim = _claim_in(config)
        if any(channel in (INTERRUPT, ERROR) for channel, _ in writes) and not (claim and claim.end_is_seen):
            self.owners.expect_end()

    def _batch(self, config: RunnableConfig, thread: str, **rows: Any) -> GraphBatch:
        """Under the claim of the invocation, or that of `own`."""
        given, claim = _claim_in(config), None
        if given is not None:
            given.used, claim = True, given.claim
        elif self._fenced:
            claim = self.claim_of(thread)
        return GraphBatch(
            tenant=self.tenant, thread=thread, claim=claim if self._fenced else None, fenced=self._fenced,
            **rows,
        )  # fmt: skip

    async def _put(self, store: Store, batch: GraphBatch) -> bool:
        """False: a value that it relies on was deleted meanwhile."""
        refused = await self.owners.write(batch.thread, lambda: store.put_graph_rows(batch))
        if refused is not None:
            self._cache.drop(self.tenant, batch.thread)
            if not refused.missing:
                raise owned_error(batch.thread, refused)
        return refused is None

    def claim_of(self, thread: str) -> GraphClaim | None:
        """That of `own`, for calls that carry none."""
        owned = self.owners.owned.get(thread)
        return None if owned is None else owned.claim

    # ------------------------------------------------------------------ deleting and copying
    @override
    async def adelete_thread(self, thread_id: str) -> None:
        await cleanup.delete_thread(self, require_thread(str(thread_id)))

    @override
    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await cleanup.delete_for_runs(self, self.codec, run_ids)

    @override
    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        if strategy not in ("keep_latest", "delete"):
            raise InputError(
                f"there is no strategy {strategy!r} to prune by.", hint="Use `keep_latest` or `delete`."
            )
        for thread in thread_ids:
            if strategy == "delete":
                await self.adelete_thread(thread)
            else:
                await cleanup.keep_latest(self, self.codec, require_thread(str(thread)))

    @override
    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        source, target = require_thread(str(source_thread_id)), require_thread(str(target_thread_id))
        copy = GraphCopy(
            tenant=self.tenant, source=source, target=target, claim=self.claim_of(source),
            fenced=self._fenced,
        )  # fmt: skip
        store = await self.store()
        refused = await self.owners.write(source, lambda: store.copy_graph_thread(copy))
        if refused is not None and refused.exists:
            raise ConflictError(
                f"thread {target!r} exists already.", hint="Delete it first, or copy to another id."
            )
        if refused is not None:
            raise owned_error(source, refused)

    def forget(self, thread: str) -> None:
        self._cache.drop(self.tenant, thread)

    @property
    def fenced(self) -> bool:
        return self._fenced

    @override
    def get_next_version(self, current: str | None, channel: None) -> str:
        """A number and a random part: two branches of a thread never give a channel the same version."""
        number = 0 if current is None else int(str(current).split(".", 1)[0])
        return f"{number + 1:032}.{random.random():016}"


def _claim_in(config: RunnableConfig) -> ThreadClaim | None:
    given = (config.get("configurable") or {}).get(private_names.CLAIM)
    return given if isinstance(given, ThreadClaim) else None


def _patience(on_conflict: str) -> float:
    if on_conflict == "refuse":
        return 0.0
    kind, _, time = on_conflict.partition(":")
    if kind != "wait" or not time:
        raise SettingsError(
            f"on_conflict is {on_conflict!r}.", hint="It is `refuse`, or `wait:` and a duration: `wait:30s`."
        )
    return _length("on_conflict", time).total_seconds()


def _length(setting: str, given: str) -> timedelta:
    try:
        return parse_duration(given)
    except DurationError as error:
        raise SettingsError(f"{setting}: {error.message}.", hint=f"{error.hint}.") from error


def _require_no_pickle(serde: SerializerProtocol) -> None:
    inner: Any = serde.serde if isinstance(serde, EncryptedSerializer) else serde
    if getattr(inner, "pickle_fallback", False):
        raise SettingsError(
            "the serializer falls back to pickle, which is never stored or read.",
            hint="Use JsonPlusSerializer() without pickle_fallback.",
        )
