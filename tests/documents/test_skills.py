"""Skills of documents: pinned when a run starts, and handed to its nodes as pinned after a yank or a loss."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.agents.scripted import Scripted, tool_call
from holdfast.agents.tools import tool
from holdfast.app.flow import advance
from holdfast.documents import functions
from holdfast.documents.connections import Connections, ConnectionSettings
from holdfast.documents.program import default_site, program_for
from holdfast.frontends.document.compile import compile_document
from holdfast.frontends.document.read import read_text
from holdfast.types.status import Effect
from tests.agents.provider import Answer, a_provider
from tests.api.conftest import Server, server
from tests.api.documents import YAML, working
from tests.cli.conftest import Cli
from tests.documents.run import answer, flow_text, graph, site_of

pytestmark = pytest.mark.anyio

__all__ = ["server", "working"]

LETTERS = """
name = "letters"
version = "{}"
instructions = "{}"
"""
FUNCTIONS = """
def write(ctx):
    return ctx.skills["letters"].instructions
"""


def asking(node: str) -> str:
    return flow_text(
        f"""
        {{id: start, type: start}}
        {{id: ask, type: checkpoint, config: {{prompt: Go?, options: [yes]}}}}
        {node}
        {{id: done, type: end}}
        """,
        "start -> ask\nask:yes -> it -> done",
    )


def lose(place: str, name: str) -> None:
    """Somebody deletes the row of the registry."""

    async def drop() -> bool:
        async with Holdfast(place) as hf:
            return await (await hf.open()).drop_document("default", "skill", name)

    assert asyncio.run(drop())


@pytest.mark.covers("PLATFORM-SKILL-01", "SK-3", "SK-4", "SK-5")
@pytest.mark.parametrize("lost", [False, True], ids=["yanked", "lost"])
def test_resumed_run_of_a_document_uses_the_skill_that_it_was_pinned_to(
    cli: Cli, tmp_path: Path, lost: bool
) -> None:
    (tmp_path / "letters.toml").write_text(LETTERS.format("1.0.0", "Dear customer."))
    (tmp_path / "newer.toml").write_text(LETTERS.format("1.1.0", "Hello."))
    (tmp_path / "letters_code.py").write_text(FUNCTIONS)
    (tmp_path / "sample.yaml").write_text(asking("{id: it, type: python, config: {function: write}}"))
    assert cli("skills", "publish", "letters.toml").code == 0
    assert cli("deploy", "sample.yaml", "--functions", "letters_code.py").code == 0
    made = cli("deployments", "create", "post", "--flow", "sample", "--skill", "letters@^1")
    assert made.code == 0, made.err

    given = ("--functions", "letters_code.py", "--deployment", "post", "--json")
    early = cli("run", "sample", *given)
    assert early.code == 3, early.err
    assert cli("skills", "publish", "newer.toml").code == 0
    assert cli("skills", "yank", "letters@1.0.0", "--reason", "too stiff").code == 0
    if lost:
        lose(f"sqlite:{next(tmp_path.rglob('*.db'))}", "letters@1.0.0")
    late = cli("run", "sample", *given)

    said: dict[str, Any] = {}
    for name, run in (("early", early), ("late", late)):
        [hold] = run.json["holds"]
        assert cli("answer", hold["id"], "yes").code == 0
        ended = cli("resume", run.json["id"], "--functions", "letters_code.py", "--json")
        assert ended.code == 0, ended.err
        said[name] = ended.json["state"]["it"]
    assert said == {"early": "Dear customer.", "late": "Hello."}


@pytest.mark.covers("PLATFORM-SKILL-01", "SK-1", "SK-3")
@pytest.mark.parametrize("lost", [False, True], ids=["yanked", "lost"])
async def test_model_of_a_document_over_http_is_given_the_pinned_instructions(
    working: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    file = tmp_path / "connections.toml"
    monkeypatch.setenv("HOLDFAST_CONNECTIONS", str(file))
    text = asking("{id: it, type: llm, config: {connection: gpt, prompt: Write, system: Be brief.}}")
    async with a_provider() as provider:
        provider.says(Answer("Done."))
        file.write_text(
            f'[connections.gpt]\nkind = "model"\nmodel = "m-1"\nbase_url = "{provider.url}/v1"\n'
            "internal = true\n"
        )
        await working.json("PUT", "/v1/skills/letters/1.0.0", json={"instructions": "Dear customer."})
        await working.json("POST", "/v1/flows", 201, content=text.encode(), headers=YAML)
        settings = {"flow": "sample", "skills": ["letters@^1"]}
        await working.json("PUT", "/v1/deployments/post", json=settings)
        body = {"flow": "sample", "deployment": "post", "wait": 60}
        run = await working.json("POST", "/v1/runs", 201, json=body)
        await working.json("PUT", "/v1/skills/letters/1.1.0", json={"instructions": "Hello."})
        await working.json("POST", "/v1/skills/letters/1.0.0/yank", json={"reason": "too stiff"})
        if lost:
            assert await (await working.hf.open()).drop_document("default", "skill", "letters@1.0.0")

        [hold] = (await working.json("GET", "/v1/holds"))["items"]
        shown = await working.json("GET", f"/v1/holds/{hold['id']}")
        assert [pin["version"] for pin in shown["context"]["resolved_skills"]] == ["1.0.0"]
        await working.json("POST", f"/v1/holds/{hold['id']}/resolve", json={"decision": "yes"})
        ended = await working.json("GET", f"/v1/runs/{run['id']}/result?wait=60")

        assert ended["status"] == "completed", (ended, provider.seen)
        [seen] = provider.seen
        assert seen.json["messages"][0]["content"] == "Be brief.\n\n# letters\n\nDear customer."


@tool(effect="read")
def look_up(order: str) -> str:
    """Looks an order up."""
    return f"{order} was delivered"


@tool
def pay(order: str) -> str:
    """Pays."""
    return order


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_tools", {"look_up": look_up, "pay": pay})


async def test_agent_of_a_document_has_a_tool_of_its_toolkit_only_where_a_skill_provides_it(
    hf: Holdfast, tools: None
) -> None:
    model = Scripted(tool_call("look_up", order="A17"), "Delivered.")
    site = default_site(Connections(ConnectionSettings(tools=("look_up", "pay")), models={"gpt": model}))
    config = "{connection: gpt, instructions: Answer, toolkit: [look_up, pay], approve: [look_up]}"
    text = asking(f"{{id: it, type: agent, config: {config}}}")
    program = program_for(compile_document(read_text(text, "yaml"), site), site)
    hf.register(program)
    await (await hf.skills()).publish("orders", "1.0.0", instructions="Look first.", tools=["look_up"])
    await hf.deploy("desk", "sample", skills=["orders"])
    service = await hf.service()

    for deployment, offered in (("desk", ["look_up"]), (None, [])):
        model.requests.clear()
        row, _ = await service.create(program, {}, deployment=deployment)
        waiting = await advance(service, program, row.id, created=True)
        asked = await answer(hf, waiting, "yes")
        assert [spec.name for spec in model.requests[0].tools] == offered
        if deployment:
            ended = await answer(hf, asked, "approve")
            assert ended.state["it"] == "Delivered."


def test_tool_node_has_the_effect_that_its_tool_declares(tools: None) -> None:
    known = {"look_up": look_up, "pay": pay}
    for config, effect in (
        ("{tool: look_up, args: {order: a}}", Effect.read),
        ("{tool: look_up, args: {order: a}, effect: external}", Effect.external),
        ("{tool: pay, args: {order: a}}", Effect.external),
    ):
        spec = graph(asking(f"{{id: it, type: tool, config: {config}}}"), **_with(known))
        [node] = [node for node in spec.nodes if node.id == "it"]
        assert node.effect is effect


def _with(tools: dict[str, Any]) -> dict[str, Any]:
    return {"tools": tools, "handlers": site_of(settings=ConnectionSettings()).handlers}
