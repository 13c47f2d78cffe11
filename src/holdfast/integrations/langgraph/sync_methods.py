"""The sync methods of a saver: they call the async ones in the thread of its loop."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from typing_extensions import override

from holdfast.integrations.langgraph import private_names
from holdfast.integrations.langgraph.portal import LoopThread
from holdfast.integrations.langgraph.private_names import Invocation


class SyncMethods(BaseCheckpointSaver[str]):
    """A saver whose async methods are given."""

    def __init__(self, serde: SerializerProtocol | None) -> None:
        super().__init__(serde=serde)
        self._loop = LoopThread()

    @abstractmethod
    async def load(self, config: RunnableConfig, invocation: Invocation | None) -> CheckpointTuple | None:
        """`aget_tuple` of an invocation that the caller has looked for in its own thread."""

    @override
    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._loop.run(self.load(config, private_names.invocation_of_caller()))

    @override
    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        found = self.alist(config, filter=filter, before=before, limit=limit)
        while True:
            try:
                yield self._loop.run(cast("Any", anext(found)))
            except StopAsyncIteration:
                return

    @override
    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self._loop.run(self.aput(config, checkpoint, metadata, new_versions))

    @override
    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        self._loop.run(self.aput_writes(config, writes, task_id, task_path))

    @override
    def delete_thread(self, thread_id: str) -> None:
        self._loop.run(self.adelete_thread(thread_id))

    @override
    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._loop.run(self.adelete_for_runs(run_ids))

    @override
    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._loop.run(self.acopy_thread(source_thread_id, target_thread_id))

    @override
    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._loop.run(self.aprune(thread_ids, strategy=strategy))

    @override
    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self._loop.run(self.aget_delta_channel_history(config=config, channels=channels))
