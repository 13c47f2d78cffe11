"""Pipelines that between them use everything, each with its trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.attractor.export import export_directory
from holdfast.frontends.dot.diagnostics import DiagnosticSeverity
from holdfast.frontends.dot.handler_kinds import BUILT_IN
from holdfast.frontends.dot.lower import lower
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.render import render
from holdfast.frontends.dot.transforms import prepare
from tests.attractor.cases import Case, cases, live, part_of, traces
from tests.attractor.features import FEATURES, used_by
from tests.attractor.read import meaning
from tests.attractor.test_rundir import same

CASES = cases()
by_name = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.mark.anyio
@pytest.mark.covers("ATTRACTOR-PROOF-13", "ATTRACTOR-DIR-05")
@by_name
async def test_a_pipeline_of_the_corpus_runs_as_its_trace_says(
    hf: Holdfast, case: Case, tmp_path: Path
) -> None:
    result, backend = await live(hf, case, tmp_path)
    found = await traces(hf, result.run_id)
    assert found.pop("", "") == " ".join(case.trace.split())
    assert found == case.branches
    assert result.status == case.status
    assert case.reason in result.outcome.failure_reason
    assert bool(case.reason) == bool(result.outcome.failure_reason), result.outcome.failure_reason
    assert part_of(result.context, case.context) == case.context
    assert [name for name in case.files if not (tmp_path / "logs" / name).is_file()] == []
    assert backend.unsaid() == {}
    await export_directory(await hf.service(), result.run_id, tmp_path / "again")
    assert same(tmp_path / "logs", tmp_path / "again")


@pytest.mark.covers("ATTRACTOR-PROOF-13")
@by_name
def test_a_pipeline_of_the_corpus_is_warned_about_as_it_says(case: Case) -> None:
    prepared = prepare(case.source, path=str(case.path), known_types=BUILT_IN | {"count"})
    found = {each.rule for each in prepared.diagnostics if each.severity is DiagnosticSeverity.warning}
    assert found == set(case.warnings)
    assert not [each for each in prepared.diagnostics if each.severity is DiagnosticSeverity.error]


@pytest.mark.covers("ATTRACTOR-PROOF-13", "ATTRACTOR-PROOF-14")
@by_name
def test_a_pipeline_of_the_corpus_survives_being_written_anew(case: Case) -> None:
    once = case.pipeline
    again = parse(render(once), strict=False).pipeline
    assert meaning(again) == meaning(once)
    assert lower(again).nodes == lower(once).nodes


@pytest.mark.covers("ATTRACTOR-PROOF-13")
def test_the_corpus_uses_every_feature() -> None:
    assert len(CASES) >= 40
    used = set().union(*map(used_by, CASES))
    assert sorted(FEATURES - used) == []
    assert sorted(used - FEATURES) == [], "a case shows what no list names"
