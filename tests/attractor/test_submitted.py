"""Commands of submitted pipelines are refused where they would run, by a mark that goes with every run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
import pytest

from holdfast import Holdfast, Worker, tool
from holdfast.api.settings import ApiSettings
from holdfast.app.flow import advance, is_idle
from holdfast.app.result import Result
from holdfast.attractor import run_pipeline
from holdfast.attractor.machine_requirements import COMMANDS, FILES
from holdfast.attractor.prepare import input_of, prepare_pipeline
from holdfast.attractor.program import PipelineSetup, program_for
from holdfast.attractor.stored_source import pipeline_of
from holdfast.errors import RequirementsMissingError
from holdfast.frontends.dot.lower import lower
from holdfast.frontends.dot.parse import parse
from holdfast.model.fingerprint import decode_graph, encode_graph
from holdfast.runs.driver.settings import ALLOW_CODE, RunSettings
from holdfast.types.status import RunStatus
from tests.agents.conftest import provider
from tests.agents.provider import Answer, Provider
from tests.api.conftest import Server, serving
from tests.attractor.fake_agents import FakeAgents, agents, claude
from tests.attractor.models import backend
from tests.attractor.repositories import git
from tests.attractor.run import dot, line

__all__ = ["agents", "provider"]
pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-09")]

TOOL: Final = line('t [shape=parallelogram, tool_command="touch ran"];', "t")


@asynccontextmanager
async def hall(folder: Path, monkeypatch: pytest.MonkeyPatch, *, allowed: bool) -> AsyncIterator[Server]:
    """A server that accepts commands, whose worker allows them or not."""
    monkeypatch.chdir(folder)
    settings = ApiSettings(allow_code=True, roots=(folder,))
    async with (
        Holdfast("memory:", settings=RunSettings(allow_code=allowed)) as hf,
        serving(hf, settings) as found,
        Worker(on=hf),
    ):
        yield found


async def _idle(server: Server, run: str) -> None:
    """Until it has ended, or waits for a worker that allows code."""
    service = await server.hf.service()
    with anyio.fail_after(60):
        while not await is_idle(service, run) and not await missing(server, run):
            await service.store.wait_change(0.05)


async def missing(server: Server, run: str) -> list[str]:
    return (await server.json("GET", f"/v1/pipelines/{run}"))["missing"]


async def submitted(server: Server, source: str, path: str = "/v1/pipelines", **more: Any) -> str:
    body = {"dot": source, "simulate": True, **more}
    run = (await server.json("POST", path, 201, json=body))["id"]
    await _idle(server, run)
    return run


async def again(server: Server, path: str, body: dict[str, Any]) -> str:
    found = await server.client.post(path, json=body)
    assert found.status_code in (200, 201), found.text
    await _idle(server, found.json()["id"])
    return found.json()["id"]


async def by_import(server: Server, run: str) -> str:
    parcel = (await server.client.get(f"/v1/runs/{run}/export")).content
    await (await server.hf.open()).delete_run(run)
    answer = await server.client.post("/v1/runs/import?as_new_run=true", content=parcel)
    assert answer.status_code == 201, answer.text
    await _idle(server, answer.json()["id"])
    return answer.json()["id"]


WAYS: Final[dict[str, Callable[[Server, str], Awaitable[str]]]] = {
    "fork": lambda server, run: again(server, f"/v1/runs/{run}/fork", {"seq": 1}),
    "fork with input": lambda server, run: again(
        server, f"/v1/runs/{run}/fork", {"seq": 0, "input_data": {"a": 1}}
    ),
    "rewind": lambda server, run: again(server, f"/v1/runs/{run}/rewind", {"seq": 1}),
    "resume": lambda server, run: again(server, f"/v1/runs/{run}/resume", {"input_data": {"a": 1}}),
    "start by name": lambda server, run: again(server, "/v1/runs", {"flow": "g"}),
    "start in a thread": lambda server, run: again(server, "/v1/threads/t/runs", {"flow": "g"}),
    "import": by_import,
}
"""The ways from a submitted pipeline to another run of it."""


@pytest.mark.parametrize("allowed", [False, True])
async def test_worker_decides_whether_commands_of_a_submitted_pipeline_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    async with hall(tmp_path, monkeypatch, allowed=allowed) as server:
        run = await submitted(server, TOOL)
        assert (tmp_path / "ran").exists() is allowed
        assert (ALLOW_CODE in await missing(server, run)) != allowed


async def test_run_is_left_to_a_worker_that_allows_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not claimed, not failed, no attempt counted: it waits, and the worker that may run it does."""
    async with hall(tmp_path, monkeypatch, allowed=False) as server:
        run = await submitted(server, TOOL)
        async with (
            Holdfast(await server.hf.open(), settings=RunSettings(allow_code=True)) as other,
            Worker(on=other),
        ):
            with anyio.fail_after(60):
                while not await is_idle(await other.service(), run):
                    await (await other.open()).wait_change(0.05)
            assert (await (await other.service()).get(run)).status is RunStatus.completed
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("of", ["stage", "operator"])
async def test_agent_of_a_submitted_pipeline_runs_only_if_the_worker_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agents: FakeAgents, allowed: bool, of: str
) -> None:
    """The agent that the operator gave as the backend may read."""
    agents.plays("claude", claude())
    if of == "operator":
        monkeypatch.setenv("HOLDFAST_BACKEND", "agent:claude")
    source = line("a [prompt=x, agent=claude];" if of == "stage" else "a [prompt=x];", "a")
    async with hall(tmp_path, monkeypatch, allowed=allowed) as server:
        run = await submitted(server, source, simulate=False)
        lacks = await missing(server, run)
    assert (ALLOW_CODE in lacks) == (of == "stage" and not allowed)
    modes = [call["argv"][call["argv"].index("--permission-mode") + 1] for call in agents.calls("claude")]
    refused = [] if of == "stage" else ["plan"]
    assert modes == (["acceptEdits"] if allowed else refused)


async def test_mark_goes_with_every_run_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, way in WAYS.items():
        async with hall(tmp_path, monkeypatch, allowed=False) as server:
            run = await submitted(server, TOOL)
            other = await way(server, run)
            row = await (await server.hf.service()).get(other)
            flow = await (await server.hf.open()).flow(row.flow, row.version)
            assert flow is not None
            assert pipeline_of(decode_graph(flow.graph)).submitted, name
            assert not (tmp_path / "ran").exists(), name


async def test_pipeline_in_a_graph_gets_the_mark_and_a_history_without_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = json.loads(encode_graph(lower(parse(TOOL).pipeline)))
    async with hall(tmp_path, monkeypatch, allowed=False) as server:
        stored = await server.json("POST", "/v1/flows", 201, json={"graph": graph})
        flow = await (await server.hf.open()).flow(stored["name"], stored["version"])
        assert flow is not None
        assert pipeline_of(decode_graph(flow.graph)).submitted
        own = await run_pipeline(TOOL, hf=server.hf)
        parcel = (await server.client.get(f"/v1/runs/{own.run_id}/export")).content
        refused = await server.client.post("/v1/runs/import", content=parcel)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


async def test_child_of_a_submitted_pipeline_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "child.dot").write_text(TOOL)
    parent = line('m [shape=house, stack.child_dotfile="child.dot", stack.child_resolve=late];', "m")
    for allowed in (False, True):
        async with hall(tmp_path, monkeypatch, allowed=allowed) as server:
            await submitted(server, parent)
            assert (tmp_path / "ran").exists() is allowed
    # The child has the mark too: on a worker that does not allow it, its commands are refused again.
    async with hall(tmp_path, monkeypatch, allowed=True) as server:
        await submitted(server, parent)
        rows = (await server.json("GET", "/v1/runs"))["items"]
        service = await server.hf.service()
        states = [(await service.latest(each["id"])).state for each in rows]
        assert any(each.get("internal.submitted") is True for each in states)


@tool(effect="read")
async def look() -> str:
    """Looks."""
    return "nothing"


async def _advanced(hf: Holdfast, text: str, logs: Path, asks: Any) -> Result:
    setup = PipelineSetup(backend=asks)
    pipeline = msgspec.structs.replace(prepare_pipeline(text, setup).pipeline, submitted=True)
    program = program_for(pipeline, setup)
    hf.register(program)
    service = await hf.service()
    row, _ = await service.create(program, input_of(pipeline, logs=logs))
    return await advance(service, program, row.id)


async def test_prompts_of_a_submitted_pipeline_get_no_tools_of_the_machine(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    provider.says(Answer("done"))
    ended = await _advanced(hf, line("a;", "a"), tmp_path, backend(provider, kits=["shell", "files"]))
    assert ended.completed
    assert "tools" not in provider.seen[0].json


RUNS: Final = {
    "agent": line("a [agent=claude];", "a"),
    "tool_command": line('a [shape=parallelogram, tool_command="touch ran"];', "a"),
    "tools": line("a [tools=shell];", "a"),
    "tool_hooks.pre": line('a [tool_hooks.pre="touch ran"];', "a"),
    "tool_hooks.post": line('a [tool_hooks.post="touch ran"];', "a"),
    "stack.child_resolve": line(
        'a [shape=house, stack.child_dotfile="child.dot", stack.child_resolve=late];', "a"
    ),
    "workspace": dot(
        "fan [shape=component, workspace=worktree]; join [shape=tripleoctagon]; a; b;",
        "start -> fan; fan -> a -> join; fan -> b -> join; join -> done",
    ),
}
"""What a document can bring to the machine of a worker, by its attribute."""


@pytest.mark.parametrize("attribute", sorted({*COMMANDS, *FILES}))
async def test_everything_that_a_document_brings_to_a_worker_is_refused_there(
    hf: Holdfast, tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch, attribute: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "child.dot").write_text(TOOL)
    git(tmp_path, "init", "--quiet")
    provider.says(Answer(calls=[("c1", "look", {})]), Answer("done"))
    with pytest.raises(RequirementsMissingError, match="this worker does not run commands") as refused:
        await _advanced(
            hf, RUNS[attribute], tmp_path / "logs", backend(provider, tools=[look], kits=["shell"])
        )
    assert refused.value.facts["missing"] == [ALLOW_CODE]
    assert not (tmp_path / "ran").exists()
    assert git(tmp_path, "for-each-ref") == ""
