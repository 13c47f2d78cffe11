"""`doctor`: the engine that drives runs, if one is given, and runs of engines that is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

from holdfast.cli.doctor.finding import FAIL, OK, WARN, Finding, few
from holdfast.errors import EngineError
from holdfast.runs.engine_report import is_of_engine
from holdfast.runs.service import RunService
from holdfast.store.rows import RunFilter

_EXAMINED: Final = 1000


async def engine_findings(service: RunService) -> AsyncIterator[Finding]:
    """Nothing where no engine is used."""
    engine = service.runtime.engine
    foreign = await _of_other_engines(service, "" if engine is None else engine.name)
    if foreign is not None:
        yield foreign
    if engine is None:
        return
    try:
        async for found in engine.findings():
            if found.about:
                yield Finding(found.check, WARN, found.wrong, found.todo, few(found.about))
            else:
                yield Finding(found.check, OK, found.fine)
    except EngineError as error:
        yield Finding("engine", FAIL, error.message, error.hint or "")


async def _of_other_engines(service: RunService, name: str) -> Finding | None:
    rows = await service.store.list_runs(RunFilter(leased=True), after=None, limit=_EXAMINED)
    counts = Counter(row.worker for row in rows if is_of_engine(row.worker) and row.worker != name)
    if not counts:
        return None
    return Finding(
        "other engines",
        WARN,
        f"{counts.total()} live runs belong to an engine that was not examined",
        "give its address, written as where the runs were started: --engine ADDRESS, or HOLDFAST_ENGINE",
        few([f"{count} of {worker}" for worker, count in counts.most_common()]),
    )
