"""A pipeline that is stored runs on any worker: its graph brings everything that is needed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Holdfast, Worker
from holdfast.app.flow import advance, make_result
from holdfast.attractor.program import PipelineSetup, program_for, program_of
from holdfast.cli.commands.worker import WorkerOptions, run_worker
from holdfast.cli.main import Exit
from holdfast.errors import FlowNotFoundError
from holdfast.frontends.dot.parse import parse
from holdfast.model.fingerprint import dialect_of, encode_graph, fingerprint_of

pytestmark = pytest.mark.anyio

GATED = """digraph gated {
    start [shape=Mdiamond]; end [shape=Msquare]; fan [shape=component]; join [shape=tripleoctagon];
    start -> fan; fan -> a -> join; fan -> ok -> join; ok [shape=hexagon, label="Ship it?"];
    join -> end
}"""


@pytest.fixture
async def instances(tmp_path: Path, anyio_backend: str) -> AsyncIterator[tuple[Holdfast, Holdfast]]:
    """Two processes' worth: the second has never seen a pipeline."""
    address = f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address) as one, Holdfast(address) as other:
        yield one, other


async def answered(hf: Holdfast, logs: Path) -> str:
    """A run that waited at its gate until somebody answered, with nobody at work on it since."""
    program = program_for(parse(GATED).pipeline, PipelineSetup(simulate=True))
    hf.register(program)
    service = await hf.service()
    started = await service.start(
        program, {"internal.logs_root": str(logs), "internal.backend": "simulation"}
    )
    assert isinstance(started, tuple)
    status, pos = await service.runtime.drive(*started)
    result = await make_result(service, program, started[0].run.id, status, pos)
    (hold,) = result.holds
    assert hold.options
    await service.answer(hold.id, hold.options[0].id)
    return result.run_id


async def test_another_worker_goes_on_behind_the_gate_with_no_code_but_the_stored_graph(
    instances: tuple[Holdfast, Holdfast], tmp_path: Path
) -> None:
    one, other = instances
    run = await answered(one, tmp_path / "logs")
    service = await other.service()
    await Worker(on=other).run_until_idle()
    assert (await service.get(run)).status == "completed"
    assert not other.programs


async def test_a_run_is_resumed_by_a_instance_that_never_saw_its_pipeline(
    instances: tuple[Holdfast, Holdfast], tmp_path: Path
) -> None:
    one, other = instances
    run = await answered(one, tmp_path / "logs")
    service = await other.service()
    row = await service.get(run)
    program = await service.runtime.find_program(row.version, row.flow)
    assert (await advance(service, program, row.id)).status == "completed"


async def test_a_worker_that_speaks_no_dialect_leaves_pipelines_alone(
    instances: tuple[Holdfast, Holdfast], tmp_path: Path
) -> None:
    one, other = instances
    run = await answered(one, tmp_path / "logs")
    other.dialects = {}
    service = await other.service()
    await Worker(on=other).run_until_idle()
    row = await service.get(run)
    assert (row.status, row.worker) == ("pending_input", None)
    with pytest.raises(FlowNotFoundError):
        await service.runtime.find_program(row.version, row.flow)


def test_a_stored_graph_names_its_dialect_and_makes_the_same_program_again() -> None:
    program = program_for(parse(GATED).pipeline, PipelineSetup(simulate=True))
    assert dialect_of(program.version) == "attractor"
    assert fingerprint_of(encode_graph(program.graph.spec)) == program.version
    again = program_of(program.graph.spec)
    assert (again.version, again.code_digest) == (program.version, program.code_digest)


async def test_holdfast_worker_without_flows_runs_pipelines(
    instances: tuple[Holdfast, Holdfast], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, _ = instances
    run = await answered(one, tmp_path / "logs")
    address = f"sqlite:{tmp_path / 'h.db'}"
    done = await run_worker([], None, 2, until_idle=True, store=address, json=False, terms=WorkerOptions())
    assert (done, (await (await one.service()).get(run)).status) == (Exit.ok, "completed")
    assert "serves every pipeline" in capsys.readouterr().err
