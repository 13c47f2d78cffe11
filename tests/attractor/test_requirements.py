"""A run is advanced only where its backend, handlers, providers and tools are, never by others instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.attractor import CommandBackend, Runner
from holdfast.attractor.backends.model import ModelBackend
from holdfast.attractor.backends.select import backend_name, backend_of
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.prepare import input_of, prepare_pipeline
from holdfast.attractor.program import PipelineDialect, PipelineSetup
from holdfast.attractor.providers import Providers
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.worker_requirements import offers_of
from holdfast.cli.doctor.fleet import runs_without_means
from holdfast.errors import PipelineInvalidError, RequirementsMissingError
from holdfast.frontends.dot.lower import DIALECT
from holdfast.model.fingerprint import requirements_in
from holdfast.runs.run_view import shown_run
from holdfast.runs.worker.worker import RunWorker
from holdfast.store.rows import RunFilter, RunRow
from holdfast.types.status import ENDED
from tests.agents.provider import Answer, Provider
from tests.attractor.models import KEYS, backend, nearby, providers
from tests.attractor.repositories import made
from tests.attractor.run import dot, line
from tests.cli.conftest import Cli

__all__ = ["nearby"]
pytestmark = pytest.mark.anyio

ASKED: list[str] = []


def first(prompt: str) -> str:
    ASKED.append(f"first {prompt}")
    return "of first"


def second(prompt: str) -> str:
    ASKED.append(f"second {prompt}")
    return "of second"


class Deploys:
    def execute(self, node: Any, context: Any, graph: Any, logs_root: Path) -> StageOutcome:
        ASKED.append("deployed")
        return StageOutcome(notes="deployed")


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    ASKED.clear()


FIRST = Runner(backend=first).pipeline_setup
SECOND = Runner(backend=second).pipeline_setup
DEPLOYS = PipelineSetup(registry=HandlerRegistry({"deploy": Deploys()}))
PROMPTS = line('a [prompt="one"]; b [prompt="two"];', "a", "b")


async def created(hf: Holdfast, source: str, setup: PipelineSetup, logs: Path) -> RunRow:
    service = await hf.service()
    ready = prepare_pipeline(source, setup)
    given = input_of(ready.pipeline, backend=setup.asks_for, logs=logs)
    row, _ = await service.create(ready.program, given)
    return row


async def worked(folder: Path, setup: PipelineSetup, run: str) -> RunRow:
    """As another process with that setup would see and advance it."""
    async with Holdfast(f"sqlite:{folder / 'h.db'}") as other:
        other.dialects = {**other.dialects, DIALECT: PipelineDialect(setup)}
        await Worker(on=other).run_until_idle()
        return await (await other.service()).get(run)


@pytest.fixture
async def shared(tmp_path: Path, anyio_backend: str) -> Holdfast:
    return Holdfast(f"sqlite:{tmp_path / 'h.db'}")


@pytest.mark.covers("CP2-R5")
@pytest.mark.parametrize(
    ("source", "creator", "lacks", "needs"),
    [
        (PROMPTS, FIRST, SECOND, ["backend:function:tests.attractor.test_requirements.first"]),
        (PROMPTS, FIRST, PipelineSetup(), ["backend:function:tests.attractor.test_requirements.first"]),
        (PROMPTS, PipelineSetup(), PipelineSetup(), ["backend:default"]),
        (line("a [type=deploy];", "a"), DEPLOYS, PipelineSetup(), ["handler:deploy"]),
    ],
)
async def test_worker_without_the_means_leaves_a_run_to_others(
    shared: Holdfast,
    tmp_path: Path,
    source: str,
    creator: PipelineSetup,
    lacks: PipelineSetup,
    needs: list[str],
) -> None:
    async with shared as hf:
        row = await created(hf, source, creator, tmp_path / "logs")
        stored = await (await hf.service()).store.flow(row.flow, row.version)
        assert stored is not None
        assert sorted(requirements_in(stored.graph)) == needs

        left = await worked(tmp_path, lacks, row.id)
        assert (left.status, left.head, left.term) == ("pending", row.head, 0)
        assert not ASKED

        able = FIRST if needs == ["backend:default"] else creator
        assert (await worked(tmp_path, able, row.id)).status == "completed"
        assert (["deployed"] if creator is DEPLOYS else ["first one", "first two"]) == ASKED


async def test_run_that_no_live_worker_can_serve_says_what_it_waits_for(
    shared: Holdfast, tmp_path: Path
) -> None:
    async with shared as hf:
        row = await created(hf, line("a [type=deploy];", "a"), DEPLOYS, tmp_path / "logs")
        store = (await hf.service()).store
        assert (await shown_run(store, row)).label == "queued"  # no worker is alive
        async with Worker(on=hf):
            shown = await shown_run(store, await (await hf.service()).get(row.id))
            assert (shown.status, shown.missing) == ("pending", ("handler:deploy",))
            assert shown.label == "waiting for a worker with handler:deploy"
            found = await runs_without_means(await hf.service(), [shown])
            assert found.about == ["1 for handler:deploy"]


MANAGED = line('m [shape=house, "stack.child_dotfile"="child.dot", "manager.poll_interval"="10ms"];', "m")


@pytest.mark.parametrize("simulate", [False, True])
async def test_needs_of_a_child_pipeline_are_those_of_its_manager_and_its_backend_the_same(
    shared: Holdfast, tmp_path: Path, simulate: bool
) -> None:
    (tmp_path / "child.dot").write_text(line('c [prompt="of the child"]; d [type=deploy];', "c", "d"))
    (tmp_path / "x.dot").write_text(MANAGED)
    creator = PipelineSetup(backend=backend_of(first), registry=DEPLOYS.registry, simulate=simulate)
    # The default of this worker is another one.
    named = {} if simulate else {backend_name(backend_of(first)): backend_of(first)}
    able = PipelineSetup(backend=backend_of(second), backends=named, registry=DEPLOYS.registry)
    async with shared as hf:
        service = await hf.service()
        ready = prepare_pipeline(tmp_path / "x.dot", creator)
        given = input_of(ready.pipeline, backend=creator.asks_for, logs=tmp_path / "logs")
        row, _ = await service.create(ready.program, given)
        stored = await service.store.flow(row.flow, row.version)
        assert stored is not None
        function = [] if simulate else ["backend:function:tests.attractor.test_requirements.first"]
        assert sorted(requirements_in(stored.graph)) == [*function, "handler:deploy"]
        assert (await worked(tmp_path, SECOND, row.id)).status == "pending"
        assert (await worked(tmp_path, able, row.id)).status == "completed"
    assert [*([] if simulate else ["first of the child"]), "deployed"] == ASKED


@pytest.mark.covers("CP2-R3")
async def test_model_and_provider_of_a_stage_are_those_of_the_time_when_the_run_was_created(
    shared: Holdfast, tmp_path: Path, nearby: Provider
) -> None:
    creator = PipelineSetup(backend=backend(nearby))
    elsewhere = msgspec.structs.replace(providers(nearby).settings, model="m-2", provider="far")
    others = PipelineSetup(backend=ModelBackend(Providers(elsewhere, environment=KEYS)))
    nearby.says(Answer("one"), Answer("two"))
    async with shared as hf:
        row = await created(hf, PROMPTS, creator, tmp_path / "logs")
        stored = await (await hf.service()).store.flow(row.flow, row.version)
        assert stored is not None
        assert sorted(requirements_in(stored.graph)) == ["backend:model", "provider:near"]
        assert (await worked(tmp_path, PipelineSetup(), row.id)).status == "pending"
        assert (await worked(tmp_path, others, row.id)).status == "completed"
    assert [json.loads(seen.body)["model"] for seen in nearby.seen] == ["m-1", "m-1"]
    assert {seen.path for seen in nearby.seen} == {"/v1/chat/completions"}


@pytest.mark.covers("CP2-R8")
async def test_means_that_are_lost_during_a_run_are_no_outcome(
    shared: Holdfast, tmp_path: Path, nearby: Provider
) -> None:
    """The key of the provider goes away between two stages."""

    class Keys(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            return default if nearby.seen else "sk-1"

    chosen = providers(nearby)
    chosen._environment = Keys()
    losing = PipelineSetup(backend=ModelBackend(chosen))
    nearby.says(Answer("one"), Answer("two"))
    source = dot(
        'a [prompt="one"]; b [prompt="two", max_retries=3]; c [prompt="three"];',
        'start -> a -> b -> done; b -> c [condition="outcome=fail"]; c -> done',
    )
    async with shared as hf:
        row = await created(hf, source, losing, tmp_path / "logs")
        left = await worked(tmp_path, losing, row.id)
        assert left.status == "resumable"
        events = [event.type for event in await (await hf.service()).events(row.id, limit=1000)]
        assert "node.failed" not in events
        assert "node.retried" not in events
        assert events.count("node.completed") == 2  # start and a
        assert (await worked(tmp_path, PipelineSetup(backend=backend(nearby)), row.id)).status == "completed"
    assert len(nearby.seen) == 2


@pytest.mark.covers("CP2-R4")
async def test_type_that_was_not_registered_keeps_the_handler_of_its_shape(
    shared: Holdfast, tmp_path: Path
) -> None:
    async with shared as hf:
        service = await hf.service()
        setup = PipelineSetup(simulate=True)
        ready = prepare_pipeline(line("a [type=deploy];", "a"), setup)
        assert "type_known" in [each.rule for each in ready.diagnostics]
        given = input_of(ready.pipeline, backend=setup.asks_for, logs=tmp_path / "logs")
        row, _ = await service.create(ready.program, given)
        assert (await worked(tmp_path, DEPLOYS, row.id)).status == "completed"
    assert not ASKED


async def test_node_that_runs_a_pipeline_without_its_means_fails_as_with_any_error(
    shared: Holdfast, tmp_path: Path
) -> None:
    async with shared as hf:
        row = await created(hf, PROMPTS, FIRST, tmp_path / "logs")
        flow = Flow("outer", effect="read")

        @flow.node
        async def inner(s: dict) -> dict:
            await Runner(hf).resume(row.id)
            return {}

        result = await flow.run(on=hf)
        assert (result.status, result.error and result.error.type) == ("failed", "RequirementsMissingError")


async def test_worker_whose_models_cannot_be_read_does_everything_else(
    shared: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow("plain", effect="pure")

    @flow.node
    async def work(s: dict) -> dict:
        return {"done": True}

    async with shared as hf:
        row = await created(hf, PROMPTS, FIRST, tmp_path / "logs")
        service = await hf.service()
        other, _ = await service.create(flow.program(), {})
        (tmp_path / "models.toml").write_text("model = ")
        monkeypatch.setenv("HOLDFAST_MODELS", str(tmp_path / "models.toml"))
        await Worker(flow, on=hf).run_until_idle()
        assert (await service.get(other.id)).status == "completed"
        assert (await service.get(row.id)).status == "pending"


@pytest.mark.covers("CP2-R9")
async def test_simulation_answers_only_where_it_was_asked_for(shared: Holdfast, tmp_path: Path) -> None:
    async with shared as hf:
        simulated = await created(hf, PROMPTS, PipelineSetup(simulate=True), tmp_path / "s")
        real = await created(hf, PROMPTS, FIRST, tmp_path / "r")
        assert (await worked(tmp_path, PipelineSetup(), simulated.id)).status == "completed"
        assert (await worked(tmp_path, PipelineSetup(simulate=True), real.id)).status == "pending"
        with pytest.raises(RequirementsMissingError, match=r"backend:function:tests\S+\.first"):
            await Runner(hf).resume(real.id)
        assert (await (await hf.service()).get(real.id)).head == real.head


def test_offers_never_contain_a_command_or_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_BACKEND", "cli:agent --token sk-secret {prompt}")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    found = " ".join(sorted(offers_of(PipelineSetup())))
    assert "backend:command:" in found
    assert "provider:openai" in found
    assert "sk-" not in found
    assert "agent" not in found


@pytest.mark.covers("CP2-R7")
def test_resume_without_the_means_exits_3_and_writes_nothing(cli: Cli) -> None:
    Path("x.dot").write_text(PROMPTS)
    run = cli("run", "x.dot", "--backend", "quick=cli:cat {prompt_file}", "--detach", "--json").json["id"]
    before = cli("show", run, "--json").json
    said = cli("resume", run)
    assert (said.code, "backend:quick" in said.err) == (3, True)
    other = cli("resume", run, "--backend", "cli:cat {prompt_file}")
    assert (other.code, "backend:quick" in other.err) == (3, True)
    assert cli("show", run, "--json").json == before
    assert cli("worker", "--until-idle").code == 0
    assert cli("show", run, "--json").json["run"]["status"] == "pending"
    assert cli("worker", "--until-idle", "--backend", "quick=cli:cat {prompt_file}").code == 0
    assert cli("show", run, "--json").json["run"]["status"] == "completed"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["cli:a", "cli:b"], "more than once without a name"),
        (["x=cli:a", "x=cli:b"], "same name"),
    ],
)
def test_backends_of_a_worker_that_cannot_be_told_apart_are_refused(
    cli: Cli, given: list[str], why: str
) -> None:
    said = cli("worker", "--until-idle", *(word for each in given for word in ("--backend", each)))
    assert (said.code, why in said.err) == (2, True)


async def _managed_run(hf: Holdfast, folder: Path, source: str, logs: Path, **context: Any) -> RunRow:
    """Created from a file, simulated."""
    (folder / "x.dot").write_text(source)
    setup = PipelineSetup(simulate=True)
    ready = prepare_pipeline(folder / "x.dot", setup)
    given = input_of(ready.pipeline, backend=setup.asks_for, logs=logs, context=context)
    return (await (await hf.service()).create(ready.program, given))[0]


@pytest.mark.covers("CP2-R10")
async def test_files_of_a_pipeline_are_those_of_the_time_when_its_run_was_created(
    shared: Holdfast, tmp_path: Path
) -> None:
    home, parts, logs = tmp_path / "home", tmp_path / "home/parts", tmp_path / "logs"
    parts.mkdir(parents=True)
    (parts / "words.md").write_text("as it was")
    (parts / "leaf.dot").write_text(line('leaf [prompt="@words.md"];', "leaf"))
    (parts / "child.dot").write_text(
        line('c [shape=house, "stack.child_dotfile"="leaf.dot", "manager.poll_interval"="10ms"];', "c")
    )
    # A manager in an included file names its child relative to that file.
    (home / "sub").mkdir()
    inner = 'n [shape=house, "stack.child_dotfile"="../parts/leaf.dot", "manager.poll_interval"="10ms"];'
    (home / "sub/inner.dot").write_text(line(inner, "n"))
    source = line(
        'm [shape=house, "stack.child_dotfile"="parts/child.dot", "manager.poll_interval"="10ms"]; '
        'i [subgraph_file="sub/inner.dot"]; p [prompt="@parts/words.md"];', "m", "i", "p",
    )  # fmt: skip
    async with shared as hf:
        row = await _managed_run(hf, home, source, logs)
        stored = await (await hf.service()).store.flow(row.flow, row.version)
        assert stored is not None
        assert b"as it was" in stored.graph
        home.rename(tmp_path / "gone")
        assert (await worked(tmp_path, PipelineSetup(), row.id)).status == "completed"
    prompts = {str(each.relative_to(logs)): each.read_text() for each in logs.rglob("prompt.md")}
    assert prompts == {
        "m/child-1/c/child-1/leaf/prompt.md": "as it was",
        "i__n/child-1/leaf/prompt.md": "as it was",
        "p/prompt.md": "as it was",
    }


@pytest.mark.covers("CP2-R10")
async def test_child_that_is_read_late_is_waited_for_where_it_is_missing(
    shared: Holdfast, tmp_path: Path
) -> None:
    """The name comes from the context."""
    child = tmp_path / "chosen.dot"
    source = line(
        'm [shape=house, "stack.child_resolve"=late, "manager.poll_interval"="10ms", max_retries=2];', "m"
    )
    async with shared as hf:
        service = await hf.service()
        row = await _managed_run(
            hf, tmp_path, source, tmp_path / "logs", **{"stack.child_dotfile": "chosen.dot"}
        )
        assert (await worked(tmp_path, PipelineSetup(), row.id)).status == "resumable"
        events = [event.type for event in await service.events(row.id, limit=1000)]
        assert "node.failed" not in events
        assert "node.retried" not in events
        with pytest.raises(RequirementsMissingError, match=r"file:chosen\.dot") as refused:
            await Runner(hf).resume(row.id)
        assert refused.value.hint == "Put the file there; the run continues then."
        # Another run of the same version is served meanwhile.
        (tmp_path / "other.dot").write_text(line("c;", "c"))
        other = await _managed_run(
            hf, tmp_path, source, tmp_path / "more", **{"stack.child_dotfile": "other.dot"}
        )
        assert other.version == row.version
        assert (await worked(tmp_path, PipelineSetup(), other.id)).status == "completed"
        assert (await service.get(row.id)).status == "resumable"
        child.write_text(line("c;", "c"))
        assert (await Runner(hf).resume(row.id)).succeeded


async def test_words_of_a_child_that_cannot_be_resolved_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.dot").write_text(line('m [shape=house, "stack.child_resolve"=never];', "m"))
    with pytest.raises(PipelineInvalidError, match=r"stack\.child_resolve is never"):
        prepare_pipeline(tmp_path / "x.dot", PipelineSetup())


_TOOL = "shape=parallelogram, tool_command"
INCLUDED = dot(f"""a [{_TOOL}="exit 3"]; b [{_TOOL}="true"];""", "start -> a -> b -> done")


BAD = "bad; bad -> done;"


@pytest.mark.covers("CP2-R11")
@pytest.mark.parametrize(
    ("edges", "status"),
    [
        # A condition on a failure.
        (f'{BAD} i -> good [condition="outcome=success"]; i -> bad [condition="outcome=fail"]', "completed"),
        # A diamond.
        (f'{BAD} d [shape=diamond]; i -> d -> bad; d -> good [condition="outcome=success"]', "completed"),
        # Nothing asks: the stage inside ends the run.
        ("i -> good", "failed"),
    ],
)
async def test_failure_inside_an_included_pipeline_asks_the_edges_of_the_stage_that_includes_it(
    shared: Holdfast, tmp_path: Path, edges: str, status: str
) -> None:
    (tmp_path / "inner.dot").write_text(INCLUDED)
    outer = dot('i [subgraph_file="inner.dot"]; good;', f"start -> i; good -> done; {edges}")
    async with shared as hf:
        service = await hf.service()
        row = await _managed_run(hf, tmp_path, outer, tmp_path / "logs")
        assert (await worked(tmp_path, PipelineSetup(), row.id)).status == status
        ended = [event.node for event in await service.events(row.id, limit=1000) if event.node]
        assert ("bad" in ended, "good" in ended, "i__b" in ended) == (status == "completed", False, False)


@pytest.mark.covers("CP2-R11")
async def test_failure_inside_nested_includes_and_branches_is_answered_where_it_belongs(
    shared: Holdfast, tmp_path: Path
) -> None:
    """Of an include in an include the outer edges are asked; a branch's failure belongs to its fan-in, and a
    fail edge inside comes first."""
    (tmp_path / "inner.dot").write_text(INCLUDED)
    (tmp_path / "middle.dot").write_text(line('n [subgraph_file="inner.dot"];', "n"))
    fan = dot(
        f'f [shape=component]; x [{_TOOL}="exit 1"]; y; j [shape=tripleoctagon]; '
        f'own [{_TOOL}="exit 1"]; mend;',
        'start -> f; f -> x -> j; f -> y -> j; j -> own; own -> mend [condition="outcome=fail"]; '
        'mend -> done; own -> done [condition="outcome=success"]',
    )
    (tmp_path / "fan.dot").write_text(fan)
    outer = dot(
        'm [subgraph_file="middle.dot"]; g [subgraph_file="fan.dot"]; bad;',
        'start -> m; m -> g [condition="outcome=fail"]; m -> done [condition="outcome=success"]; '
        'g -> done [condition="outcome=success"]; g -> bad [condition="outcome=fail"]; bad -> done',
    )
    async with shared as hf:
        service = await hf.service()
        row = await _managed_run(hf, tmp_path, outer, tmp_path / "logs")
        assert (await worked(tmp_path, PipelineSetup(), row.id)).status == "completed"
        ended = [event.node for event in await service.events(row.id, limit=1000) if event.node]
        assert "m__n__a" in ended
        assert "m__n__b" not in ended
        assert "g__mend" in ended
        assert "bad" not in ended


@pytest.mark.covers("CP2-R1")
async def test_run_stores_all_that_it_needs_and_what_its_child_pipelines_need(
    shared: Holdfast, tmp_path: Path, nearby: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made(tmp_path / "home")
    monkeypatch.chdir(home)
    fan = "fan [shape=component, workspace=worktree]; join [shape=tripleoctagon]; b [agent=codex, prompt=x];"
    (home / "child.dot").write_text(
        f"digraph c {{ start; exit; {fan} d [type=deploy]; "
        "start -> fan; fan -> b -> join; fan -> d -> join; join -> exit }"
    )
    stages = 'a [prompt="one", tools="shell"]; m [shape=house, "stack.child_dotfile"="child.dot"];'
    (home / "x.dot").write_text(line(stages, "a", "m"))
    setup = PipelineSetup(backend=backend(nearby, kits=["shell", "files"]), registry=DEPLOYS.registry)
    async with shared as hf:
        service = await hf.service()
        ready = prepare_pipeline(home / "x.dot", setup)
        row, _ = await service.create(ready.program, input_of(ready.pipeline, logs=tmp_path / "logs"))
        stored = await service.store.flow(row.flow, row.version)
        assert stored is not None
        assert sorted(requirements_in(stored.graph)) == [
            "agent:codex", "backend:model", "handler:deploy", "kit:shell", "program:git", "provider:near",
        ]  # fmt: skip


@pytest.mark.covers("CP2-R8")
async def test_command_whose_program_is_missing_is_no_outcome(hf: Holdfast, tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\ncat >/dev/null\necho done\n")
    links = (
        'start -> a; a -> done [condition="outcome=success"]; a -> b [condition="outcome=fail"]; b -> done'
    )
    runner = Runner(hf, backend=CommandBackend(str(program)), logs_root=tmp_path / "logs")
    text = dot("a; b;", links)
    with pytest.raises(RequirementsMissingError, match="is not installed"):
        await runner.run(text)
    (row,) = await (await hf.service()).store.list_runs(RunFilter(), after=None, limit=2)
    assert row.status not in ENDED
    program.chmod(0o755)
    found = await runner.resume(row.id)
    assert found.completed_nodes == ("start", "a", "done")


@pytest.mark.covers("CP2-R6")
async def test_run_of_a_command_says_which_program_it_waits_for(shared: Holdfast, tmp_path: Path) -> None:
    setup = PipelineSetup(backend=CommandBackend("no-such-program --x"))
    async with shared as hf:
        hf.dialects = {**hf.dialects, DIALECT: PipelineDialect(setup)}
        row = await created(hf, line("a;", "a"), setup, tmp_path / "logs")
        able = RunWorker(await hf.new_service())
        await able.arrive()
        await able.run_until_idle()
        service = await hf.service()
        shown = await shown_run(service.store, await service.get(row.id))
        assert (shown.label, shown.head) == ("waiting for a worker with program:no-such-program", row.head)
        await able.heartbeat.leave()


@pytest.mark.covers("CP2-R6")
async def test_run_that_every_worker_released_says_what_it_waits_for(
    shared: Holdfast, tmp_path: Path
) -> None:
    """Of a path it is known at its stage only. Each try is in the history, so they become fewer."""
    setup = PipelineSetup(backend=CommandBackend("./no-such-agent"))
    async with shared as hf:
        hf.dialects = {**hf.dialects, DIALECT: PipelineDialect(setup)}
        row = await created(hf, line("a;", "a"), setup, tmp_path / "logs")
        tried = RunWorker(await hf.new_service())
        await tried.arrive()
        await tried.run_until_idle()
        await tried.heartbeat._announce()
        service = await hf.service()
        shown = await shown_run(service.store, await service.get(row.id))
        assert shown.label == "waiting for a worker with program:no-such-agent"
        assert not shown.worker
        rests = [tried.runtime.unserved.rest(row.id) for _ in range(7)]
        assert rests == [each * 1_000_000 for each in (20, 40, 80, 160, 300, 300, 300)]
        fresh = RunWorker(await hf.new_service())
        await fresh.arrive()
        assert not (await shown_run(service.store, await service.get(row.id))).missing
        await fresh.heartbeat.leave()
        await tried.heartbeat.leave()


@pytest.mark.covers("CP2-R7")
def test_run_of_a_command_whose_program_is_missing_exits_3(cli: Cli) -> None:
    Path("x.dot").write_text(line("a;", "a"))
    said = cli("run", "x.dot", "--backend", "cli:no-such-program --x")
    assert said.code == 3
    assert "no-such-program" in said.err
    assert not Path(".holdfast").exists()
