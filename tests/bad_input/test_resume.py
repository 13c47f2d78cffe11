"""Going on with runs that are not there, are over, belong to somebody else, or stand on another graph."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import (
    CheckpointNotFoundError,
    FlowNotFoundError,
    InputError,
    RunEndedError,
    RunExistsError,
    RunNotFoundError,
    StateError,
    VersionMismatchError,
)
from holdfast.types.ids import RunId
from holdfast.types.record import Record
from holdfast.types.status import RunStatus
from tests.bad_input.messages import assert_refused
from tests.cli.conftest import Cli, given

pytestmark = pytest.mark.anyio

NOBODY = "00000000-0000-4000-8000-000000000000"
KEY = "3fa85f64-5717-4562-b3fc-2c963f66afa6"


def approval(name: str = "approval", prompt: str = "Go on?", ran: list[str] | None = None) -> Flow:
    flow = Flow(name, effect="pure")

    @flow.node
    async def begin(_s: Any) -> dict[str, Any]:
        if ran is not None:
            ran.append("begin")
        return {"begun": True}

    flow.hold("approve", prompt=prompt, options=["approve", "reject"])
    flow.edge("begin", "approve")
    return flow


async def records_of(hf: Holdfast, run: RunId) -> list[Record]:
    return await (await hf.service()).store.read(run, first=0)


@pytest.mark.covers("CORE-BAD-08")
@pytest.mark.parametrize("run", [NOBODY, "nonsense", "", "0000"])
async def test_resume_is_refused_when_the_run_is_unknown(hf: Holdfast, run: str) -> None:
    flow = approval()
    await flow.run({}, on=hf)
    with pytest.raises(RunNotFoundError) as caught:
        await flow.resume(run, on=hf)
    assert_refused(caught.value, repr(run), "holdfast runs")


@pytest.mark.covers("CORE-BAD-08")
async def test_all_that_names_a_run_refuses_an_unknown_one(hf: Holdfast) -> None:
    service = await hf.service()
    for ask in (service.get, service.cancel, service.request_resume, service.events, service.latest):
        with pytest.raises(RunNotFoundError):
            await ask(NOBODY)
    with pytest.raises(InputError):
        await service.get(5)  # type: ignore[arg-type]


@pytest.mark.covers("CORE-BAD-09")
async def test_finished_run_gives_its_result_and_stays_as_it_is_when_it_is_resumed(hf: Holdfast) -> None:
    """A completed run resumes to its end with no node run (G-35)."""
    ran: list[str] = []
    flow = approval(ran=ran)
    service = await hf.service()
    waiting = await flow.run({}, on=hf)
    await service.answer(waiting.holds[0].id, "approve")
    done = await flow.resume(waiting.run_id, on=hf)
    before = await records_of(hf, done.run_id)

    again = await flow.resume(done.run_id, on=hf)
    assert (again.status, again.state) == (RunStatus.completed, done.state)
    assert await records_of(hf, done.run_id) == before
    assert ran == ["begin"]
    with pytest.raises(RunEndedError) as caught:
        await service.cancel(done.run_id)
    assert_refused(caught.value, done.run_id, "completed")


@pytest.mark.covers("CORE-BAD-09")
async def test_cancelled_run_stays_cancelled_when_it_is_resumed(hf: Holdfast) -> None:
    flow = approval()
    waiting = await flow.run({}, on=hf)
    await (await hf.service()).cancel(waiting.run_id)
    assert (await flow.resume(waiting.run_id, on=hf)).status is RunStatus.cancelled
    before = await records_of(hf, waiting.run_id)
    assert (await flow.resume(waiting.run_id, on=hf)).status is RunStatus.cancelled
    assert await records_of(hf, waiting.run_id) == before


@pytest.mark.covers("CORE-BAD-10", "CORE-BAD-20")
async def test_resume_is_refused_when_the_run_is_of_another_flow(hf: Holdfast) -> None:
    mine, other = approval("mine"), approval("other")
    theirs = await other.run({}, on=hf)
    before = await records_of(hf, theirs.run_id)
    with pytest.raises(VersionMismatchError) as caught:
        await mine.resume(theirs.run_id, on=hf)
    assert_refused(caught.value, "flow 'other'", "not of 'mine'")
    assert await records_of(hf, theirs.run_id) == before
    assert (await (await hf.service()).get(theirs.run_id)).status is RunStatus.pending_input


@pytest.mark.covers("CORE-BAD-10")
async def test_resume_is_refused_when_the_run_is_of_another_tenant(hf: Holdfast) -> None:
    flow = approval()
    theirs = await flow.run({}, on=hf, tenant="globex")
    with pytest.raises(RunNotFoundError) as caught:
        await flow.resume(theirs.run_id, on=hf, tenant="acme")
    assert "globex" not in str(caught.value)
    service = await hf.service()
    for given_id in (theirs.run_id, theirs.run_id[:8]):
        with pytest.raises(RunNotFoundError):
            await service.get(given_id, tenant="acme")
        assert (await service.get(given_id, tenant="globex")).id == theirs.run_id
    assert (await flow.resume(theirs.run_id, on=hf, tenant="globex")).waiting


@pytest.mark.covers("CORE-BAD-10")
async def test_run_is_not_started_when_its_id_names_a_run_of_another_flow(hf: Holdfast) -> None:
    theirs = await approval("other").run({}, on=hf, run_id=KEY)
    before = await records_of(hf, theirs.run_id)
    with pytest.raises(RunExistsError) as caught:
        await approval("mine").run({}, on=hf, run_id=KEY)
    assert_refused(caught.value, "'other'", "another id")
    assert await records_of(hf, theirs.run_id) == before


@pytest.mark.covers("CORE-BAD-03")
async def test_run_keeps_its_place_when_its_flow_is_unknown_to_the_one_who_claims_it(
    hf: Holdfast,
) -> None:
    flow = approval()
    waiting = await flow.run({}, on=hf)
    hf.programs.clear()
    service = await hf.new_service()
    await service.answer(waiting.holds[0].id, "approve")
    claim = await service.runtime.claim(waiting.run_id)
    with pytest.raises(FlowNotFoundError) as caught:
        await service.runtime.drive(claim)
    assert_refused(caught.value, "'approval'", "Import the module")
    await service.runtime.close()
    assert (await (await hf.service()).get(waiting.run_id)).status is RunStatus.pending_input
    assert (await flow.resume(waiting.run_id, on=hf)).completed


@pytest.mark.covers("CORE-BAD-11", "CORE-BAD-20")
async def test_resume_is_refused_when_the_graph_has_changed(hf: Holdfast) -> None:
    old = approval()
    waiting = await old.run({}, on=hf)
    before = await records_of(hf, waiting.run_id)
    hf.programs.clear()
    async with Holdfast(await hf.open()) as other:
        changed = approval()
        changed.node(id="more")(lambda s: None)
        changed.edge("approve", "more")
        service = await other.service()
        point = (await service.checkpoints(waiting.run_id))[-1]
        for ask in (changed.resume, changed.fork, changed.rewind):
            with pytest.raises(VersionMismatchError) as caught:
                await ask(point.id, on=other)
            assert_refused(caught.value, "version", "Load the code of its version")
        with pytest.raises(VersionMismatchError):
            await changed.resume(waiting.run_id, on=other)
    after = [r for r in await records_of(hf, waiting.run_id) if r.seq <= before[-1].seq]
    assert [r.payload for r in after] == [r.payload for r in before]
    await (await hf.service()).answer(waiting.holds[0].id, "approve")
    assert (await old.resume(waiting.run_id, on=hf)).completed


@pytest.mark.covers("CORE-BAD-11")
async def test_checkpoint_is_refused_when_it_is_of_another_run_or_of_another_flow(hf: Holdfast) -> None:
    mine, other = approval("mine"), approval("other")
    first, second = await mine.run({}, on=hf), await mine.run({}, on=hf)
    theirs = await other.run({}, on=hf)
    service = await hf.service()
    point = (await service.checkpoints(second.run_id))[0].id
    with pytest.raises(CheckpointNotFoundError) as caught:
        await mine.resume(first.run_id, checkpoint=point, on=hf)
    assert_refused(caught.value, point, first.run_id)
    foreign = (await service.checkpoints(theirs.run_id))[0].id
    for ask in (mine.resume, mine.fork, mine.rewind):
        with pytest.raises(VersionMismatchError) as mismatch:
            await ask(foreign, on=hf)
        assert_refused(mismatch.value, "'other'", "'mine'")


@pytest.mark.covers("CORE-BAD-11")
async def test_fork_is_refused_when_the_checkpoint_or_the_patch_means_nothing(hf: Holdfast) -> None:
    flow = approval()
    waiting = await flow.run({}, on=hf)
    for seq in (-1, 99):
        with pytest.raises(CheckpointNotFoundError):
            await flow.fork(waiting.run_id, seq, on=hf)
    for patch, part in (({"scrath": {}}, "'scrath'"), ({"scratch": 5}, "mapping")):
        with pytest.raises(StateError) as caught:
            await flow.fork(waiting.run_id, 1, patch=patch, on=hf)
        assert_refused(caught.value, part)


@pytest.mark.covers("CORE-BAD-08", "CORE-BAD-09", "CORE-BAD-10")
def test_command_line_names_what_is_wrong_when_a_run_cannot_go_on(cli: Cli, refund: str) -> None:
    done = cli("run", refund, "--input", given(80), "--json").json["id"]
    for words, part in (
        (("resume", NOBODY), "no run"),
        (("show", "zzzz"), "no run"),
        (("cancel", NOBODY), "no run"),
        (("answer", NOBODY, "approve"), "neither a hold nor a run"),
        (("answer", done, "approve"), "no open hold"),
    ):
        said = cli(*words)
        assert (said.code, "Traceback" in said.err) == (2, False), said
        assert part in said.err
    assert cli("runs", "--json").items[0]["status"] == "completed"
