"""Pipelines over HTTP: the nine endpoints, their streams and refusals, on servers that really listen."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.api.settings import ApiSettings
from holdfast.app.flow import wait_until_idle
from holdfast.client import AsyncClient
from holdfast.drawing import State
from holdfast.frontends.dot.lower import lower
from holdfast.frontends.dot.parse import parse
from holdfast.model.fingerprint import encode_graph
from holdfast.runs.driver.settings import RunSettings
from holdfast.store.rows import RunFilter
from tests.api.conftest import Server, serving
from tests.api.sign_in import bearer, token
from tests.attractor.run import dot, line, listed

pytestmark = pytest.mark.anyio

GATED = dot(
    'plan [prompt="Plan $goal"]; gate [shape=hexagon, label="Ship?"]; fix [label=Fix];',
    'start -> plan -> gate; gate -> done [label="[A] Approve"]; gate -> fix [label="[F] Fix"]; fix -> done',
)


@pytest.fixture
async def hall(anyio_backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    monkeypatch.chdir(tmp_path)
    async with works() as found:
        yield found


@asynccontextmanager
async def works(settings: ApiSettings | None = None) -> AsyncIterator[Server]:
    allowed = RunSettings(allow_code=settings is not None and settings.allow_code)
    async with (
        Holdfast("memory:", settings=allowed) as hf,
        serving(hf, settings) as found,
        Worker(on=hf),
    ):
        yield found


async def submitted(server: Server, source: str, status: int = 201, **more: Any) -> Any:
    found = await server.json("POST", "/pipelines", status, json={"dot": source, "simulate": True, **more})
    if status == 201:
        await wait_until_idle(await server.hf.service(), found["id"], 20)
    return found


async def events_of(server: Server, run: str, **headers: str) -> list[tuple[int, str, dict[str, Any]]]:
    """(id, name, data) of each, until the stream ends or says that nothing more comes for a while."""
    found: list[tuple[int, str, dict[str, Any]]] = []
    lines: dict[str, str] = {}
    async with server.client.stream("GET", f"/pipelines/{run}/events", headers=headers) as answer:
        assert answer.status_code in (200, 204)
        async for text in answer.aiter_lines():
            if text.startswith(":"):
                break
            name, _, value = text.partition(": ")
            lines[name] = value
            if not text and "data" in lines:
                found.append((int(lines["id"]), lines["event"], json.loads(lines["data"])))
                lines = {}
    return found


@pytest.mark.covers("AT-220", "AT-221", "ATTRACTOR-HTTP-01", "AT-A30")
async def test_a_source_is_submitted_and_its_progress_is_shown(hall: Server) -> None:
    answer = await hall.client.post("/pipelines", json={"dot": GATED, "simulate": True})
    run = answer.json()["id"]
    assert (answer.status_code, answer.headers["location"]) == (201, f"/v1/pipelines/{run}")
    await wait_until_idle(await hall.hf.service(), run, 20)
    found = await hall.json("GET", f"/v1/pipelines/{run}")
    assert (found["name"], found["goal"], found["status"]) == ("g", "ship it", "pending_input")
    assert (found["completed_nodes"], found["current_node"]) == (["start", "plan"], "plan")
    assert (found["outcome"], len(found["questions"])) == (None, 1)
    again = await hall.client.get(f"/pipelines/{run}", headers={"If-None-Match": '"x"'})
    assert again.json() == found
    same = {"Idempotency-Key": "once"}
    first = await hall.client.post("/pipelines", json={"dot": GATED, "simulate": True}, headers=same)
    second = await hall.client.post("/pipelines", json={"dot": GATED, "simulate": True}, headers=same)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]


@pytest.mark.covers("AT-220")
async def test_a_source_that_cannot_run_is_refused_with_every_fault_at_its_place(hall: Server) -> None:
    broken = await submitted(hall, "digraph g {\n a -> \n}", 400)
    assert broken["code"] == "pipeline_syntax"
    assert {each["line"] for each in broken["errors"]} & {2, 3}
    invalid = await submitted(hall, 'digraph g { a [prompt="x"]; b [prompt="y"] }', 400)
    assert {"start_node", "terminal_node"} <= {each["rule"] for each in invalid["errors"]}
    assert invalid["hint"]
    strict = await submitted(hall, line("a [label=A shape=box];", "a"), 400, strict=True)
    assert strict["errors"][0]["severity"] == "error"
    lenient = await submitted(hall, line("a [label=A shape=box];", "a"))
    assert [each["severity"] for each in lenient["diagnostics"]].count("warning") >= 1


@pytest.mark.covers("AT-222", "AT-229", "ATTRACTOR-HTTP-02")
async def test_events_are_reported_from_the_first_and_go_on_from_the_last_one_seen(hall: Server) -> None:
    run = (await submitted(hall, line("a; b;", "a", "b")))["id"]
    found = await events_of(hall, run)
    names = [name for _, name, _ in found]
    assert (names[0], names[-1]) == ("PipelineStarted", "PipelineCompleted")
    assert [data["name"] for _, name, data in found if name == "StageCompleted"] == [
        "start",
        "a",
        "b",
        "done",
    ]
    numbers = [number for number, _, _ in found]
    assert numbers == sorted(set(numbers))
    for cut in (0, 3, len(found) - 2):
        rest = await events_of(hall, run, **{"Last-Event-ID": str(numbers[cut])})
        assert rest == found[cut + 1 :]
    over = await hall.client.get(f"/pipelines/{run}/events", params={"after": numbers[-1]})
    assert over.status_code == 204
    odd = await hall.client.get(f"/pipelines/{run}/events", headers={"Last-Event-ID": "1.2"})
    assert odd.status_code == 422


@pytest.mark.covers("AT-222", "ATTRACTOR-HTTP-02")
async def test_a_stream_hears_of_an_answer_as_it_comes(hall: Server) -> None:
    run = (await submitted(hall, GATED))["id"]
    async with AsyncClient(hall.serving.address, hall.token) as client:
        names: list[str] = []
        async for event in client.pipelines.stream(run):
            names.append(event.type)
            if event.type == "InterviewStarted":
                assert event.data["question"] == "Ship?"
                await client.pipelines.answer(run, event.data["hold"], value="F")
        assert names.index("InterviewStarted") < names.index("InterviewCompleted")
        assert names[-1] == "PipelineCompleted"


@pytest.mark.covers("AT-223")
async def test_a_pipeline_is_cancelled_once(hall: Server) -> None:
    run = (await submitted(hall, GATED))["id"]
    await hall.json("POST", f"/pipelines/{run}/cancel", json={"reason": "not today"})
    await wait_until_idle(await hall.hf.service(), run, 20)
    found = await hall.json("GET", f"/pipelines/{run}")
    assert (found["status"], found["outcome"], found["questions"]) == ("cancelled", "cancelled", [])
    ended = (await submitted(hall, line("a;", "a")))["id"]
    assert (await hall.json("POST", f"/pipelines/{ended}/cancel", 409, json={}))["code"] == "run_ended"


@pytest.mark.covers("AT-224", "ATTRACTOR-HTTP-03")
async def test_the_graph_is_drawn_with_the_state_of_each_stage(hall: Server) -> None:
    run = (await submitted(hall, GATED))["id"]
    answer = await hall.client.get(f"/pipelines/{run}/graph")
    assert answer.headers["content-type"] == "image/svg+xml"
    states = {name: state_in(answer.text, name) for name in ("start", "plan", "gate", "fix")}
    assert states == {"start": "done", "plan": "done", "gate": "asking", "fix": ""}
    hold = (await hall.json("GET", f"/pipelines/{run}/questions"))["items"][0]["id"]
    await hall.json("POST", f"/pipelines/{run}/questions/{hold}/answer", json={"value": "F"})
    service = await hall.hf.service()
    await wait_until_idle(service, run, 20)
    drawn = (await hall.client.get(f"/pipelines/{run}/graph")).text
    assert [state_in(drawn, name) for name in ("gate", "fix", "done")] == ["done", "done", "done"]


def state_in(svg: str, stage: str) -> str:
    """By the class of the box that has this title."""
    space = "{http://www.w3.org/2000/svg}"
    for group in ElementTree.fromstring(svg).iter(f"{space}g"):
        title = group.find(f"{space}title")
        if title is not None and f". {stage}, " in (title.text or ""):
            words = (group.get("class") or "").split()
            return next((word for word in words if word in tuple(State)), "")
    raise AssertionError(f"{stage} is not drawn")


@pytest.mark.covers("AT-225", "AT-226", "ATTRACTOR-HTTP-04", "ATTRACTOR-GATE-02")
async def test_questions_are_listed_and_answered_once(hall: Server) -> None:
    run = (await submitted(hall, GATED))["id"]
    (asked,) = (await hall.json("GET", f"/pipelines/{run}/questions"))["items"]
    assert (asked["stage"], asked["text"], asked["type"]) == ("gate", "Ship?", "multiple_choice")
    assert [(each["key"], each["label"], each["to"]) for each in asked["options"]] == [
        ("A", "[A] Approve", "done"), ("F", "[F] Fix", "fix"),
    ]  # fmt: skip
    place = f"/pipelines/{run}/questions/{asked['id']}/answer"
    unknown = await hall.json("POST", place, 422, json={"value": "perhaps"})
    assert (unknown["options"], unknown["hint"]) == (["A", "F"], "Choose one of: A, F.")
    await hall.json("POST", place, 422, json={})
    taken = await hall.json("POST", place, json={"value": "fix", "comment": "typo"})
    assert (taken["status"], taken["decision"]) == ("resolved", "F")
    assert (await hall.json("POST", place, 409, json={"value": "A"}))["code"] == "hold_decided"
    await hall.json("POST", f"/pipelines/{run}/questions/nothing/answer", 404, json={"value": "A"})
    other = (await submitted(hall, GATED))["id"]
    await hall.json("POST", f"/pipelines/{other}/questions/{asked['id']}/answer", 404, json={"value": "A"})
    await wait_until_idle(await hall.hf.service(), run, 20)
    context = await hall.json("GET", f"/pipelines/{run}/context")
    assert (context["human.gate.selected"], context["human.gate.comment"]) == ("F", "typo")
    assert (await hall.json("GET", f"/pipelines/{run}/questions"))["items"] == []


@pytest.mark.covers("AT-225", "AT-173")
async def test_free_words_and_a_skipped_question_are_answers_too(hall: Server) -> None:
    free = line('ask [shape=hexagon, label="What next?", question_type=freeform];', "ask")
    run = (await submitted(hall, free))["id"]
    (asked,) = (await hall.json("GET", f"/pipelines/{run}/questions"))["items"]
    assert (asked["type"], asked["options"]) == ("freeform", [])
    place = f"/pipelines/{run}/questions/{asked['id']}/answer"
    await hall.json("POST", place, json={"text": "the weather"})
    await wait_until_idle(await hall.hf.service(), run, 20)
    assert (await hall.json("GET", f"/pipelines/{run}/context"))["human.gate.text"] == "the weather"
    skipped = (await submitted(hall, GATED))["id"]
    (asked,) = (await hall.json("GET", f"/pipelines/{skipped}/questions"))["items"]
    await hall.json("POST", f"/pipelines/{skipped}/questions/{asked['id']}/answer", json={"value": "skipped"})
    await wait_until_idle(await hall.hf.service(), skipped, 20)
    found = await hall.json("GET", f"/pipelines/{skipped}")
    assert (found["outcome"], found["failure_reason"]) == ("fail", "human skipped interaction")


@pytest.mark.covers("AT-227", "AT-228")
async def test_the_checkpoint_and_the_context_are_those_of_the_specification(hall: Server) -> None:
    run = (await submitted(hall, line("a;", "a"), context={"colour": "red"}))["id"]
    found = await hall.json("GET", f"/pipelines/{run}/checkpoint")
    assert (found["current_node"], found["completed_nodes"]) == ("done", ["start", "a", "done"])
    assert {"timestamp", "node_retries", "context", "logs"} <= found.keys()
    context = await hall.json("GET", f"/pipelines/{run}/context")
    assert (context["colour"], context["graph.goal"], context["outcome"]) == ("red", "ship it", "success")
    assert context["last_stage"] == "a"


async def test_a_stored_pipeline_is_started_by_its_name_as_every_flow(hall: Server) -> None:
    await submitted(hall, line("a [llm_provider=simulation];", "a"))
    found = await hall.json("POST", "/v1/runs", 201, json={"flow": "g", "input": {"x": 1}, "wait": 60})
    context = await hall.json("GET", f"/pipelines/{found['id']}/context")
    assert (context["graph.goal"], context["x"], context["outcome"]) == ("ship it", 1, "success")


@pytest.mark.covers("ATTRACTOR-HTTP-04")
async def test_what_is_no_pipeline_or_somebody_elses_is_not_there(hall: Server) -> None:
    flow = Flow("plain", effect="pure")
    flow.hold("approve", prompt="?", options=["yes"])
    plain = await flow.run({}, on=hall.hf)
    run = (await submitted(hall, GATED))["id"]
    stranger = bearer(await token(hall, "user:eve", "admin", tenant="other"))
    theirs = [each["name"] for each in (await hall.client.get("/v1/flows", headers=stranger)).json()["items"]]
    assert "g" not in theirs
    for path in ("/v1/flows/g", "/v1/flows/g/versions/latest", "/v1/flows/g/versions/latest/drawing"):
        assert (await hall.client.get(path)).status_code == 200
        assert (await hall.client.get(path, headers=stranger)).status_code == 404
    started = await hall.client.post("/v1/runs", json={"flow": "g"}, headers=stranger)
    assert started.status_code == 404
    html = {"Accept": "text/html"}
    assert "/flows/g" in (await hall.client.get("/flows", headers=html)).text
    assert "/flows/g" not in (await hall.client.get("/flows", headers=stranger | html)).text
    for tail in ("", "/events", "/graph", "/questions", "/checkpoint", "/context"):
        assert (await hall.client.get(f"/pipelines/nothing{tail}")).status_code == 404
        assert (await hall.client.get(f"/pipelines/{plain.run_id}{tail}")).status_code == 404
        assert (await hall.client.get(f"/pipelines/{run}{tail}", headers=stranger)).status_code == 404


TOOL = line('t [shape=parallelogram, tool_command="touch ran"];', "t")
CODE = {
    "a command": (TOOL, "t", "tool_command"),
    "an agent": (line("a [prompt=x, agent=claude];", "a"), "a", "agent"),
    "a hook": (line('a [tool_hooks.pre="touch ran"];', "a"), "a", "tool_hooks.pre"),
    "a hook of the graph":
        (line("a;", "a", graph='goal=x, tool_hooks.post="touch ran"'), "", "tool_hooks.post"),
    "a late child": (line("m [shape=house, stack.child_resolve=late];", "m"), "m", "stack.child_resolve"),
    "a folder": (line('a [prompt=x, cwd="/"];', "a"), "a", "cwd"),
}  # fmt: skip


def prompts(folder: Path) -> list[str]:
    return [each.read_text() for each in folder.rglob("prompt.md")]


INSIDE = {
    "a child": line('m [shape=house, stack.child_dotfile="parts/inner.dot"];', "m"),
    "a file": line('a [prompt="@parts/words.txt"];', "a"),
    "an include": line('a [subgraph_file="parts/inner.dot"];', "a"),
}
"""Pipelines that name a file."""


@pytest.mark.parametrize("name", INSIDE)
async def test_files_come_with_the_request_and_from_nowhere_else(
    hall: Server, tmp_path: Path, name: str
) -> None:
    # Files of the server's machine are not read, wherever they are.
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/inner.dot").write_text(line("x;", "x"))
    (tmp_path / "parts/words.txt").write_text("of the machine")
    found = await submitted(hall, INSIDE[name], 400)
    assert "is not one of the files of the request" in found["errors"][0]["message"]
    assert found["errors"][0]["fix"].startswith("send its text in `files`")
    for outside in ("../secret.txt", "/etc/hostname", "parts/../../x"):
        source = INSIDE[name].replace("parts/inner.dot", outside).replace("parts/words.txt", outside)
        await submitted(hall, source, 400)
    inner = line('c [prompt="@words.txt"];', "c")
    files = {"parts/inner.dot": inner, "parts/words.txt": "of the request"}
    run = (await submitted(hall, INSIDE[name], files=files))["id"]
    assert (await hall.json("GET", f"/pipelines/{run}"))["outcome"] == "success"
    assert any("of the request" in text for text in prompts(tmp_path))


@pytest.mark.parametrize("name", ["a child", "an include"])
async def test_code_in_the_files_of_a_request_is_refused_too(hall: Server, name: str) -> None:
    found = await submitted(hall, INSIDE[name], 403, files={"parts/inner.dot": TOOL})
    assert found["code"] == "code_not_allowed"
    assert "tool_command" in found["errors"][0]["message"]
    late = line('m [shape=house, stack.child_dotfile="x.dot", stack.child_resolve=late];', "m")
    found = await submitted(hall, INSIDE[name], 403, files={"parts/inner.dot": late})
    assert "stack.child_resolve" in found["errors"][0]["message"]


async def test_too_many_or_too_large_files_are_refused(hall: Server) -> None:
    many = {f"{number}.txt": "x" for number in range(501)}
    assert (await submitted(hall, INSIDE["a file"], 422, files=many))["errors"]
    large = {f"{number}.txt": "x" * 1_000_000 for number in range(9)}
    stages = "".join(f'a{number} [prompt="@{number}.txt"];' for number in range(9))
    source = line(stages, *(f"a{number}" for number in range(9)))
    found = await submitted(hall, source, 400, files=large)
    assert "8 MB for all files" in found["errors"][0]["message"]


@pytest.mark.covers("ATTRACTOR-HTTP-05")
@pytest.mark.parametrize("name", CODE)
async def test_code_in_a_document_is_refused_by_stage_with_what_to_do(hall: Server, name: str) -> None:
    source, node, attribute = CODE[name]
    found = await submitted(hall, source, 403)
    assert found["code"] == "code_not_allowed"
    assert [(each["node"], attribute in each["message"]) for each in found["errors"]] == [(node, True)]
    assert "--allow-code" in found["hint"]
    assert found["errors"][0]["line"] == 1
    assert "ran" not in listed(Path())


@pytest.mark.covers("ATTRACTOR-HTTP-05")
async def test_an_operator_may_allow_commands_and_the_files_stay_those_of_the_request(
    anyio_backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "root"
    root.mkdir()
    (root / "words.txt").write_text("say hello")
    (tmp_path / "secret.txt").write_text("secret")
    (root / "child.dot").write_text(line("c;", "c"))
    async with works(ApiSettings(allow_code=True)) as server:
        await submitted(server, TOOL)
        assert "ran" in listed(tmp_path)
    async with works(ApiSettings(allow_code=True, roots=(root,))) as server:
        for name in ("words.txt", "../secret.txt", str(tmp_path / "secret.txt")):
            found = await submitted(server, line(f'a [prompt="@{name}"];', "a"), 400)
            assert str(root) not in json.dumps(found)
            child = line(f'm [shape=house, stack.child_dotfile="{name}"];', "m")
            assert "of the request" in (await submitted(server, child, 400))["detail"]


@pytest.mark.covers("ATTRACTOR-HTTP-05", "ATTRACTOR-PROOF-09")
async def test_no_other_way_in_brings_code_or_passes_a_gate(hall: Server) -> None:
    ours = {"internal.auto_approve": True}
    refused = await submitted(hall, GATED, 422, context=ours)
    assert "internal.auto_approve" in refused["detail"]
    run = (await submitted(hall, GATED))["id"]
    for path, body in (
        ("/v1/runs", {"flow": "g", "input": ours}),
        (f"/v1/runs/{run}/fork", {"input_data": ours}),
        (f"/v1/runs/{run}/resume", {"input_data": ours}),
    ):
        assert "internal.auto_approve" in (await hall.json("POST", path, 422, json=body))["detail"]
    plan = {"flow": "g", "every": "1h", "input": ours}
    assert (await hall.client.put("/v1/schedules/s", json=plan)).status_code == 422
    graph = json.loads(encode_graph(lower(parse(TOOL).pipeline)))
    assert "--allow-code" in (await hall.json("POST", "/v1/flows", 403, json={"graph": graph}))["hint"]
    parcel = await (await hall.hf.service()).export_run(run)
    for query in ("", "?as_new_run=true"):
        answer = await hall.client.post(f"/v1/runs/import{query}", content=parcel)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.covers("ATTRACTOR-GATE-02", "ATTRACTOR-PROOF-09")
async def test_a_gate_is_answered_while_no_worker_lives_and_goes_on_when_one_does(
    anyio_backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the page and by the interface, on a store that outlives whoever asked."""
    monkeypatch.chdir(tmp_path)
    address = f"sqlite:{tmp_path / 's.db'}"
    async with Holdfast(address) as hf, serving(hf) as server:
        async with Worker(on=hf):
            runs = [(await submitted(server, GATED))["id"] for _ in range(2)]
        service = await hf.service()
        for run, way in zip(runs, ("api", "page"), strict=True):
            (hold,) = (await server.json("GET", f"/pipelines/{run}/questions"))["items"]
            if way == "api":
                await server.json(
                    "POST", f"/pipelines/{run}/questions/{hold['id']}/answer", json={"value": "F"}
                )
            else:
                shown = await server.client.get(f"/holds/{hold['id']}", headers={"Accept": "text/html"})
                assert "[F] Fix" in shown.text
                decided = await server.client.post(f"/holds/{hold['id']}", data={"decision": "F"})
                assert decided.status_code == 303
            assert (await service.get(run)).worker is None
    async with Holdfast(address) as hf, Worker(on=hf):
        service = await hf.service()
        for run in runs:
            await wait_until_idle(service, (await service.get(run)).id, 20)
            assert str((await service.get(run)).status) == "completed"


WORKTREES = dot(
    "fan [shape=component, workspace=worktree]; join [shape=tripleoctagon]; a; b;",
    "start -> fan; fan -> a -> join; fan -> b -> join; join -> done",
)


async def test_a_pipeline_without_its_repository_is_refused_where_no_other_worker_could_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with works(ApiSettings(allow_code=True)) as server:
        store = (await server.hf.service()).store
        refused = await submitted(server, WORKTREES, 400)
        assert "is not in the working tree of a git repository" in refused["detail"]
        both = WORKTREES.replace("workspace=worktree", "workspace=worktree, merge=sideways")
        found = await submitted(server, both, 400)
        assert [each["severity"] for each in found["errors"]].count("error") == 2, found["errors"]
        assert "sideways" in found["detail"]
        assert "is not in the working tree of a git repository" in found["detail"]
        assert not await store.list_runs(RunFilter(), after=None, limit=1)
        (own,) = await store.workers()
        other = msgspec.structs.replace(own, name="other", incarnation="x", host="elsewhere")
        await store.put_worker(other, 600_000_000)
        # It may have the repository: the run waits for it.
        answer = await server.client.post("/pipelines", json={"dot": WORKTREES, "simulate": True})
        assert answer.status_code == 201


@pytest.mark.covers("CP2-I1", "CP2-I7")
async def test_prompts_and_outputs_of_a_stage_are_read_as_text(hall: Server) -> None:
    run = (await submitted(hall, line('a [prompt="Do $goal"];', "a")))["id"]
    base = f"/pipelines/{run}/stages/a"
    prompt = await hall.client.get(f"{base}/prompt")
    assert prompt.headers["content-type"] == "text/plain; charset=utf-8"
    assert prompt.text.endswith("Do ship it")
    answer = await hall.client.get(f"{base}/outputs/response", params={"visit": 1})
    assert answer.text == "[Simulated] Response for stage: a"
    verdict = await hall.client.get(f"{base}/outputs/verdict")
    assert json.loads(verdict.text)["outcome"] == "success"
    assert (
        "left no stdout: it has response, verdict"
        in (await hall.json("GET", f"{base}/outputs/stdout", 404))["detail"]
    )
    assert "unknown output" in (await hall.json("GET", f"{base}/outputs/nothing", 422))["detail"]
    assert "no record of visit 9" in (await hall.json("GET", f"{base}/prompt?visit=9", 404))["detail"]
    await hall.json("GET", f"/pipelines/{run}/stages/none/prompt", 404)
