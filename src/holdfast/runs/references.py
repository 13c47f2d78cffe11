"""How a person names a moment: a checkpoint's id, a run, `RUN@12` (a record), `RUN@pay` (a node's latest);
and a range of records: `5:9`, `5:`, `:9`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import CheckpointNotFoundError, InputError
from holdfast.model.shown_names import shown_name
from holdfast.runs.history import checkpoints
from holdfast.runs.history.versions import reader_at
from holdfast.types.ids import RunId, is_id

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow

_FORMS = "A checkpoint is named by its id, RUN (the current state), RUN@12 (after record 12) or RUN@node."


async def find(service: RunAccess, ref: str) -> tuple[RunRow, int]:
    """The run and record that the reference names. Raises RunNotFoundError, CheckpointNotFoundError,
    InputError."""
    run, at, place = ref.partition("@")
    if at:
        return await _within(service, await service.get(run), place)
    if is_id(ref) and await service.store.get_run(RunId(ref)) is None:
        row, seq = await checkpoints.resolve_run(service, ref, None)
        return row, (await checkpoints.resolve(service, ref))[1] if seq is None else seq
    row = await service.get(ref)
    return row, row.head


async def _within(service: RunAccess, row: RunRow, place: str) -> tuple[RunRow, int]:
    if not place:
        raise InputError(f"what follows the @ in {row.id}@ is missing.", hint=_FORMS)
    if place.isascii() and place.isdigit():
        return await checkpoints.resolve(service, row.id, int(place))
    scope, slash, node = place.rpartition("/")
    found = await service.store.checkpoint_records(row.id, node=node, limit=0 if slash else 1)
    found = [record for record in found if not slash or record.scope == scope + slash]
    nodes: list[str] = []
    if not found:
        listed = [record for record in await service.store.checkpoint_records(row.id) if record.node]
        graph = (await reader_at(service, row, row.head)).graph
        shown = {record.seq: shown_name(record.scope + record.node, graph) for record in listed}
        found = [record for record in listed if shown[record.seq] == place]
        nodes = sorted(set(shown.values()))
    if not found:
        raise CheckpointNotFoundError(
            f"run {row.id} has no checkpoint at node {place!r}.",
            hint=f"It has checkpoints at: {', '.join(nodes[:20])}." if nodes else _FORMS,
            run=row.id,
            node=place,
        )
    return row, found[0].seq


def parse_range(text: str) -> tuple[int, int | None]:
    """(first, last) of `5:9`, `5:` or `:9`, both counted in; last None: to the end. Raises InputError."""
    first, colon, last = (part.strip() for part in text.partition(":"))
    if not colon:
        raise InputError(
            f"{text!r} is only half of a range.", hint=f"Write {text or '5'}:{text or '5'}, 5:9, 5: or :9."
        )
    if not first and not last:
        raise InputError(f"{text!r} names neither end of a range.", hint="Write 5:9, 5: or :9.")
    for part in (first, last):
        if part and not (part.isascii() and part.isdigit()):
            raise InputError(
                f"{part!r} in the range {text!r} is not the number of a record.", hint="Write 5:9, 5: or :9."
            )
    begin, end = int(first or 0), int(last) if last else None
    if end is not None and end < begin:
        raise InputError(f"the range {text!r} ends before it begins.", hint=f"Write {end}:{begin}.")
    return begin, end
