"""`holdfast fork`: a new run from a checkpoint of another run, or of each of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import Code, Json, Store, Text, app, run_async
from holdfast.cli.fork_options import (
    BranchOptions,
    Input,
    Patch,
    Resume,
    Sets,
    checkpoint_parts,
    create_branch,
    load_code,
    read_patch,
    read_set,
)
from holdfast.cli.many_runs import (
    ManyOptions,
    ManyTenant,
    Plan,
    RunChange,
    Where,
    Yes,
    change_many,
    require_one_way,
)
from holdfast.cli.options.json_input import read_json
from holdfast.cli.output.console import print_note
from holdfast.errors import CheckpointNotFoundError, ConflictError, InputError, RunNotFoundError

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow


@app.command(
    epilog="Examples:  holdfast fork 3fa9c1@assess --set amount=80   ·   holdfast fork 3fa9c1@4 --patch @p"
    "   ·   holdfast fork --where 'status:failed flow:refund' --at assess --set rate=2 --plan"
)
def fork(
    ref: Annotated[
        Text,
        typer.Argument(
            help="Checkpoint id, RUN, RUN@12 (a record) or RUN@node (its latest checkpoint); or --where",
            metavar="[REF]",
        ),
    ] = None,
    patch: Patch = None,
    sets: Sets = None,
    input_: Input = None,
    resume: Resume = False,
    flow: Code = None,
    where: Where = None,
    at: Annotated[
        Text,
        typer.Option(
            "--at", help="With --where: from the latest checkpoint of this node, or from this record "
            "(default: the last)", metavar="NODE",
        ),
    ] = None,
    key: Annotated[
        Text,
        typer.Option(
            help="With --where: a run is forked once for each key, so that an interrupted command can be "
            "repeated (default: a new key, printed)",
            metavar="KEY",
        ),
    ] = None,
    plan: Plan = False,
    yes: Yes = False,
    tenant: ManyTenant = None,
    store: Store = None,
    json: Json = False,
) -> int:  # fmt: skip
    """Create a new run from a checkpoint of another run.

    With --where: from a checkpoint of each run that a search finds; the new runs are queued for the workers
    that serve their flows. The source runs are not changed.
    """
    require_one_way(ref, where, plan=plan, yes=yes, tenant=tenant, name="REF")
    if ref is not None:
        if at is not None or key is not None:
            raise InputError("--at and --key need --where.", hint="For a single run write RUN@node.")
        wanted = BranchOptions(ref, patch, tuple(sets or ()), input_, resume, flow, rewinds=False)
        return run_async(create_branch(wanted, store=store, json=json))
    if resume:
        raise InputError("--resume cannot be combined with --where.", hint="Workers advance the new runs.")
    forks = _Forks(read_patch(read_json(patch, "--patch")), [read_set(text) for text in sets or ()],
                   read_json(input_, "--input"), at, flow, store, key or _new_key(plan=plan))  # fmt: skip
    options = ManyOptions(where or "", tenant, plan, yes, store, json)
    return run_async(change_many(RunChange("fork", forks.describe, forks.apply), options))


def _new_key(*, plan: bool) -> str:
    from secrets import token_hex

    key = token_hex(4)
    if not plan:
        print_note(f"If this is interrupted, repeat it with --key {key}: no run is forked twice.")
    return key


class _Forks:
    """The same fork of many runs."""

    def __init__(
        self,
        patch: dict[str, Any] | None,
        sets: list[tuple[str, Any]],
        given: Any,
        at: str | None,
        flow: str | None,
        store: str | None,
        key: str,
    ) -> None:
        self._patch = patch if given is None else {**(patch or {}), "input": given}
        self._sets, self._at, self._flow, self._store, self._key = sets, at, flow, store, key

    async def describe(self, service: RunService, row: RunRow) -> list[str]:
        from holdfast.runs.fork.fork import require_fork
        from holdfast.runs.preview.run_change import preview_change

        await self._require_not_made_here(service, row)
        seq, patch = await self._start(service, row)
        await require_fork(service, row, seq, patch=patch)
        return (await preview_change(service, row, "fork", at=seq, actor=None)).text

    async def apply(self, service: RunService, row: RunRow) -> str:
        from holdfast.runs.fork.fork import fork_once

        await self._require_not_made_here(service, row)
        seq, patch = await self._start(service, row)
        made, _ = await fork_once(service, row, seq, patch=patch, key=self._key_of(row))
        return made.id

    def _key_of(self, source: RunRow) -> str:
        return f"{self._key}:{source.id}"

    async def _require_not_made_here(self, service: RunService, row: RunRow) -> None:
        """The search of a repeated command may find the forks that it made before."""
        from holdfast.runs.idempotency import branch_id

        if row.forked_from is None:
            return
        try:
            source, _ = await service.find(row.forked_from)
        except (CheckpointNotFoundError, RunNotFoundError):
            return  # its source was deleted
        if row.id == branch_id(source, self._key_of(source)):
            raise ConflictError(f"it was made by this command, from run {source.id}.")

    async def _start(self, service: RunService, row: RunRow) -> tuple[int, dict[str, Any] | None]:
        """The record, and the patch for the state there."""
        from holdfast.runs.fork.patch import with_sets
        from holdfast.runs.history.versions import version_at

        source, seq = await service.find(row.id if self._at is None else f"{row.id}@{self._at}")
        version = await version_at(service, source, seq)
        if version not in service.runtime.programs:
            load_code(service, source.flow, version, self._flow, self._store)
        if not self._sets:
            return seq, self._patch
        return seq, with_sets(self._patch, self._sets, await checkpoint_parts(service, source, seq))
