"""A worker that lacks a function of a document leaves its runs to others."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.app.worker import Worker
from holdfast.documents.program import program_for, program_of
from holdfast.errors import VersionMismatchError
from holdfast.runs.worker.served_versions import ServedVersions
from tests.documents.rule_examples import GOOD, flow
from tests.documents.run import compiled, site_of

NEEDS = flow("{id: m, type: python, config: {function: known}}")
FUNCTIONS = {"known": lambda: 1}


@pytest.mark.covers("CV-34")
async def test_worker_without_a_function_claims_no_further_run_of_that_version_and_goes_on_with_others(
    anyio_backend: str,
) -> None:
    async with Holdfast("memory:") as hf:
        service = await hf.service()
        needs = program_for(compiled(NEEDS, FUNCTIONS), site_of(FUNCTIONS))
        plain = program_for(compiled(GOOD), site_of())
        waiting, _ = await service.create(needs, {})
        first, _ = await service.create(plain, {})
        # Only what is stored: this process has met neither program.
        service.runtime.programs.clear()
        worker = Worker(on=hf)
        await worker.run_until_idle()
        # It learns with the first run that it lacks something, and gives that back.
        assert (await service.get(waiting.id)).status == "resumable"
        assert (await service.get(first.id)).status == "completed"

        other, _ = await service.create(needs, {})
        row, _ = await service.create(plain, {})
        service.runtime.programs.clear()
        await worker.run_until_idle()
        assert (await service.get(row.id)).status == "completed"
        assert (await service.get(other.id)).status == "pending"
        await worker.close()


@pytest.mark.covers("CV-34")
async def test_versions_that_a_process_lacks_are_not_asked_for_again(anyio_backend: str) -> None:
    async with Holdfast("memory:") as hf:
        hf.dialects = {**hf.dialects, "canvas": lambda spec: program_of(spec, site_of({}))}
        service = await hf.service()
        needs = program_for(compiled(NEEDS, FUNCTIONS), site_of(FUNCTIONS))
        plain = program_for(compiled(GOOD), site_of())
        for program in (needs, plain):
            await service.create(program, {})
        service.runtime.programs.clear()
        served = ServedVersions(service.runtime)
        assert "canvas" in await served.names()

        with pytest.raises(VersionMismatchError, match="known"):
            await service.runtime.find_program(needs.version, "sample")
        names = await served.names()
        assert "canvas" not in names
        assert needs.version not in names
        assert plain.version in names
