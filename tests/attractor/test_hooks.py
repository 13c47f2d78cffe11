"""Tool calls of a model: off unless allowed, run in the working folder, with commands around each of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, tool
from holdfast.app.flow import advance
from holdfast.app.result import Result
from holdfast.attractor import PipelineResult
from holdfast.attractor.prepare import input_of, prepare_pipeline
from holdfast.attractor.program import PipelineSetup, program_for
from holdfast.errors import InputError
from tests.agents.conftest import provider
from tests.agents.provider import Answer, Provider
from tests.attractor.models import backend
from tests.attractor.run import dot, line, run, written

__all__ = ["provider"]
pytestmark = pytest.mark.anyio


def calls(name: str, **arguments: Any) -> Answer:
    return Answer(calls=[("c1", name, arguments)])


def results(provider: Provider) -> list[str]:
    """What the model was told of its calls, in its last request."""
    messages = provider.seen[-1].json["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


def offered(provider: Provider) -> list[str]:
    return [each["function"]["name"] for each in provider.seen[0].json.get("tools", [])]


async def logs_of(hf: Holdfast, result: PipelineResult) -> list[str]:
    events = await (await hf.service()).events(result.run_id)
    return [e.data["data"] for e in events if e.type == "node.emitted" and e.data["kind"] == "log"]


@pytest.mark.covers("ATTRACTOR-HANDLER-07")
async def test_a_model_has_no_tools_unless_they_are_allowed(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    provider.says(Answer("done"))
    await run(hf, line("a [prompt=x];", "a"), tmp_path, backend=backend(provider))
    assert offered(provider) == []
    with pytest.raises(InputError, match="unknown tools 'hammer'"):
        backend(provider, kits=["hammer"])


@pytest.mark.covers("ATTRACTOR-HANDLER-07")
@pytest.mark.parametrize(
    ("attrs", "names"),
    [
        ("", ["shell", "read_file", "write_file", "list_files"]),
        ('tools="files"', ["read_file", "write_file", "list_files"]),
        ("tools=none", []),
    ],
)
async def test_a_stage_may_want_fewer_tools(
    hf: Holdfast, tmp_path: Path, provider: Provider, attrs: str, names: list[str]
) -> None:
    provider.says(Answer("done"))
    allowed = backend(provider, kits=["shell", "files"])
    await run(hf, line(f"a [prompt=x{', ' + attrs if attrs else ''}];", "a"), tmp_path, backend=allowed)
    assert offered(provider) == names


@pytest.mark.parametrize(
    ("stage", "graph", "turns"), [("", "max_turns=2", 2), (", max_turns=3", "max_turns=2", 3)]
)
async def test_a_stage_that_calls_tools_for_ever_is_stopped(
    hf: Holdfast, tmp_path: Path, provider: Provider, stage: str, graph: str, turns: int
) -> None:
    provider.says(*[calls("list_files", path=".") for _ in range(6)])
    text = line(f"a [prompt=x{stage}];", "a", graph=graph)
    result = await run(hf, text, tmp_path, backend=backend(provider, kits=["files"]))
    assert result.status == "fail"
    assert len(provider.seen) == turns


@pytest.mark.covers("ATTRACTOR-HANDLER-07")
async def test_tools_work_in_the_working_folder(
    hf: Holdfast, tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-operator")
    work = tmp_path / "work"
    work.mkdir()
    provider.says(
        calls("write_file", path="src/a.txt", text="hello"),
        calls("read_file", path="src/a.txt"),
        calls("list_files", path="src"),
        calls("read_file", path="../secret"),
        calls("shell", command="cat src/a.txt; echo $HOLDFAST_NODE; echo key=$OPENAI_API_KEY; exit 3"),
        Answer("done"),
    )
    text = line(f'a [cwd="{work}"];', "a")
    result = await run(hf, text, tmp_path / "logs", backend=backend(provider, kits=["shell", "files"]))
    assert result.succeeded
    assert written(work / "src" / "a.txt") == "hello"
    reply = results(provider)
    assert reply[0] == "src/a.txt: 5 bytes"
    assert reply[1] == "hello"
    assert json.loads(reply[2]) == ["a.txt"]
    assert reply[3] == "Error: ../secret is not inside the working folder"
    assert json.loads(reply[4]) == {"exit": 3, "output": "helloa\nkey=\n"}


@pytest.mark.covers("AT-238", "AT-240", "ATTRACTOR-HANDLER-07")
async def test_hooks_get_the_call_and_its_result(hf: Holdfast, tmp_path: Path, provider: Provider) -> None:
    provider.says(calls("add", a=1, b=2), Answer("3"))

    @tool(effect="pure")
    async def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    pre, post = tmp_path / "pre", tmp_path / "post"
    hooks = (
        f'tool_hooks.pre="cat >{pre}; echo $TOOL_NAME $TOOL_HOOK $HOLDFAST_NODE >{pre}.env", '
        f'tool_hooks.post="cat >{post}"'
    )
    text = line("a;", "a", graph=f"goal=g, {hooks}")
    result = await run(hf, text, tmp_path / "logs", backend=backend(provider, tools=[add]))
    assert result.succeeded
    whom = {"run_id": result.run_id, "stage": "a", "visit": 1}
    asked = {"tool": "add", "arguments": {"a": 1, "b": 2}, **whom}
    assert json.loads(written(pre)) == {"hook": "pre", **asked}
    assert json.loads(written(post)) == {"hook": "post", **asked, "result": "3", "failed": False}
    assert written(Path(f"{pre}.env")) == "add pre a\n"


@pytest.mark.covers("AT-239")
async def test_a_pre_hook_that_says_no_skips_the_call(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    touched = tmp_path / "touched"
    provider.says(calls("shell", command=f"touch {touched}"), Answer("I could not."))
    post = tmp_path / "post"
    hooks = f'tool_hooks.pre="echo not on my machine >&2; exit 3", tool_hooks.post="touch {post}"'
    text = line(f"a [{hooks}];", "a")
    result = await run(hf, text, tmp_path / "logs", backend=backend(provider, kits=["shell"]))
    assert result.succeeded
    assert (touched.exists(), post.exists()) == (False, False)
    why = "tool_hooks.pre ended with exit code 3: not on my machine"
    assert results(provider) == [f"Error: the call was not made: {why}"]
    assert await logs_of(hf, result) == ["shell skipped by tool_hooks.pre (exit code 3): not on my machine"]
    noted = json.loads(written(tmp_path / "logs" / "a" / "tool_hooks.jsonl"))
    assert (noted["tool"], noted["code"], noted["skipped"]) == ("shell", 3, True)


@pytest.mark.covers("AT-240")
async def test_a_post_hook_that_fails_is_noted_only(hf: Holdfast, tmp_path: Path, provider: Provider) -> None:
    provider.says(calls("shell", command="echo hi"), Answer("done"))
    text = line('a [tool_hooks.post="exit 1"];', "a")
    result = await run(hf, text, tmp_path, backend=backend(provider, kits=["shell"]))
    assert result.succeeded
    assert json.loads(results(provider)[0]) == {"exit": 0, "output": "hi\n"}
    assert await logs_of(hf, result) == ["shell made; failed: tool_hooks.post (exit code 1)"]


@pytest.mark.covers("AT-237")
@pytest.mark.parametrize(
    ("stage", "made"), [("", False), ('tool_hooks.pre="true"', True), ('tool_hooks.pre=""', True)]
)
async def test_the_stages_hooks_beat_the_graphs(
    hf: Holdfast, tmp_path: Path, provider: Provider, stage: str, made: bool
) -> None:
    touched = tmp_path / "touched"
    provider.says(calls("shell", command=f"touch {touched}"), Answer("done"))
    text = line(f"a [prompt=x{', ' + stage if stage else ''}];", "a", graph='goal=g, tool_hooks.pre="false"')
    await run(hf, text, tmp_path / "logs", backend=backend(provider, kits=["shell"]))
    assert touched.exists() == made


@pytest.mark.covers("AT-239")
async def test_a_pre_hook_without_an_end_says_no(hf: Holdfast, tmp_path: Path, provider: Provider) -> None:
    provider.says(calls("shell", command="echo hi"), Answer("done"))
    text = line('a [tool_hooks.pre="sleep 60", tool_hooks.timeout=100ms];', "a")
    await run(hf, text, tmp_path, backend=backend(provider, kits=["shell"]))
    assert "it took longer than 0.1 s" in results(provider)[0]


async def refused_run(hf: Holdfast, text: str, logs: Path, asks: Any) -> Result:
    """On a worker that runs no commands of documents."""
    setup = PipelineSetup(backend=asks, allow_tool=lambda visit: "commands are off here")
    pipeline = prepare_pipeline(text, setup).pipeline
    program = program_for(pipeline, setup)
    hf.register(program)
    service = await hf.service()
    row, _ = await service.create(program, input_of(pipeline, logs=logs))
    return await advance(service, program, row.id)


@pytest.mark.covers("ATTRACTOR-HANDLER-07")
async def test_where_commands_of_documents_are_off_so_are_tools_and_hooks(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    provider.says(Answer("done"))
    ended = await refused_run(hf, line("a;", "a"), tmp_path, backend(provider, kits=["shell", "files"]))
    assert (ended.completed, offered(provider)) == (True, [])

    @tool(effect="read")
    async def look() -> str:
        """Looks."""
        return "nothing"

    touched = tmp_path / "touched"
    hooked = line(f'a [tool_hooks.pre="touch {touched}"];', "a")
    failed = await refused_run(hf, hooked, tmp_path / "hooked", backend(provider, tools=[look]))
    assert failed.error is not None
    assert "commands are off here" in failed.error.message
    assert (touched.exists(), len(provider.seen)) == (False, 1)


@pytest.mark.covers("AT-196")
async def test_a_ranking_needs_no_tools(hf: Holdfast, tmp_path: Path, provider: Provider) -> None:
    provider.says(*(Answer(each) for each in ("one", "two", "y")))
    text = dot(
        "fan [shape=component]; x; y; best [shape=tripleoctagon, prompt=Best];",
        "start -> fan; fan -> x -> best; fan -> y -> best; best -> done",
    )
    await run(hf, text, tmp_path, backend=backend(provider, kits=["shell"]))
    assert ["tools" in seen.json for seen in provider.seen] == [True, True, False]
