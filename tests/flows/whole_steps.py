"""Compares each step of a run, read from its own records, with the same step in the run's whole story."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.checkpoint.visit import Visit
from holdfast.model.breakpoints import SUFFIX
from holdfast.runs.history.story_loader import load_story
from holdfast.runs.history.visit_loader import load_visit
from holdfast.runs.service import RunService
from holdfast.types.ids import RunId

# Not shown of a step: the answer to a question is the hold's, and who handled a failure is the owner's.
NOT_SHOWN = {"handed_to": "", "questions": []}


async def assert_steps_alike(service: RunService, run: str) -> int:
    """Returns the number of records that are about a step."""
    row, found = await service.get(RunId(run)), 0
    for past in (False, True):
        story = await load_story(service, row)
        for record in await service.store.read(row.id, payloads=False):
            if past:
                story = await load_story(service, row, record.seq)
            label = record.scope + record.node.removesuffix(SUFFIX)
            own = [each for each in story.visits if (each.run, each.label) == (row.id, label)]
            whole = next((each for each in reversed(own) if record.visit in (0, each.visit)), None)
            alone = await load_visit(service, row, record.seq, past=past)
            if not record.node or record.kind in (0, 7):
                assert alone is None
                continue
            assert _shown(alone and alone.visit) == _shown(whole), (record, past)
            found += 1
            if alone is not None and record.seq > row.horizon:
                before = (await service.checkpoint(row.id, record.seq - 1)).shown()
                assert alone.state == before.state
                assert (
                    alone.workers.items()
                    >= {
                        term: name for term, name in story.workers.items() if term == alone.visit.term
                    }.items()
                )
    return found


def _shown(visit: Visit | None) -> dict[str, Any]:
    return {} if visit is None else msgspec.structs.asdict(visit) | NOT_SHOWN
