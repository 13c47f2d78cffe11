"""`holdfast run` with command-line agents: what a run needs, what is refused, and workers that are killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from holdfast.attractor import AgentBackend
from holdfast.attractor.backends.select import backend_named
from holdfast.attractor.detached_commands import kill_all
from holdfast.attractor.prepare import prepare_pipeline
from holdfast.attractor.program import PipelineSetup
from holdfast.attractor.worker_requirements import offers_of, stored_requirements
from holdfast.cli.options.backend import backend_asked_for
from holdfast.model.fingerprint import encode_graph
from tests.attractor.fake_agents import FakeAgents, agents, claude, codex, gemini, lines
from tests.attractor.kill import Place, until
from tests.attractor.run import dot, line, written
from tests.cli.conftest import Cli
from tests.crash.stores import address_on

__all__ = ["agents"]


def write(text: str) -> str:
    Path("x.dot").write_text(text)
    return "x.dot"


def needs(text: str, setup: PipelineSetup) -> set[str]:
    return set(stored_requirements(prepare_pipeline(text, setup).program.graph.spec) or ())


# ---------------------------------------------------------------------- what a run needs
@pytest.mark.covers("CP2-R2")
@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("model", "backend:model"),
        ("simulation", "backend:simulation"),
        ("agent:codex", "agent:codex"),
        ("cli:my-agent --token 4711", "backend:command:"),
        ("helper_of_names.py:answer", "backend:function:helper_of_names.answer"),
        ("fast=agent:codex", "backend:fast"),
        ("mine=cli:my-agent --token 4711", "backend:mine"),
    ],
)
def test_backends_have_names_and_nothing_else_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test-4711")
    Path("helper_of_names.py").write_text('def answer(prompt):\n    return "4711"\n')
    name, backend = backend_asked_for(spec, simulate=False)
    setup = PipelineSetup(backend=backend, named_as=name)
    prepared = prepare_pipeline(line("a [llm_model=gpt-x];", "a"), setup)
    needed = set(stored_requirements(prepared.program.graph.spec) or ())
    digest = sha256(b"my-agent\0--token\x004711").hexdigest()[:12]
    others = {"provider:openai", "program:my-agent"}
    assert needed - others == {f"backend:command:{digest}" if "command:" in word else word}
    assert ("provider:openai" in needed) == (spec == "model")
    assert b"4711" not in encode_graph(prepared.program.graph.spec)


def test_agents_are_requirements_of_a_run(agents: FakeAgents) -> None:
    agents.plays("codex", codex())
    of_run = PipelineSetup(backend=backend_named("agent:codex"))
    assert needs(line("a;", "a"), of_run) == {"agent:codex"}
    assert needs(line("a [agent=claude];", "a"), PipelineSetup()) == {"agent:claude"}
    both = needs(line("a [agent=claude]; b;", "a", "b"), of_run)
    assert both == {"agent:claude", "agent:codex"}
    assert needs(line("a [agent=claude, llm_provider=simulation];", "a"), PipelineSetup()) == set()
    named = PipelineSetup(backend=AgentBackend("codex"), named_as="fast")
    assert needs(line("a;", "a"), named) == {"backend:fast"}
    assert {word for word in offers_of(PipelineSetup()) if word.startswith("agent:")} == {"agent:codex"}


def test_a_run_waits_for_a_worker_with_its_agent(cli: Cli, agents: FakeAgents) -> None:
    agents.plays("codex", codex("By codex."))
    file = write(line("a;", "a"))
    run = cli("run", file, "--backend", "agent:codex", "--detach", "--json").json["id"]
    program = agents.bin / "codex"
    program.rename(agents.bin / "away")
    missing = cli("resume", run)
    assert missing.code == 3
    assert "agent:codex" in missing.err
    (agents.bin / "away").rename(program)
    ended = cli("resume", run, "--json")
    assert (ended.code, ended.json["state"]["last_response"]) == (0, "By codex.")


def test_a_run_simulates_its_agents_if_it_was_asked_to(cli: Cli, agents: FakeAgents) -> None:
    ended = cli("run", write(line("a [agent=claude];", "a")), "--simulate", "--json")
    assert ended.code == 0
    assert "[Simulated]" in ended.out


OF_ANOTHER = "with the model 'gpt-5' of openai"


@pytest.mark.parametrize(
    ("text", "more", "code", "said"),
    [
        (line("a [agent=nobody];", "a"), (), 2, "agent is nobody, which is not known"),
        (line("a [agent_permissions=all];", "a"), (), 2, "agent_permissions is all, which is not known"),
        (line("a;", "a"), ("--backend", "agent:nobody"), 2, "there is no agent 'nobody'"),
        (line("a [agent=claude, agent_permissions=full];", "a"), (), 2, "this worker allows edit"),
        (line("a [agent=codex];", "a", graph="goal=g, budget_usd=1"), (), 2, "budget_usd cannot be kept"),
        (line("a [agent=claude, llm_model=gpt-5];", "a"), (), 2, OF_ANOTHER),
        (
            line("a [llm_model=gpt-5];", "a"),
            ("--backend", "agent:claude"),
            2,
            OF_ANOTHER,
        ),
        (
            line("a [llm_model=gpt-5];", "a"),
            ("--backend", "agent:claude", "--detach"),
            2,
            OF_ANOTHER,
        ),
        (line("a [agent=gemini];", "a"), (), 3, "agent:gemini"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(
    cli: Cli, agents: FakeAgents, text: str, more: tuple[str, ...], code: int, said: str
) -> None:
    agents.plays("claude", claude())
    agents.plays("codex", codex())
    ended = cli("run", write(text), *more)
    assert (ended.code, said in ended.err) == (code, True), ended.err
    assert not agents.calls("claude") + agents.calls("codex")
    assert cli("runs", "--json").json["items"] == [] if Path(".holdfast").exists() else True


@pytest.mark.parametrize(
    ("attrs", "more", "said"),
    [
        ("llm_model=gpt-5", ("--detach",), OF_ANOTHER),
        ("agent_permissions=full", (), "this worker allows edit"),
    ],
)
def test_what_a_child_pipeline_cannot_do_is_refused_before_its_manager_runs(
    cli: Cli, agents: FakeAgents, attrs: str, more: tuple[str, ...], said: str
) -> None:
    agents.plays("claude", claude())
    Path("child.dot").write_text(line(f"a [{attrs}];", "a"))
    first = (
        't [shape=parallelogram, tool_command="touch ran"]; m [shape=house, stack.child_dotfile="child.dot"];'
    )
    ended = cli("run", write(line(first, "t", "m")), "--backend", "agent:claude", *more)
    assert (ended.code, said in ended.err) == (2, True), ended.err
    assert not Path("ran").exists()
    assert cli("runs", "--json").json["items"] == [] if Path(".holdfast").exists() else True


@pytest.mark.covers("CP2-C11")
def test_doctor_tells_versions_that_were_not_tested(
    cli: Cli, agents: FakeAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("run", write(line("a;", "a")), "--simulate")

    def found() -> dict[str, Any] | None:
        every = cli("doctor", "--json").json["findings"]
        return next((each for each in every if each["check"] == "agents"), None)

    assert found() is None
    agents.plays("claude", [{"out": "2.1.197 (Claude Code)\n"}])
    agents.plays("codex", [{"out": "codex-cli 0.166.0\n"}])
    well = found()
    assert well is not None
    assert (well["state"], well["said"]) == ("ok", "agents of pipelines: claude 2.1.197, codex 0.166.0")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a key that a version does not need")
    agents.plays("codex", [{"out": "codex-cli 0.12.0\n"}])
    agents.plays("gemini", [{"out": "no idea\n"}])
    odd = found()
    assert odd is not None
    assert odd["state"] == "warn"
    assert [each.split(" (")[0] for each in odd["about"]] == [
        "codex 0.12.0",
        "gemini does not report its version",
    ]
    assert "ANTHROPIC_API_KEY" not in agents.calls("claude")[-1]["env"]
    # What stages get is an allow list with the agent's own key: test_backend_agents.


# ---------------------------------------------------------------------- workers that are killed
ALL: dict[str, Callable[[str], Any]] = {"claude": claude, "codex": codex, "gemini": gemini}


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_an_agent_that_outlives_its_worker_is_adopted(
    tmp_path: Path, agents: FakeAgents, name: str, store: str
) -> None:
    first, rest = ALL[name]("It is done.")[0]["out"].split("\n", 1)
    agents.plays(name, [lines(first), {"wait": "go"}, {"out": rest}])
    place = Place(tmp_path / "x", line(f'a [prompt="Do it", agent={name}];', "a"))
    place.environment["PATH"] = agents.path
    on = ("--store", address_on(store, tmp_path))
    try:
        running = place.call("run", "x.dot", "--logs", "D", "--run-id", place.run_id, *on)
        session = place.folder / "D" / "a" / "session.json"
        until(lambda: session.exists() or running.process.exitcode is not None, running.told)
        running.kill()
        agents.go(name)
        again = place.call("resume", place.run_id, "--json", *on)
        assert again.end() == 0, again.told
    finally:
        place.clean_up()
    assert written(place.folder / "D" / "a" / "response.md") == "It is done."
    assert len(agents.calls(name)) == 1
    events = written(place.folder / "D" / "a" / "events.jsonl").splitlines()
    assert json.loads(events[0])["type"] == json.loads(first)["type"]
    assert len(events) == len(rest.splitlines()) + 1


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_an_agent_that_died_with_its_worker_is_not_started_again_in_silence(
    tmp_path: Path, agents: FakeAgents, store: str
) -> None:
    start = lines({"type": "system", "subtype": "init", "session_id": "SESSION"})
    agents.plays("claude", [start, {"wait": "never"}], claude("The whole."))
    place = Place(tmp_path / "x", line('a [prompt="Do it", agent=claude];', "a"))
    place.environment["PATH"] = agents.path
    on = ("--store", address_on(store, tmp_path))
    try:
        running = place.call("run", "x.dot", "--logs", "D", "--run-id", place.run_id, *on)
        session = place.folder / "D" / "a" / "session.json"
        until(lambda: session.exists() or running.process.exitcode is not None, running.told)
        running.kill()
        kill_all(place.folder / "D")
        asked = place.call("resume", place.run_id, *on)
        asked.end()
        assert "how it ended is not known" in asked.told
        assert len(agents.calls("claude")) == 1
        answered = place.call("answer", place.run_id, "run again", "--by", "user:dana", *on)
        assert answered.end() == 0, answered.told
        again = place.call("resume", place.run_id, "--json", *on)
        assert again.end() == 0, again.told
    finally:
        place.clean_up()
    first, second = agents.calls("claude")
    argv = second["argv"]
    assert argv[argv.index("--resume") + 1] in first["argv"]
    assert written(place.folder / "D" / "a" / "response.md") == "The whole."


def test_a_pipeline_that_names_agents_may_have_branches_of_them(cli: Cli, agents: FakeAgents) -> None:
    agents.plays("claude", claude("Of claude."))
    agents.plays("codex", codex("Of codex."))
    text = dot(
        "f [shape=component]; x [agent=claude]; y [agent=codex]; j [shape=tripleoctagon];",
        "start -> f; f -> x -> j; f -> y -> j; j -> done",
    )
    assert cli("run", write(text), "--json").code == 0
    assert (len(agents.calls("claude")), len(agents.calls("codex"))) == (1, 1)
