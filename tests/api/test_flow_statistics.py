"""Numbers and input schemas of flows over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast import Flow, Retry, Worker
from tests.api.conftest import Server
from tests.api.documents import REFUND, deploy
from tests.api.sign_in import bearer, token

pytestmark = pytest.mark.anyio


def _flow() -> Flow:
    flow = Flow("parcel", effect="pure")

    @flow.node(retry=Retry(2, delay="1ms"))
    async def weigh(s: dict[str, Any]) -> dict[str, Any]:
        if s["weight"] > 30:
            raise ValueError("too heavy")
        return {}

    @flow.node
    async def send(s: dict[str, Any]) -> dict[str, Any]:
        return {}

    flow.start(weigh)
    flow.chain(weigh, send)
    return flow


@pytest.mark.covers("WB-66")
async def test_statistics_say_where_the_latest_runs_failed_and_how_long_nodes_take(server: Server) -> None:
    async with Worker(_flow(), on=server.hf):
        runs = [
            await server.json(
                "POST", "/v1/runs", 201, json={"flow": "parcel", "input": {"weight": weight}, "wait": 60}
            )
            for weight in (2, 31, 31)
        ]
        found = await server.json("GET", "/v1/flows/parcel/stats")
        last = await server.json("GET", "/v1/flows/parcel/stats?runs=1")
        version = runs[0]["version"]
        same = await server.json("GET", f"/v1/flows/parcel/stats?version={version}")
        await server.json("GET", "/v1/flows/parcel/stats?version=unknown", 404)
    weigh, send = found["nodes"]
    assert (weigh["node"], weigh["visits"], weigh["failed"], weigh["retries"]) == ("weigh", 3, 2, 2)
    assert weigh["failed_runs"] == [runs[2]["id"], runs[1]["id"]]
    assert 0 <= weigh["p50_ms"] <= weigh["p95_ms"]
    assert (send["visits"], send["failed"]) == (1, 0)
    # The pause before the second attempt was a wait.
    assert (weigh["waiting"], weigh["waiting_runs"], send["waited_p50_ms"]) == (0, [], None)
    assert weigh["waited_p50_ms"] > 0
    assert weigh["waited_run"] in weigh["failed_runs"]
    (failure,) = found["failures"]
    assert (failure["node"], failure["runs"]) == ("weigh", [runs[2]["id"], runs[1]["id"]])
    assert "too heavy" in failure["error"]
    assert (found["runs"], last["runs"]) == (3, 1)
    assert same == found


@pytest.mark.covers("WB-66")
async def test_statistics_are_of_the_callers_own_runs(server: Server) -> None:
    eve = bearer(await token(server, "user:eve@other", "admin", tenant="other"))
    async with Worker(_flow(), on=server.hf):
        body = {"flow": "parcel", "input": {"weight": 2}, "wait": 60}
        await server.json("POST", "/v1/runs", 201, json=body)
        theirs = (await server.client.get("/v1/flows/parcel/stats", headers=eve)).json()
    assert (theirs["runs"], theirs["nodes"], theirs["failures"]) == (0, [], [])


@pytest.mark.covers("WB-66")
async def test_each_version_has_its_own_input_schema(server: Server) -> None:
    first = (await deploy(server))["version"]
    second = (await deploy(server, REFUND.replace("amount", "total")))["version"]
    schemas = [
        await server.json("GET", f"/v1/flows/refund/versions/{version}/input-schema")
        for version in (first, second)
    ]
    assert [list(each["properties"]) for each in schemas] == [["amount"], ["total"]]
    await server.json("GET", "/v1/flows/refund/versions/none/input-schema", 404)


@dataclass
class _Parcel:
    zone: str
    height: int
    arrives: str = ""
    breaks: bool = False


@pytest.mark.covers("WB-24-order")
async def test_inputs_and_questions_keep_the_order_of_their_author(server: Server) -> None:
    flow = Flow("ordered", state=_Parcel, effect="pure")
    flow.hold(
        "ask",
        prompt="Send it?",
        context={"zone": "{{zone}}", "height": "{{height}}", "arrives": {"two": 2, "one": 1}},
        schema={"type": "object", "properties": {"why": {"type": "string"}, "amount": {"type": "number"}}},
        options=["yes", "no"],
        assignee="user:dana",
    )
    fields = ["zone", "height", "arrives", "breaks"]
    async with Worker(flow, on=server.hf):
        body = {"flow": "ordered", "input": {"zone": "B", "height": 2}, "wait": 60}
        run = await server.json("POST", "/v1/runs", 201, json=body)
        (hold,) = (await server.json("GET", f"/v1/holds?run={run['id']}"))["items"]
        stored = await server.json("GET", f"/v1/flows/ordered/versions/{run['version']}/input-schema")
    assert list(stored["properties"]) == fields
    assert list(hold["context"]) == ["zone", "height", "arrives"]
    assert list(hold["context"]["arrives"]) == ["two", "one"]
    assert list(hold["schema"]["properties"]) == ["why", "amount"]
    names = "{zulu: {type: string}, amount: {type: number}, mike: {type: string}}"
    await deploy(server, REFUND.replace("{amount: {type: number}}", names))
    deployed = await server.json("GET", "/v1/flows/refund/versions/current/input-schema")
    assert list(deployed["properties"]) == ["zulu", "amount", "mike"]


@pytest.mark.covers("WB-1-names")
async def test_flow_whose_name_has_a_slash_is_started(server: Server) -> None:
    flow = Flow("post/größe", effect="pure")

    @flow.node
    async def only(s: dict[str, Any]) -> dict[str, Any]:
        return {}

    flow.start(only)
    async with Worker(flow, on=server.hf):
        body = {"flow": "post/größe", "input": {}, "wait": 60}
        assert (await server.json("POST", "/v1/runs", 201, json=body))["status"] == "completed"
    # What looks like a file is still only read from the folders that the operator allows.
    await server.json("POST", "/v1/runs", 403, json={"flow": "../secret.py", "input": {}})
    await server.json("POST", "/v1/runs", 403, json={"flow": "../secret", "input": {}})
