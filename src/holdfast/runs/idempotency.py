"""Idempotency keys: a request that comes twice is answered with the run that it made, and another request
under the same key is refused. The store itself keeps two runs from having one key (`Runs.create`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import KeyReusedError
from holdfast.runs.input_check import checked_input
from holdfast.types.ids import RunId, derived_id, run_prefix

if TYPE_CHECKING:
    from holdfast.model.program import Program
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow


async def require_same(service: RunAccess, row: RunRow, program: Program, given: Any, key: str) -> None:
    """Raises KeyReusedError where the run that the key stands for was started with another input. One whose
    beginning is pruned cannot be asked any more, and counts as the same."""
    if row.horizon > 0:
        return
    from holdfast.runs.history import checkpoints

    first = await checkpoints.make_checkpoint(service, *await checkpoints.resolve(service, row.id, 0))
    start, _ = await checked_input(program, given, row.tenant)
    if comparable(first.input) != comparable(start):
        raise KeyReusedError(
            f"the idempotency key {key!r} was already used for run {row.id}, which has another input.",
            hint="Give each request a key of its own, and the same key only to the same request.",
            run=row.id,
        )


def require_same_thread(row: RunRow, thread: str | None, key: str) -> None:
    """Raises KeyReusedError where the run that the key stands for is one of another thread: the caller would
    take it for a run of theirs."""
    if thread is not None and row.thread != thread:
        raise KeyReusedError(
            f"the idempotency key {key!r} was already used for run {row.id}, which is in another thread.",
            hint="Give each request a key of its own, and the same key only to the same request.",
            run=row.id,
        )


def comparable(value: Any) -> Any:
    """As plain data, with secrets as they are: masked, two of them would be the same input."""
    return msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=_dumped)


def _dumped(value: Any) -> Any:
    dump: Any = getattr(value, "model_dump", None)
    return dump() if callable(dump) else str(value)


def branch_id(source: RunRow, key: str) -> RunId:
    """The id of a fork or rewind that is asked for under this key."""
    return RunId(derived_id("branch", source.tenant, key))


async def branch_of_key(service: RunAccess, source: RunRow, key: str) -> RunRow | None:
    """The branch that this key made before. Raises KeyReusedError where it is one of another run."""
    known = await service.store.get_run(branch_id(source, key))
    if known is not None and run_prefix(known.forked_from or "") != run_prefix(source.id):
        raise KeyReusedError(f"the key {key!r} was already used for a branch of another run.", run=known.id)
    return known
