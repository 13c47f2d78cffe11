"""Documents that run other documents: with a question inside, by files, missing, and around in a circle."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.api.conftest import Server, server
from tests.api.documents import deploy, working
from tests.cli.conftest import Cli

__all__ = ["server", "working"]

INNER: Final = """\
holdfast: "1.0"
name: kyc
input: {type: object, required: [customer], properties: {customer: {type: string}}}
output: {type: object, required: [level]}
nodes:
  - {id: start, type: start}
  - {id: ask, type: checkpoint, config: {prompt: "Trust {{customer}}?", options: ["yes", "no"]}}
  - {id: level, type: set, config: {values: {level: "{{decision}}"}}}
  - {id: done, type: end, config: {output: {level: "{{level}}"}}}
edges:
  - {source: start, target: ask}
  - {source: ask, target: level}
  - {source: level, target: done}
"""
OUTER: Final = """\
holdfast: "1.0"
name: order
input: {type: object, required: [name], properties: {name: {type: string}}}
nodes:
  - {id: start, type: start}
  - {id: check, type: subflow, config: {flow: kyc, inputs: {customer: "{{name}}"}, outputs: {trust: level}}}
  - {id: sure, type: condition, config: {when: "trust == 'yes'"}}
  - {id: sent, type: set, config: {values: {sent: true}}}
  - {id: done, type: end, config: {output: {trust: "{{trust}}", sent: "{{sent | default(false)}}"}}}
edges:
  - {source: start, target: check}
  - {source: check, target: sure}
  - {source: sure, source_port: true, target: sent}
  - {source: sure, source_port: false, target: done}
  - {source: sent, target: done}
"""


def calling(name: str, flow: str) -> str:
    return OUTER.replace("name: order", f"name: {name}", 1).replace("flow: kyc", f"flow: {flow}")


@pytest.mark.anyio
@pytest.mark.covers("CV-25")
@pytest.mark.parametrize(("decision", "sent"), [("yes", True), ("no", False)])
async def test_document_runs_a_document_that_asks_and_uses_its_output(
    working: Server, decision: str, sent: bool
) -> None:
    await deploy(working, INNER)
    await deploy(working, OUTER)
    # Pinned: a later version of the inner flow changes nothing.
    await deploy(working, INNER.replace("Trust", "Believe"))
    run = await working.json(
        "POST", "/v1/runs", 201, json={"flow": "order", "input": {"name": "Ada"}, "wait": 60}
    )
    [hold] = (await working.json("GET", "/v1/holds"))["items"]
    assert (run["status"], hold["prompt"], hold["run"]) == ("pending_input", "Trust Ada?", run["id"])
    await working.json("POST", f"/v1/holds/{hold['id']}/resolve", json={"decision": decision})
    ended = await working.json("GET", f"/v1/runs/{run['id']}/result?wait=60")
    assert (ended["status"], ended["artifacts"]) == ("completed", {"trust": decision, "sent": sent})


@pytest.mark.anyio
async def test_input_of_a_sub_flow_that_does_not_fit_fails_the_run(working: Server) -> None:
    await deploy(working, INNER)
    await deploy(working, OUTER.replace('"{{name}}"', "7"))
    run = await working.json(
        "POST", "/v1/runs", 201, json={"flow": "order", "input": {"name": "Ada"}, "wait": 60}
    )
    assert run["status"] == "failed"
    assert (await working.json("GET", "/v1/holds"))["items"] == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("inputs", "advice"), [("{costumer: '{{name}}'}", "'costumer'"), ("{}", "'customer'")]
)
async def test_input_that_a_sub_flow_requires_and_does_not_get_is_a_problem(
    server: Server, inputs: str, advice: str
) -> None:
    await deploy(server, INNER)
    refused = await deploy(server, OUTER.replace('{customer: "{{name}}"}', inputs), 422)
    [problem] = refused["errors"]
    assert (problem["rule"], problem["node"], problem["field"]) == ("subflow-input", "check", "inputs")
    assert advice in problem["fix"]


@pytest.mark.anyio
async def test_sub_flow_that_is_missing_or_of_another_tenant_is_not_deployed(server: Server) -> None:
    refused = await deploy(server, OUTER, 422)
    [problem] = refused["errors"]
    assert (problem["rule"], problem["node"], problem["field"]) == ("flow-unknown", "check", "flow")
    assert problem["fix"]
    await deploy(server, INNER)
    pinned = OUTER.replace("flow: kyc", "flow: kyc, version: canvas-ffffff")
    assert [each["rule"] for each in (await deploy(server, pinned, 422))["errors"]] == ["flow-unknown"]


@pytest.mark.anyio
async def test_flow_that_contains_itself_is_refused_directly_and_through_others(server: Server) -> None:
    refused = await deploy(server, calling("order", "order"), 422)
    assert [each["rule"] for each in refused["errors"]] == ["subflow-cycle"]
    await deploy(server, INNER)
    await deploy(server, calling("outer", "kyc"))
    around = await deploy(server, calling("kyc", "outer"), 422)
    assert [each["rule"] for each in around["errors"]] == ["subflow-cycle"]
    assert "outer" in around["errors"][0]["message"]


def test_files_beside_a_document_are_its_sub_flows(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "order.yaml").write_text(OUTER)
    (tmp_path / "kyc.yaml").write_text(INNER)
    waiting = cli("run", str(tmp_path / "order.yaml"), "--input", '{"name": "Ada"}', "--json")
    assert waiting.code == 3
    assert cli("answer", waiting.json["id"], "yes").code == 0
    ended = cli("resume", waiting.json["id"], "--json")
    assert ended.json["artifacts"] == {"trust": "yes", "sent": True}


@pytest.mark.parametrize("way", ["circle", "broken", "outside"])
def test_sub_flow_file_that_cannot_be_used_is_a_problem_of_the_node(
    cli: Cli, tmp_path: Path, way: str
) -> None:
    folder = tmp_path / "flows"
    folder.mkdir()
    (tmp_path / "kyc.yaml").write_text(INNER)
    inner = {"circle": calling("kyc", "order"), "broken": INNER.replace("type: set", "type: sett")}
    (folder / "kyc.yaml").write_text(inner.get(way, INNER))
    outer = OUTER.replace("flow: kyc", 'flow: "../kyc"') if way == "outside" else OUTER
    (folder / "order.yaml").write_text(outer)
    said = cli("check", str(folder / "order.yaml"), "--json")
    assert said.code == 1
    found = [each for each in said.json["files"][0]["diagnostics"] if each["node"] == "check"]
    rules = {"circle": "subflow-cycle", "broken": "subflow-invalid", "outside": "flow-unknown"}
    assert [each["rule"] for each in found] == [rules[way]]
