"""`doctor`: the runs. Are they readable, is their code available, are they being advanced?"""

from __future__ import annotations

from collections.abc import AsyncIterator

from holdfast.cli.commands.flows import labels
from holdfast.cli.doctor.finding import FAIL, OK, WARN, Finding, few
from holdfast.cli.doctor.fleet import runs_without_means, served_versions, unserved_runs
from holdfast.cli.options.flow_sources import Sources
from holdfast.cli.output.results import version_text
from holdfast.errors import HoldfastError, KeyMissingError
from holdfast.runs.driver.load import decode_body, load
from holdfast.runs.history.versions import readers_of
from holdfast.runs.migrate.check import LIVE
from holdfast.runs.service import RunService
from holdfast.store.lost_history import is_lost
from holdfast.store.rows import RunFilter, RunRow
from holdfast.types.status import RunStatus

_BATCH = 500
_LATE = 60_000_000
_PAGE = 1000


async def run_findings(service: RunService, store: str | None, *, deep: bool) -> AsyncIterator[Finding]:
    live = [row async for row in _rows(service, LIVE)]
    yield await _journals(service, live, deep=deep)
    versions = await served_versions(service)
    yield await _code(service, live, store, versions or set())
    yield unserved_runs(live, versions)
    yield await runs_without_means(service, live)
    yield await _answers(service, live)
    yield await _timers(service)
    yield await _lost(service)


async def _rows(service: RunService, status: tuple[RunStatus, ...]) -> AsyncIterator[RunRow]:
    after: tuple[int, int] | None = None
    while rows := await service.store.list_runs(RunFilter(status=status), after=after, limit=_BATCH):
        after = (rows[-1].created_at, rows[-1].key)
        for row in rows:
            if not row.read_only or not status:
                yield row


# ---------------------------------------------------------------------- journals


async def _journals(service: RunService, live: list[RunRow], *, deep: bool) -> Finding:
    """Active runs: the records that a worker reads to resume. `deep`: every record of every run."""
    rows = [row async for row in _rows(service, ())] if deep else live
    damaged = [
        f"{row.id[:8]}: {damage}" for row in rows if (damage := await _damage(service, row, deep=deep))
    ]
    kind = "runs" if deep else "live runs"
    if damaged:
        return Finding(
            "journals",
            FAIL,
            f"{len(damaged)} of {len(rows)} {kind} cannot be read",
            "`holdfast show RUN` shows what is left; fork from before the damage, or restore a backup",
            few(damaged),
        )
    what = "every record matches its digest" if deep else "the records needed to resume are intact"
    return Finding("journals", OK, f"{len(rows)} {kind}: {what}")


async def _damage(service: RunService, row: RunRow, *, deep: bool) -> str:
    try:
        readers = await readers_of(service, row)
        if deep:
            await _read_all(service, row)
        reader = readers.at(row.head)
        await load(service.store, reader.codec, reader.graph, row.id, blobs=service.runtime.blobs)
    except KeyMissingError:
        return ""  # reported by the check of the keys: nothing is damaged
    except HoldfastError as error:
        return error.message
    return ""


async def _read_all(service: RunService, row: RunRow) -> None:
    readers = await readers_of(service, row)
    expected = row.horizon
    for first in range(row.horizon, row.head + 1, _PAGE):
        records = await service.store.read(row.id, first=first, last=min(row.head, first + _PAGE - 1))
        for record in records:
            # A digest covers one record only: gaps are found by the numbers.
            if record.seq != expected:
                raise HoldfastError(f"record {expected} is missing")
            decode_body(readers.at(record.seq).codec, row.id, record)
            expected += 1
    if expected != row.head + 1:
        raise HoldfastError(f"the journal ends at record {expected - 1}, but its row says {row.head}")


# ---------------------------------------------------------------------- code


async def _code(service: RunService, live: list[RunRow], store: str | None, versions: set[str]) -> Finding:
    sources, names = Sources(store), await labels(service)
    counts: dict[tuple[str, str], int] = {}
    for row in live:
        if row.version not in versions and not sources.of(row.version).here:
            counts[row.flow, row.version] = counts.get((row.flow, row.version), 0) + 1
    if not counts:
        return Finding(
            "flow code", OK, f"the code of all {len(live)} active runs is here or on a live worker"
        )
    about = [
        f"{count} of {flow} {version_text(names.get(version, ''), version)}: {sources.of(version).why}"
        for (flow, version), count in counts.items()
    ]
    return Finding(
        "flow code",
        WARN,
        f"{sum(counts.values())} active runs are on a version without code here: they cannot be resumed here",
        "load that code (`holdfast worker FILE`), or see `holdfast flows check NEW`",
        few(about),
    )


# ---------------------------------------------------------------------- progress


async def _answers(service: RunService, live: list[RunRow]) -> Finding:
    """Decided holds whose run has not consumed the answer (RM-5)."""
    now = service.store.now()
    parked = [row for row in live if row.ready_at is not None and row.ready_at < now - _LATE]
    stuck: list[str] = []
    for row in parked:
        _, mail = await service.store.pending(row.id)
        if any(each.kind == "answer" for each in mail):
            stuck.append(row.id[:8])
    if stuck:
        return Finding(
            "answers",
            WARN,
            f"{len(stuck)} runs have an answer, but no worker resumes them",
            "start a worker that serves their flow, or `holdfast resume RUN`",
            few(stuck),
        )
    return Finding("answers", OK, "no answer waits to be applied")


async def _lost(service: RunService) -> Finding:
    """Among the latest failed runs: after a failover there may be many."""
    failed = RunFilter(status=(RunStatus.failed,))
    newest = await service.store.list_runs(failed, after=None, limit=_BATCH)
    lost = [row.id[:8] for row in newest if is_lost(row.error)]
    if lost:
        return Finding(
            "history",
            WARN,
            f"{len(lost)} runs stopped because the store lost part of their history",
            "find out what the lost steps did outside; then `holdfast resume RUN --accept-loss`, or a fork",
            few(lost),
        )
    return Finding("history", OK, "no run stopped because the store lost part of its history")


async def _timers(service: RunService) -> Finding:
    due = await service.store.next_timer()
    late = service.store.now() - due if due is not None else 0
    if late > _LATE:
        return Finding(
            "timers",
            WARN,
            f"a timer has been due for {late // 1_000_000:,} s: no worker is alive",
            "start a worker",
        )
    return Finding("timers", OK, "no timer is overdue")
