"""The JavaScript client in Node: every operation, as a program uses it, and what of it is made."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Worker
from holdfast.api.app import ApiSettings
from holdfast.api.openapi import document
from holdfast.api.pages.assets import FOLDER
from holdfast.api.routes.all import THEMES
from holdfast.api.schemas.events import EventWire, HoldEventWire
from tests.api.conftest import Server, serving
from tests.api.live import asking
from tests.api.test_sse import started
from tests.services.node import script
from tests.services.typescript import checked
from tools import js_client
from tools.pyclient.naming import OTHER_PROTOCOLS

JS = Path(__file__).parent / "js"
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.anyio


def described() -> dict[str, Any]:
    return document([route for theme in THEMES for route in theme.found])


def by_id() -> dict[str, tuple[str, str, dict[str, Any]]]:
    return {
        said["operationId"]: (method.upper(), path, said)
        for path, ways in described()["paths"].items()
        for method, said in ways.items()
        if said["operationId"] not in OTHER_PROTOCOLS
    }


@pytest.mark.covers("SERVER-SDK-04")
async def test_each_operation_has_a_method_that_sends_it_and_no_method_sends_anything_else(
    server: Server,
) -> None:
    operations = by_id()
    async with script(JS / "operations.mjs", address=server.serving.address, token=server.token) as output:
        first = await output.said()
        sent = {each["id"]: each for each in await output.rest()}
    assert {_snake(name) for name in first["methods"]} == set(operations)
    assert set(first["own"]) == {"bindSession", "constructor", "request", "socket", "waitFor"}
    assert set(sent) == set(operations)
    values = re.findall(
        r"^export (?:class|const) (\w+)", (FOLDER / "holdfast.d.ts").read_text(), re.MULTILINE
    )
    assert sorted(first["exports"]) == sorted(values)
    for name, each in sent.items():
        method, path, said = operations[name]
        assert each["method"] == method, name
        assert re.fullmatch(re.sub(r"\{\w+\}", "a%2F%C3%A4%20%3F%23", path), each["path"]), (name, each)
        parameters = said.get("parameters", [])
        wanted = {one["name"] for one in parameters if one["in"] == "query"}
        if "text/event-stream" in said["responses"].get("200", {}).get("content", {}):
            # Where a stream begins is told as when it comes back: as a header too.
            assert each["place"] == "1"
            wanted -= {"after_sequence"}
        assert set(each["query"]) == wanted, name
        assert each["key"] == any(one["name"] == "Idempotency-Key" for one in parameters), name
        content = said.get("requestBody", {"content": {}})["content"]
        assert (each["type"] in content) if content else (not each["has_body"]), name
        # The server knows it: whatever it says to these values, it found the place and every parameter.
        problem = each.get("problem", {})
        assert str(each["status"]) in said["responses"], (name, each)
        # With a slash in its version, the path of a document is that of a flow, which has no parameters.
        if name != "get_flow_document":
            assert problem.get("code") not in ("unknown_parameter", "method_not_allowed"), (name, each)


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


@pytest.mark.covers("SERVER-SDK-04")
def test_what_is_made_of_the_document_is_what_lies_there() -> None:
    assert js_client.stale() == [], "run python tools/js_client.py write"
    names = set(re.findall(r"^  (\w+)\(", _part("Operations"), re.MULTILINE))
    assert {_snake(name) for name in names} == set(by_id())


@pytest.mark.covers("SERVER-SDK-04")
def test_an_operation_more_or_less_is_seen() -> None:
    more = described()
    more["paths"]["/v1/odd/{thing}"] = {
        "put": {
            "operationId": "put_odd",
            "summary": "Odd.",
            "parameters": [
                {"name": "thing", "in": "path", "required": True, "schema": {"type": "string"}},
                {"name": "at", "in": "query", "required": True, "schema": {"type": "string"}},
            ],
            "responses": {"204": {"description": "No Content"}},
        }
    }
    line = '  putOdd: { method: "PUT", path: "/v1/odd/{thing}", query: true, gives: "nothing" },'
    assert line in js_client.table(more)
    types = js_client.declarations(more)
    assert "  putOdd(thing: string, query: PutOddQuery, options?: Options): Promise<void>;" in types
    assert "export interface PutOddQuery {\n  at: string;\n}" in types
    del more["paths"]["/v1/runs"]["post"]
    assert "createRun:" not in js_client.table(more)


def _part(name: str, file: str = "operations.d.ts") -> str:
    text = (FOLDER / file).read_text()
    begin = text.index(f"export interface {name} {{")
    return text[begin : text.index("\n}", begin)]


@pytest.mark.covers("SERVER-SDK-04")
@pytest.mark.parametrize(("name", "wire"), [("RunEvent", EventWire), ("HoldEvent", HoldEventWire)])
def test_events_have_the_fields_that_their_types_say(name: str, wire: type[msgspec.Struct]) -> None:
    """The document says of a stream only that it is one."""
    fields = re.findall(r"^  (\w+)(\??): (.+);$", _part(name, "holdfast.d.ts"), re.MULTILINE)
    assert [field for field, _, _ in fields] == [each.name for each in msgspec.structs.fields(wire)]
    assert not any(optional for _, optional, _ in fields)
    plain = {"string": str, "number": int, "string | null": str | None}
    for (_, _, said), each in zip(fields, msgspec.structs.fields(wire), strict=True):
        assert plain.get(said, dict[str, Any]) == each.type


@pytest.mark.covers("SERVER-SDK-04")
def test_document_names_the_key_where_a_key_does_something() -> None:
    keyed = {
        name
        for name, (_, _, said) in by_id().items()
        if any(each["name"] == "Idempotency-Key" for each in said.get("parameters", []))
    }
    assert {"create_run", "give_input", "resolve_hold", "resume_run", "trigger_schedule"} <= keyed
    assert not {"comment_on_hold", "create_token", "make_link", "cancel_run"} & keyed


@pytest.mark.covers("SERVER-SDK-03")
async def test_program_starts_answers_lists_and_reads(shop: Server) -> None:
    async with script(JS / "using.mjs", address=shop.serving.address, token=shop.token) as output:
        said: dict[str, Any] = {}
        for each in await output.rest():
            said.setdefault(next(iter(each)), each)
    assert said["made"] | {"location": ""} == {"made": 201, "location": "", "same": True}
    assert said["made"]["location"].startswith("/v1/runs/")
    assert said["asked"] == {"asked": "pending_input", "holds": 1}
    assert said["stale"] == {"stale": 412, "code": "version_stale", "kind": True}
    assert said["wrong"] == {"wrong": 422, "words": True, "request": "string"}
    assert said["resolved"] == {"resolved": "resolved"}
    assert said["ended"] == {"ended": "completed"}
    assert said["unchanged"] == {"unchanged": 304, "body": None}
    assert said["receipt"] == {"receipt": "paid 40 for A-17"}
    assert said["raw"] == {"raw": [0, 1]}
    assert said["listed"] == {"listed": 6, "distinct": 6, "last": True}
    numbers = said["numbers"]["numbers"]
    assert numbers == list(range(1, len(numbers) + 1))
    assert said["flows"] == {"flows": ["both"] * 5}
    assert said["complaints"] == {"complaints": ["HoldfastError"] * 9, "hushed": True}
    assert said["stranger"] == {"stranger": 401, "code": "unauthenticated"}
    assert said["renewed"] == {"renewed": True}
    assert said["followed"] == {"followed": True}
    assert said["elsewhere"] == {"elsewhere": "not_found"}
    assert said["aborted"] == {"aborted": "enough"}


@pytest.mark.covers("SERVER-SDK-03")
async def test_lost_answers_are_asked_for_again_where_nothing_is_done_twice(shop: Server) -> None:
    slow = ApiSettings(pace=1, burst=1)
    waiting = await started(shop, asking())
    async with serving(shop.hf, slow) as busy:
        given = {"address": shop.serving.address, "token": shop.token, "waiting": waiting}
        given |= {"busy": busy.serving.address, "busy_token": busy.token}
        async with script(JS / "retries.mjs", **given) as output:
            starting, away, commenting, deciding, planning, nobody, slow_one, many = await output.rest()
    assert starting["asked"] == 3
    assert away["waited"] == 8
    runs = await shop.json("GET", "/v1/runs?flow=refund")
    assert [each["id"] for each in runs["items"]] == [starting["run"]]
    assert (commenting["asked"], commenting["kind"]) == (1, True)
    comments = await shop.json("GET", f"/v1/holds/{commenting['hold']}/comments")
    assert [each["text"] for each in comments["items"]] == ["once"]
    assert deciding == {"asked": 2, "status": "resolved"}
    assert planning == {"name": "nightly", "asked": [2, 1], "kind": True}
    assert nobody == {"nobody": "ConnectionError", "words": True}
    assert slow_one == {"slow": "TimeoutError", "kind": True}
    assert many == {"found": 2, "waited": True}


async def test_stream_in_any_pieces_says_the_same() -> None:
    async with script(JS / "frames.mjs") as output:
        (found,) = await output.rest()
    assert found == [
        [
            {"retry": 250},
            {"beat": True},
            {"id": "7", "type": "a", "text": '{"x":\n"ä🚢"}'},
            {"id": "", "type": "b", "text": " two\n"},
            {"place": "9"},
        ]
    ]


@pytest.mark.covers("R-58")
@pytest.mark.parametrize("hot", [0.0, 30.0])
async def test_page_that_comes_back_to_a_question_is_asked_again_and_goes_on(
    server: Server, hot: float
) -> None:
    async with Worker(asking(), on=server.hf, poll=0.05, hot_hold=hot):
        run = await started(server, asking())
        given = {"address": server.serving.address, "token": server.token, "run": run}
        async with script(JS / "returning.mjs", **given) as output:
            (said,) = await output.rest()
    (first,), (again,) = said["first"], said["again"]
    assert (said["before"], said["resumed"], said["status"]) == ("pending_input", 200, "completed")
    assert (first["is_resumed"], again["is_resumed"]) == (False, True)
    shown = ("prompt", "checkpoint_id", "entity_id", "options")
    assert [first[name] for name in shown] == [again[name] for name in shown]
    assert said["kept"] != first["checkpoint_id"], "the last checkpoint is that of its end"


@pytest.mark.covers("SERVER-SDK-03")
async def test_page_of_the_proposal_works_in_node(server: Server) -> None:
    async with Worker(asking(), on=server.hf, poll=0.05):
        run = await started(server, asking())
        given = {"address": server.serving.address, "token": server.token, "run": run}
        async with script(JS / "example.mjs", **given) as output:
            *told_before, last = await output.rest()
    assert {"prompt": "Pay 500?", "resumed": False} in told_before
    assert last["status"] == "completed"
    assert last["state"] == 2
    kept = await server.json("GET", f"/v1/runs/{run}/checkpoints/{last['kept']}")
    assert kept["run_id"] == run


@pytest.mark.covers("SERVER-SDK-03")
async def test_what_the_page_about_it_shows_works(shop: Server, tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/javascript-client.md").read_text()
    code = "".join(re.findall(r"^```javascript\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    for shown, real in (
        ('"holdfast-client"', json.dumps((FOLDER / "holdfast.js").as_uri())),
        ('"http://127.0.0.1:8420"', json.dumps(shop.serving.address)),
        ("process.env.HOLDFAST_TOKEN", json.dumps(shop.token)),
    ):
        assert shown in code
        code = code.replace(shown, real)
    # What it tells is read as JSON, each thing that is shown on a line of its own.
    (tmp_path / "page.mjs").write_text(
        f"console.log = (...told) => process.stdout.write(JSON.stringify(told) + '\\n');\n{code}"
    )
    async with script(tmp_path / "page.mjs") as output:
        said = await output.rest()
    assert said[0][0] == "pending_input"
    assert said[1] == ["Refund 40?", ["approve", "reject"]]
    assert ["paid 40 for A-17"] in said
    assert said[-1][0::2] == [200, 304]
    runs = await shop.json("GET", "/v1/runs")
    assert [each["status"] for each in runs["items"]] == ["completed"] * 2


@pytest.mark.covers("SERVER-SDK-03")
def test_types_are_whole_and_say_what_is_right_and_wrong() -> None:
    """To a page's compiler, and to that of a program which knows Node alone."""
    assert checked(JS / "typed.mts") == ""
    assert checked(JS / "typed.mts", node=True) == ""
