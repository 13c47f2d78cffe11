"""What is done to runs from outside, once they have lived: branching off and pruning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast import Holdfast
from holdfast.app.flow import result_of
from holdfast.runs.service import RunService
from holdfast.types.ids import RunId
from tests.crash import flows, life

Pause = Callable[[float], Any]


async def fork(hf: Holdfast, run: str, branch: str, say: life.Say, pause: Pause) -> None:
    """A new run from after the first effect of a finished one."""
    await life.live(hf, "bare", run, say, pause)
    service = await hf.service()
    say("branch", await service.store.get_run(RunId(branch)) is not None)
    if await service.store.get_run(RunId(branch)) is None:
        await service.fork(run, await _after(service, run, "bare0"), run_id=branch)
        say("branched", branch)
    await life.live(hf, "bare", branch, say, pause)


async def rewind(hf: Holdfast, run: str, branch: str, say: life.Say, pause: Pause) -> None:
    """A run that waits for a person is begun again from its start: the old one ends in the same moment."""
    service = await hf.service()
    await life.begin(hf, service, "sub", run, say)
    say("branch", await service.store.get_run(RunId(branch)) is not None)
    while await service.store.get_run(RunId(branch)) is None:
        if (await service.get(run)).status != "pending_input":
            await life.advance(hf, service, "sub", run, say, pause, answering=False)
            continue
        await service.rewind(run, 0, run_id=branch)
        say("branched", branch)
    source = await service.get(run)
    say("source", str(source.status), source.superseded_by)
    await life.live(hf, "sub", branch, say, pause)


async def prune(hf: Holdfast, run: str, _branch: str, say: life.Say, pause: Pause) -> None:
    service = await hf.service()
    found = await service.store.get_run(RunId(run))
    say("horizon", -1 if found is None else found.horizon)
    if found is None or found.horizon == 0:
        await life.live(hf, "loop", run, say, pause)
        await service.prune(run, keep=3)
    hf.register(flows.FLOWS["loop"].program())
    result = await result_of(service, flows.FLOWS["loop"].program(), RunId(run))
    say("pruned", (await service.get(run)).horizon, life.plain(result.state))


async def _after(service: RunService, run: str, node: str) -> int:
    return (await service.store.checkpoint_records(RunId(run), node=node))[0].seq


DEEDS = {"fork": fork, "rewind": rewind, "prune": prune}
