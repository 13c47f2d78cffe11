"""Large values are compared with their JSON Schemas beside the event loop, which answers others meanwhile."""

from __future__ import annotations

import json
from threading import current_thread
from typing import Any

import pytest

from holdfast import Flow, Worker
from holdfast.holds.forms.json_schema import problems_in
from holdfast.types.terms import operator
from tests.api.conftest import Server
from tests.api.documents import deploy
from tests.api.test_pages import get, hidden, post, waiting

pytestmark = pytest.mark.anyio
MANY = [1] * 2_000
ROWS: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads in which values were compared, in order, each once in a row."""
    found: list[str] = []

    def compared(value: object, schema: object) -> list[str]:
        name = current_thread().name.partition("_")[0]
        if found[-1:] != [name]:
            found.append(name)
        return problems_in(value, schema)

    for module in ("forms.field_values", "actions.submission"):
        monkeypatch.setattr(f"holdfast.holds.{module}.problems_in", compared)
    monkeypatch.setattr("holdfast.documents.program.problems_in", compared)
    return found


def asking() -> Flow:
    flow = Flow("asking", effect="pure")
    sections: list[dict[str, Any]] = [
        {"type": "input", "field": "rows", "kind": "json", "schema": ROWS},
        {"type": "decision", "options": [{"id": "yes", "label": "Yes"}]},
    ]
    flow.hold("ask", prompt="Take them?", sections=sections, into="said", assignee="user:local")
    return flow


@pytest.mark.covers("RS-4")
@pytest.mark.parametrize(("size", "where"), [(1, "MainThread"), (20_000, "holdfast-schemas")])
async def test_form_page_compares_what_was_typed(
    server: Server, threads: list[str], size: int, where: str
) -> None:
    hold = await waiting(server, asking())
    shown = await get(server, f"/holds/{hold}")
    rows = json.dumps([1] * size)
    sent = {"decision": "yes", "request_hash": hidden(shown, "request_hash"), "f.rows": rows}
    assert (await post(server, f"/holds/{hold}", sent)).status_code == 303
    assert threads == [where]


@pytest.mark.covers("RS-4")
@pytest.mark.parametrize(
    ("rows", "where"), [([1], "MainThread"), (MANY, "holdfast-schemas")], ids=["1", "many"]
)
async def test_preview_compares_what_was_filled_in(
    server: Server, threads: list[str], rows: list[int], where: str
) -> None:
    hold = await waiting(server, asking())
    body = {"decision": "yes", "response_data": {"rows": rows}}
    await server.json("POST", f"/v1/holds/{hold}/consequences", json=body)
    assert threads == [where]


COLLECT = """\
holdfast: "1.0"
name: collect
input: {type: object, properties: {more: {type: array}}}
variables: {rows: {type: array, schema: {items: {type: integer}}}}
nodes:
  - {id: start, type: start}
  - {id: ask, type: checkpoint, config: {prompt: "Take them?", options: [yes, no]}}
  - {id: take, type: set, config: {values: {rows: "{{more}}"}}}
  - {id: done, type: end}
edges:
  - {source: start, target: ask}
  - {source: ask, source_port: "yes", target: take}
  - {source: ask, source_port: "no", target: done}
  - {source: take, target: done}
"""


async def collecting(server: Server, more: list[int]) -> tuple[str, str]:
    """A run that asks, and its hold."""
    await deploy(server, COLLECT)
    made = await server.json("POST", "/v1/runs", 201, json={"flow": "collect", "input": {"more": more}})
    worker = Worker(on=server.hf)
    await worker.run_until_idle()
    await worker.close()
    (hold,) = (await server.json("GET", f"/v1/holds?run={made['id']}"))["items"]
    return made["id"], hold["id"]


@pytest.mark.covers("CV-5")
@pytest.mark.parametrize(
    ("more", "where"), [([1], "MainThread"), (MANY, "holdfast-schemas")], ids=["1", "many"]
)
async def test_preview_compares_the_variables_of_a_document(
    server: Server, threads: list[str], more: list[int], where: str
) -> None:
    _, hold = await collecting(server, more)
    threads.clear()
    found = await server.json("GET", f"/v1/holds/{hold}/consequences")
    assert "done" in str(found["options"][0]["entries"]), found
    assert threads == [where]


@pytest.mark.covers("CV-5")
@pytest.mark.parametrize(
    ("rows", "where"), [([1], "MainThread"), (MANY, "holdfast-schemas")], ids=["1", "many"]
)
async def test_fork_compares_the_variables_that_it_changes(
    server: Server, threads: list[str], rows: list[int], where: str
) -> None:
    run, _ = await collecting(server, [])
    threads.clear()
    made = await server.json("POST", f"/v1/runs/{run}/fork", 201, json={"patch": {"scratch": {"rows": rows}}})
    wrong = {"patch": {"scratch": {"rows": ["a", *rows]}}}
    await server.json("POST", f"/v1/runs/{run}/fork", 422, json=wrong)
    assert made["id"] != run
    assert threads == [where]


@pytest.mark.covers("HOLD-POL-04")
@pytest.mark.parametrize(("names", "where"), [(1, "MainThread"), (1_500, "holdfast-schemas")])
async def test_simulation_compares_answers_of_rules(
    server: Server, threads: list[str], names: int, where: str
) -> None:
    flow = Flow("refund", effect="pure")
    schema = {
        "type": ["object", "null"],
        "properties": {f"field_{n}": {"type": "string"} for n in range(names)},
    }
    flow.hold("gate", prompt="Pay?", options=["approve", "reject"], schema=schema)
    hold = await waiting(server, flow)
    await (await server.hf.holds()).resolve(operator(), hold, "approve")
    threads.clear()
    policy = {"name": "new", "rules": [{"name": "all", "decide": "reject"}]}
    found = await server.json("POST", "/v1/policies/simulate", json={"policy": policy})
    assert (found["looked_at"], found["overturned"]) == (1, 1)
    assert threads == [where]
