"""Resumes from a run directory: its run if this store has it, else a new run.

Also lists the differences between two versions of a pipeline, for people.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.attractor.backends.select import KEY
from holdfast.attractor.continuation import require_intents
from holdfast.attractor.directory_owner import take_over
from holdfast.attractor.fidelity import resume_mode
from holdfast.attractor.prepare import PipelineSource, PreparedPipeline
from holdfast.attractor.program import PipelineSetup, program_for, program_of, types_of
from holdfast.attractor.resume_position import begin_from, is_finished, require_stages
from holdfast.attractor.saved_checkpoint import UNKNOWN, SavedCheckpoint, read_directory
from holdfast.attractor.stored_source import pipeline_of, pipeline_of_document
from holdfast.errors import InputError, VersionMismatchError
from holdfast.frontends.dot.document import Link, Pipeline
from holdfast.frontends.dot.handler_kinds import BUILT_IN
from holdfast.frontends.dot.lower import edge_ids, lower
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.render import render
from holdfast.runs.service import RunService
from holdfast.store.rows import RunRow
from holdfast.types.ids import RunId, is_id

MOST = 12


def differences(old: Pipeline, new: Pipeline) -> list[str]:
    """One line each; empty if nothing differs that matters for a run."""
    found = [*_attributes("the graph's", old.attrs, new.attrs)]
    found += [f"stage {name} was removed" for name in old.stages if name not in new.stages]
    found += [f"stage {name} is new" for name in new.stages if name not in old.stages]
    for name, stage in old.stages.items():
        if name in new.stages:
            found += _attributes(f"stage {name}:", stage.attrs, new.stages[name].attrs)
    return found + _links(edge_ids(old), edge_ids(new))


def shortened_lines(lines: list[str]) -> str:
    more = f", and {len(lines) - MOST} more" if len(lines) > MOST else ""
    return "; ".join(lines[:MOST]) + more


def _links(old: Mapping[str, Link], new: Mapping[str, Link]) -> list[str]:
    found = [f"edge {name} was removed" for name in old if name not in new]
    found += [f"edge {name} is new" for name in new if name not in old]
    for name, link in old.items():
        if name in new:
            found += _attributes(f"edge {name}:", link.attrs, new[name].attrs)
    return found


def _attributes(of: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    names = dict.fromkeys([*old, *new])
    return [f"{of} {name} differs" for name in names if old.get(name) != new.get(name)]


_ASSUMED = ("success", "fail")
_OF_NEW = frozenset({"run_id", "tenant", "lane", "priority", "started_by"})


class ResumeResult(msgspec.Struct, frozen=True):
    """`row` None: the run had ended, nothing to do. `ready` None: the stored graph is used."""

    saved: SavedCheckpoint
    row: RunRow | None
    ready: PreparedPipeline | None
    fresh: bool = False


class ResumeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to resume. `fidelity`: what replaces `full` at the first stage: summary:high (the specification),
    compact (the older texts), any mode, or `keep`."""

    source: PipelineSource | None = None
    force: bool = False
    fidelity: str = ""
    logs: Path | None = None
    assume: str = ""
    """The outcome of the current stage if the directory does not say it: success or fail."""
    options: dict[str, Any] = {}


async def resume_directory(
    service: RunService,
    folder: Path,
    prepare: Callable[[PipelineSource], PreparedPipeline],
    given: Callable[[PreparedPipeline, Path], dict[str, Any]],
    asked: ResumeOptions,
    setup: PipelineSetup,
) -> ResumeResult:
    """Raises InputError if it is not a run directory, VersionMismatchError if the pipeline differs from the
    run's and `force` is not set."""
    saved = read_directory(folder)
    row = await service.store.get_run(RunId(saved.run)) if is_id(saved.run) else None
    ready = None if asked.source is None else prepare(asked.source)
    if row is not None and (ready is None or ready.program.version == row.version):
        _refuse_options(asked.options, "this store has the run, which resumes as it was started")
        return ResumeResult(saved, row, ready)
    _refuse_options(set(asked.options) - _OF_NEW, "not allowed for a run that resumes from a directory")
    if ready is None:
        ready = _stored(saved, asked, setup) or prepare(_own_source(saved))
    _require_same(saved, ready, force=asked.force)
    graph = ready.program.graph
    require_stages(graph, saved, changed=asked.force)
    if is_finished(saved, graph):
        return ResumeResult(saved, None, ready)
    saved = _with_outcome(saved, asked.assume)
    require_intents(folder)
    start = given(ready, asked.logs or folder)
    if asked.force:
        # The backend of this machine.
        saved = msgspec.structs.replace(saved, context={k: v for k, v in saved.context.items() if k != KEY})
    fidelity = resume_mode(asked.fidelity, ready.pipeline.text("resume_fidelity"))
    made = await begin_from(service, ready.program, saved, start, fidelity=fidelity, **asked.options)
    take_over(folder, made.id, saved.run)
    return ResumeResult(saved, made, ready, fresh=True)


def _stored(saved: SavedCheckpoint, asked: ResumeOptions, setup: PipelineSetup) -> PreparedPipeline | None:
    """As the run was stored: with its child pipelines, and what it needs of a worker. Raises
    RequirementsMissingError."""
    document = saved.document
    if document is None:
        return None
    pipeline = pipeline_of_document(document)
    if asked.force:
        return PreparedPipeline(pipeline, program_for(pipeline, setup), ())
    known = BUILT_IN | types_of(pipeline.requires or ())
    return PreparedPipeline(pipeline, program_of(lower(pipeline, known_types=known), setup), ())


def _with_outcome(saved: SavedCheckpoint, assume: str) -> SavedCheckpoint:
    """Raises InputError if the outcome of the current stage is not known and is not assumed: its edges, and
    goal gates, would be passed by a guess."""
    if assume and assume not in _ASSUMED:
        raise InputError(f"the outcome {assume!r} cannot be assumed.", hint="Use success or fail.")
    if str(saved.outcome.status) != UNKNOWN or not saved.completed or saved.next_node:
        return saved
    if not assume:
        raise InputError(
            f"{saved.folder} does not say how stage {saved.current!r} ended.",
            hint="Look at its work, then resume with --assume success or --assume fail.",
        )
    outcome = msgspec.structs.replace(saved.outcome, status=assume)
    outcomes = {**saved.outcomes, saved.current: assume}
    return msgspec.structs.replace(saved, outcome=outcome, outcomes=outcomes)


def _refuse_options(names: Collection[str], why: str) -> None:
    """An option without effect is a mistake of the caller."""
    if names:
        shown = ", ".join(name.replace("_", "-") for name in sorted(names))
        raise InputError(f"{shown}: {why}.", hint="Remove them.")


def _own_source(saved: SavedCheckpoint) -> str:
    found = saved.source
    if found is None:
        raise InputError(
            f"{saved.folder} does not have its pipeline, and this store does not know its run.",
            hint="Give the pipeline's file: holdfast run FILE.dot --resume DIR.",
        )
    return found


def _require_same(saved: SavedCheckpoint, ready: PreparedPipeline, *, force: bool) -> None:
    """A directory of another runner cannot be compared; that its stages exist is checked in any case."""
    if force or not saved.version or saved.version == ready.program.version:
        return
    source = saved.source
    # The version also contains what the run needs of a worker, which another machine may have otherwise.
    if source is not None and render(parse(source).pipeline) == render(pipeline_of(ready.program.graph.spec)):
        return
    lines = [] if source is None else differences(parse(source).pipeline, ready.pipeline)
    what = f": {shortened_lines(lines)}" if lines else ""
    raise VersionMismatchError(
        f"the pipeline differs from the one of the run in {saved.folder}{what}.",
        hint="Resume with its pipeline.dot, or use --force to resume with this one.",
        version=saved.version,
    )
