"""A worker that lacks a function of a document leaves its runs to others."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.app.worker import Worker
from holdfast.cli.document_run import compile_file, document_dialect
from holdfast.documents import functions as registry
from holdfast.documents.deploy import DeployedFlows, SentDocument
from holdfast.documents.functions import document_function
from holdfast.documents.program import DocumentDialect, needs_of, program_for
from holdfast.errors import VersionMismatchError
from holdfast.frontends.document.available_names import FoundFlow
from holdfast.model.graph import GraphSpec
from holdfast.runs.unserved import find_unserved
from holdfast.runs.worker.served_versions import ServedVersions
from tests.documents.rule_examples import GOOD, MAP, flow
from tests.documents.run import compiled, graph, site_of

NEEDS = flow("{id: m, type: python, config: {function: known}}")
FUNCTIONS = {"known": lambda: 1}


def dialects(hf: Holdfast, functions: dict[str, object]) -> None:
    """As `holdfast worker --functions` does."""
    hf.dialects = {**hf.dialects, "canvas": DocumentDialect(site_of(functions))}  # type: ignore[arg-type]


@pytest.mark.covers("CV-34")
async def test_worker_without_a_function_claims_no_run_of_that_version_and_runs_others(
    anyio_backend: str,
) -> None:
    async with Holdfast("memory:") as hf:
        dialects(hf, {})
        service = await hf.service()
        needs = program_for(compiled(NEEDS, FUNCTIONS), site_of(FUNCTIONS))
        plain = program_for(compiled(GOOD), site_of())
        waiting, _ = await service.create(needs, {})
        first, _ = await service.create(plain, {})
        # Only what is stored: this process has met neither program.
        service.runtime.programs.clear()
        worker = Worker(on=hf)
        await worker.run_until_idle()
        # Never claimed: not even its status has changed.
        assert (await service.get(waiting.id)).status == "pending"
        assert (await service.get(first.id)).status == "completed"
        await worker.close()


@pytest.mark.covers("CV-34")
async def test_run_is_claimed_when_its_function_is_registered_later(anyio_backend: str) -> None:
    async with Holdfast("memory:") as hf:
        functions: dict[str, object] = {}
        dialects(hf, functions)
        service = await hf.service()
        needs = program_for(compiled(NEEDS, FUNCTIONS), site_of(FUNCTIONS))
        row, _ = await service.create(needs, {})
        service.runtime.programs.clear()
        served = ServedVersions(service.runtime)
        assert needs.version not in await served.names()
        with pytest.raises(VersionMismatchError, match="known"):
            await service.runtime.find_program(needs.version, "sample")
        dialects(hf, dict(FUNCTIONS))
        service.runtime.dialects = hf.dialects
        worker = Worker(on=hf)
        await worker.run_until_idle()
        assert (await service.get(row.id)).status == "completed"
        await worker.close()


@pytest.mark.covers("CV-34")
async def test_deploying_warns_only_while_no_live_worker_has_what_the_document_names(
    anyio_backend: str,
) -> None:
    async with Holdfast("memory:") as hf:
        dialects(hf, dict(FUNCTIONS))
        deployed = DeployedFlows(await hf.service(), "default")
        sent = SentDocument(raw=NEEDS.encode(), format="yaml")
        [missing] = (await deployed.compile(sent)).problems
        assert (missing.rule, missing.severity, missing.node) == ("function-missing", "warning", "m")
        assert "--functions" in (missing.fix or "")
        async with Worker(on=hf):
            assert (await deployed.compile(sent)).problems == []
            guard = NEEDS.replace("python, config: {function: known}", "guardrail, config: {check: other}")
            found = await deployed.compile(SentDocument(raw=guard.encode(), format="yaml"))
            assert [each.rule for each in found.problems] == ["check-missing"]
        assert len((await deployed.compile(sent)).problems) == 1


@pytest.mark.covers("CV-34")
async def test_runs_that_wait_for_a_function_are_shown_as_unserved(anyio_backend: str) -> None:
    async with Holdfast("memory:") as hf:
        dialects(hf, {})
        service = await hf.service()
        needs = program_for(compiled(NEEDS, FUNCTIONS), site_of(FUNCTIONS))
        await service.create(needs, {})
        service.runtime.programs.clear()
        worker = Worker(on=hf)
        await worker.run_until_idle()
        async with worker:
            [row] = await service.store.workers()
            assert row.lacking == (needs.version,)
            figures = await service.store.fleet_figures(ages=())
            assert [each.version for each in find_unserved(figures, [row]).versions] == [needs.version]
            able = msgspec.structs.replace(row, lacking=())
            assert find_unserved(figures, [row, able]).versions == []


def test_needs_are_those_of_maps_and_sub_flows_too() -> None:
    inner = graph(NEEDS.replace("name: sample", "name: inner"), FUNCTIONS)
    nodes = (MAP % ", parent: m").replace(
        "{id: i, type: set, parent: m, config: {values: {y: 1}}}",
        "{id: i, type: guardrail, parent: m, config: {check: pii}}\n"
        "{id: s, type: subflow, config: {flow: inner}}",
    )
    spec = graph(flow(nodes, "a -> m -> s -> z"), {"pii": lambda: 1}, flows=lambda *_: found(inner))
    assert needs_of(spec) == {"check:pii", "function:known"}
    assert needs_of(graph(GOOD)) == frozenset()


def found(spec: GraphSpec) -> FoundFlow:
    return FoundFlow(version="canvas-1", spec=spec)


def test_registered_functions_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.documents.functions._registered", {})

    @document_function
    def score() -> int:
        return 1

    assert {"function:score", "check:score"} <= DocumentDialect().offers()


MODULE = """
from holdfast import tool
from holdfast.documents.functions import document_function, document_tool


@document_tool
@tool
def search(text: str) -> str:
    \'\'\'Finds it.\'\'\'
    return text


@document_function(name="my-score")
def _score() -> int:
    return 1
"""
TOOLS = flow(
    "{id: m, type: python, config: {function: my-score}}\n{id: n, type: tool, config: {tool: search}}",
    "a -> m -> n -> z",
)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A module with a tool that the operator lists; nothing of it is registered yet."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_tools", {})
    settings = tmp_path / "connections.toml"
    settings.write_text('tools = ["search"]\n[connections.gpt]\nkind = "model"\nmodel = "m"\n')
    monkeypatch.setenv("HOLDFAST_CONNECTIONS", str(settings))
    # A name of its own: a module is loaded once in a process.
    module = tmp_path / f"registers_{uuid4().hex}.py"
    module.write_text(MODULE)
    return module


def test_tools_and_renamed_functions_of_a_module_are_known_to_check_and_worker(
    listed: Path, tmp_path: Path
) -> None:
    document = tmp_path / "sample.yaml"
    document.write_text(TOOLS)
    assert compile_file(str(document), [str(listed)]).problems == []
    [dialect] = document_dialect([str(listed)]).values()
    assert {"tool:search", "function:my-score"} <= dialect.offers()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("node", "field"),
    [
        ("tool, config: {tool: %s, args: {text: x}}", "tool"),
        ("agent, config: {connection: gpt, instructions: Go, tools: [%s]}", "tools"),
        ("agent, config: {connection: gpt, instructions: Go, toolkit: [%s]}", "toolkit"),
    ],
)
async def test_deploying_warns_of_a_listed_tool_that_no_worker_has_and_refuses_others(
    anyio_backend: str, listed: Path, node: str, field: str
) -> None:
    async with Holdfast("memory:") as hf:
        deployed = DeployedFlows(await hf.service(), "default")

        async def problems_of(tool: str) -> list[tuple[str, str, str | None]]:
            raw = flow(f"{{id: m, type: {node % tool}}}").encode()
            found = (await deployed.compile(SentDocument(raw=raw, format="yaml"))).problems
            return [(each.rule, each.severity.value, each.field) for each in found]

        assert await problems_of("search") == [("tool-missing", "warning", field)]
        assert [each[1] for each in await problems_of("other") if each[0] != "tool-missing"] == ["error"]
        hf.dialects = {**hf.dialects, **document_dialect([str(listed)])}
        async with Worker(on=hf):
            assert await problems_of("search") == []


@pytest.mark.covers("CV-34")
@pytest.mark.parametrize("config", ["{}", '{"": ""}', '{function: ""}', '{function: " "}'])
async def test_node_that_names_no_function_is_a_problem_of_the_document(
    anyio_backend: str, config: str
) -> None:
    async with Holdfast("memory:") as hf:
        deployed = DeployedFlows(await hf.service(), "default")
        nameless = NEEDS.replace("python, config: {function: known}", f"python, config: {config}")
        found = await deployed.compile(SentDocument(raw=nameless.encode(), format="yaml"))
        wrong = [each for each in found.problems if each.severity == "error"]
        assert [each.node for each in wrong][:1] == ["m"], wrong
        assert all(each.fix for each in wrong)
