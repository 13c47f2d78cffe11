"""Attractor pipelines on a cluster: each stage is an activity, and the process that follows a run writes its
directory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("temporalio")

from holdfast import Holdfast, Worker
from holdfast.attractor.export import export_directory
from holdfast.attractor.program import PipelineDialect
from holdfast.attractor.runner import PipelineResult, Runner
from tests.attractor.cases import Case, cases, live, part_of, traces
from tests.attractor.run import dot
from tests.attractor.test_rundir import BESIDES, same
from tests.deadlines import HANG
from tests.flows.conftest import address_of
from tests.temporal.runs import engine_of, text_of

pytestmark = pytest.mark.anyio

CASES = {case.name: case for case in cases()}
FEW = (
    "linear", "diamond_yes_no", "fan_out", "human_gate", "tool_output_routes", "goal_gate", "manager",
    "retries", "begins_anew", "visits_bounded",
)  # fmt: skip
GATED = dot(
    'plan [prompt="Plan $goal"]; gate [shape=hexagon, label="Ship?"]; fix [label=Fix];',
    'start -> plan -> gate; gate -> done [label="[A] Approve"]; gate -> fix [label="[F] Fix"]; fix -> done',
)


@asynccontextmanager
async def worker_for(runner: Runner) -> AsyncIterator[None]:
    """It has the backend and the handlers of the runner, and of pipelines only what is stored."""
    engine = text_of(await engine_of(runner.hf))
    async with Holdfast(str(runner.hf._given), engine=engine) as hf:
        hf.dialects = {**hf.dialects, "attractor": PipelineDialect(runner.pipeline_setup)}
        async with Worker(on=hf):
            yield


async def ends_as_it_says(hf: Holdfast, case: Case, folder: Path) -> PipelineResult:
    result, backend = await live(hf, case, folder, worker_for)
    found = await traces(hf, result.run_id)
    assert found.pop("", "") == " ".join(case.trace.split()), case.name
    assert found == case.branches, case.name
    assert result.status == case.status, case.name
    assert case.reason in result.outcome.failure_reason, case.name
    assert part_of(result.context, case.context) == case.context, case.name
    assert [name for name in case.files if not (folder / "logs" / name).is_file()] == [], case.name
    assert backend.unsaid() == {}, case.name
    await export_directory(await hf.service(), result.run_id, folder / "again")
    assert same(folder / "logs", folder / "again"), case.name
    return result


@pytest.mark.covers("TD-39")
@pytest.mark.parametrize("name", FEW)
async def test_pipeline_runs_on_a_cluster_and_leaves_the_directory_of_built_in_workers(
    name: str, sqlite: str, tmp_path: Path, engine: str
) -> None:
    async with asyncio.timeout(HANG):
        async with Holdfast("memory:") as hf:
            await live(hf, CASES[name], tmp_path / "alone")
        async with Holdfast(sqlite, engine=engine) as hf:
            found = await ends_as_it_says(hf, CASES[name], tmp_path / "cluster")
            client = await (await engine_of(hf)).client()
            await client.get_workflow_handle(found.run_id).describe()
    here, there = (tmp_path / each / "logs" for each in ("alone", "cluster"))
    found, expected = files_of(there), files_of(here)
    if CASES[name].branches:
        # Which of two branches is first is decided by time.
        found, expected = words_of(found), words_of(expected)
    assert found == expected


@pytest.mark.soak
@pytest.mark.covers("TD-39")
@pytest.mark.parametrize("name", sorted({*CASES} - {*FEW}))
async def test_pipelines_of_the_corpus_run_on_a_cluster(name: str, tmp_path: Path, engine: str) -> None:
    address = await address_of("postgres", tmp_path)
    async with Holdfast(address, engine=engine) as hf, asyncio.timeout(HANG):
        await ends_as_it_says(hf, CASES[name], tmp_path)


def words_of(files: dict[str, str]) -> dict[str, list[str]]:
    return {name: sorted(re.split(r"[\s,\[\]{}]+", text)) for name, text in files.items()}


def files_of(root: Path) -> dict[str, str]:
    """Without ids, times, numbers of records and how often it was claimed."""
    found: dict[str, str] = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if path.is_file() and not BESIDES.search(f"/{name}") and name != "owner.json":
            text = path.read_text().replace(str(root.parent), "FOLDER")
            text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
            text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "TIME", text)
            found[name] = re.sub(r'"(seq|stack\.manager\.cycle)": ?\d+', "", text)
    return found
