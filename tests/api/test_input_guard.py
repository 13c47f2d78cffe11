"""A request does not say how a pipeline is run: where its files go, and which gates nobody is asked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Flow
from holdfast.attractor import Runner
from tests.api.conftest import Server

pytestmark = pytest.mark.anyio

GATED = "digraph Gated { start; exit; gate [shape=hexagon, label=Ship]; start -> gate -> exit [label=Yes] }"


@pytest.mark.covers("ATTRACTOR-GATE-01", "SERVER-BAD-01")
@pytest.mark.parametrize("key", ["internal.auto_approve", "internal.logs_root", "internal.workdir"])
async def test_a_request_that_speaks_for_the_engine_is_refused(
    server: Server, tmp_path: Path, key: str
) -> None:
    waiting = await Runner(server.hf, logs_root=tmp_path / "D").run(GATED)
    given = {key: str(tmp_path / "elsewhere")}
    run = f"/v1/runs/{waiting.run_id}"
    asked = [
        ("POST", "/v1/runs", {"flow": "Gated", "input": given}),
        ("POST", f"{run}/resume", {"input_data": given}),
        ("POST", f"{run}/fork", {"input_data": given}),
        ("POST", f"{run}/rewind", {"patch": {"input": given}}),
        ("PUT", "/v1/schedules/nightly", {"flow": "Gated", "every": "1h", "input": given}),
        ("PUT", "/v1/schedules/nightly", {"flow": "Gated", "every": "1h", "stamp": key}),
        ("POST", "/v1/schedules/nightly/trigger", {"input": given}),
    ]
    for method, path, body in asked:
        refused = await server.json(method, path, 422, json=body)
        assert (refused["code"], key in refused["detail"]) == ("invalid_input", True), (path, refused)
    form = await server.client.post("/flows/Gated", data={"input": f'{{"{key}": true}}'})
    assert "are reserved" in form.text, form.text[:2000]
    assert [row["id"] for row in (await server.json("GET", "/v1/runs"))["items"]] == [waiting.run_id]


async def test_a_pipeline_of_another_tenant_takes_no_ones_place(server: Server, tmp_path: Path) -> None:
    ours = await Runner(server.hf, logs_root=tmp_path / "ours").run(GATED)
    theirs = GATED.replace("start -> gate -> exit", "start -> exit; start -> gate -> exit")
    other = await Runner(server.hf, logs_root=tmp_path / "theirs").run(theirs, tenant="them")
    service = await server.hf.service()
    mine, stranger = [(await service.get(run.run_id)).version for run in (ours, other)]
    assert mine != stranger
    for carried in (True, False):
        started = await server.json("POST", "/v1/runs", 201, json={"flow": "Gated"})
        assert started["version"] == mine
        shown = await server.json("GET", "/v1/flows/Gated")
        assert [each["version"] for each in shown["versions"]] == [mine]
        await server.json("GET", f"/v1/flows/Gated/versions/{stranger}", 404)
        await server.json("POST", "/v1/runs", 404, json={"flow": "Gated", "version": stranger})
        drawn = await server.client.get("/flows/Gated/drawing.svg")
        assert ("start leads to gate" in drawn.text, "start leads to exit" in drawn.text) == (True, False)
        if carried:
            for version in (mine, stranger):
                service.runtime.programs.pop(version)


async def test_a_pipeline_does_not_stand_for_a_flow_of_its_name(
    server: Server, greeting: Flow, tmp_path: Path
) -> None:
    await greeting.run({"name": "you"}, on=server.hf)
    await Runner(server.hf, logs_root=tmp_path).run("digraph greeting { start; exit; start -> exit }")
    started = await server.json("POST", "/v1/runs", 201, json={"flow": "greeting", "input": {"name": "me"}})
    assert started["version"].startswith("g1-")
