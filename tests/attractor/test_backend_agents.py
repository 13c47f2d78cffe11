"""Command-line agents answer stages: their processes, sessions, permissions, limits and costs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import AgentBackend, HandlerRegistry, Runner, StageOutcome
from holdfast.attractor.detached_commands import is_living, kill_now
from holdfast.attractor.runner import PipelineResult
from holdfast.errors import InputError, RunEndedError
from holdfast.types.ids import new_run_id
from tests.attractor import fake_agents
from tests.attractor.fake_agents import FakeAgents, agents, claude, claude_error, codex, gemini, lines
from tests.attractor.run import begun, dot, line, run, until, whole, written
from tests.attractor.test_resume_directory import elsewhere

__all__ = ["agents", "elsewhere"]
pytestmark = pytest.mark.anyio

NAMES = ["claude", "codex", "gemini"]
STAGE = line('a [prompt="Do it", fidelity=full];', "a")
FULL = "goal=g, default_fidelity=full, thread_id=t"
THREAD = line('a [prompt="One"]; b [prompt="Two"];', "a", "b", graph=FULL)


def good(name: str, text: str = "It is done.") -> list[fake_agents.Step]:
    return getattr(fake_agents, name)(text)


def status(result: PipelineResult, stage: str = "a") -> dict[str, Any]:
    return json.loads(written(result.logs_root / stage / "status.json"))


def words(call: dict[str, Any]) -> str:
    return " ".join(call["argv"][1:])


def after(call: dict[str, Any], flag: str) -> str:
    argv = call["argv"]
    return argv[argv.index(flag) + 1] if flag in argv else ""


async def emitted(hf: Holdfast, run_id: str, kind: str) -> list[Any]:
    events = await (await hf.service()).events(run_id)
    return [e.data["data"] for e in events if e.type == "node.emitted" and e.data["kind"] == kind]


async def spent(hf: Holdfast, run_id: str) -> tuple[int, float]:
    found = (await (await hf.service()).latest(run_id)).diagnostics
    return found["totalTokensUsed"], found["totalCost"]


# ---------------------------------------------------------------------- the process
@pytest.mark.covers("CP2-C1")
@pytest.mark.parametrize("of", ["backend", "stage"])
@pytest.mark.parametrize("name", NAMES)
async def test_an_agent_gets_the_prompt_on_its_input_and_its_answer_is_the_stages(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, name: str, of: str
) -> None:
    agents.plays(name, good(name, "All of it is done."))
    text = STAGE if of == "backend" else STAGE.replace("fidelity", f"agent={name}, fidelity")
    backend = AgentBackend(name) if of == "backend" else (lambda prompt: "not asked")
    result = await run(hf, text, tmp_path / "logs", backend=backend)
    assert result.succeeded
    assert written(tmp_path / "logs" / "a" / "response.md") == "All of it is done."
    (call,) = agents.calls(name)
    assert call["stdin"] == "Do it"
    assert result.context["last_response"] == "All of it is done."


async def test_an_agent_of_a_stage_leaves_the_others_to_the_backend(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    agents.plays("codex", codex())
    text = line("a [agent=codex]; b;", "a", "b")
    result = await run(hf, text, tmp_path, backend=lambda prompt: "of the function")
    assert result.context["last_response"] == "of the function"
    assert len(agents.calls("codex")) == 1


async def test_the_model_and_the_effort_of_a_stage_are_passed_on(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    agents.plays("claude", claude())
    agents.plays("codex", codex())
    stage = "a [agent=claude, llm_model=claude-x, reasoning_effort=low]; b [agent=codex, llm_model=gpt-y];"
    await run(hf, line(stage, "a", "b"), tmp_path, backend=lambda prompt: "")
    assert "--model claude-x --effort low" in words(agents.calls("claude")[0])
    assert "-m gpt-y" in words(agents.calls("codex")[0])


async def test_an_agent_works_in_the_folder_of_the_stage(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    (tmp_path / "work").mkdir()
    agents.plays("codex", codex())
    await run(hf, line(f'a [cwd="{tmp_path}/work"];', "a"), tmp_path / "logs", backend=AgentBackend("codex"))
    (call,) = agents.calls("codex")
    assert (call["cwd"], after(call, "-C")) == (whole(tmp_path / "work"), whole(tmp_path / "work"))


@pytest.mark.covers("CP2-C3")
async def test_usage_of_codex_is_the_difference_over_a_thread(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    warning = {"type": "error", "message": "Reconnecting... 1/5"}
    agents.plays("codex", codex("One.", 100, warning), codex("Two.", 300))
    result = await run(hf, THREAD, tmp_path, backend=AgentBackend("codex"))
    assert result.succeeded
    assert words(agents.calls("codex")[1]).startswith("exec resume thread-1 --json")
    assert await spent(hf, result.run_id) == (300 + 60, 0.0)
    agents.plays("codex", fake_agents.codex_error("stream disconnected", ends=False))
    endless = await run(hf, STAGE, tmp_path / "x", backend=AgentBackend("codex"))
    assert endless.status == "fail"
    assert "codex reports an error: stream disconnected" in endless.outcome.failure_reason


@pytest.mark.covers("CP2-C4")
async def test_the_event_of_gemini_counts_before_its_exit_code(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    agents.plays("gemini", fake_agents.gemini_error(400, "the prompt is too long"))
    refused = await run(hf, STAGE, tmp_path / "x", backend=AgentBackend("gemini"))
    assert "the prompt is too long" in refused.outcome.failure_reason
    assert "144" not in refused.outcome.failure_reason
    assert refused.context["failure_class"] == "terminal"
    # An exit code is never a success, whatever the event says.
    agents.plays("gemini", [*gemini(), {"exit": 1}])
    odd = await run(hf, STAGE, tmp_path / "y", backend=AgentBackend("gemini"))
    assert odd.outcome.failure_reason == "gemini ended with exit code 1"


@pytest.mark.covers("CP2-V4")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("code", [0, 1])
async def test_a_stream_without_its_end_is_never_a_success(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, name: str, code: int
) -> None:
    cut = good(name)[0]["out"].rsplit("\n", 2)[0]
    agents.plays(name, [{"out": cut + "\n"}, {"err": "Killed\n"}, {"exit": code}])
    result = await run(hf, STAGE, tmp_path / "logs", backend=AgentBackend(name))
    assert result.status == "fail"
    reason = f"{name} ended without its last event, with exit code {code}: Killed"
    assert result.outcome.failure_reason == reason


# ---------------------------------------------------------------------- events
@pytest.mark.covers("CP2-C7")
@pytest.mark.parametrize("name", NAMES)
async def test_events_are_shown_live_and_kept(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, name: str
) -> None:
    first, rest = good(name)[0]["out"].split("\n", 1)
    odd = ["not JSON", {"type": "unheard_of", "x": [1]}]
    agents.plays(name, [lines(first, *odd), {"wait": "go"}, {"out": rest}, {"out": '{"type": "cu'}])
    logs = tmp_path / "logs"
    runner, run_id = Runner(hf, backend=AgentBackend(name), logs_root=logs), str(new_run_id())
    work = asyncio.ensure_future(runner.run(STAGE, run_id=run_id))
    await until(lambda: written(logs / "a" / "session.json"))
    seen: list[Any] = []
    while not any(each.get("type") == "unheard_of" for each in seen):
        await asyncio.sleep(0.01)
        seen = await emitted(hf, run_id, "agent_event")
    assert not work.done()  # live
    agents.go(name)
    result = await work
    assert result.succeeded
    assert "".join(await emitted(hf, run_id, "text")).endswith("It is done.")
    assert len(await emitted(hf, run_id, "tool")) == 1
    kept = [json.loads(each) for each in written(logs / "a" / "events.jsonl").splitlines()]
    assert kept[1:3] == [{"type": "holdfast.text", "text": "not JSON"}, odd[1]]
    assert kept[-1] == {"type": "holdfast.cut", "text": '{"type": "cu'}


# ---------------------------------------------------------------------- sessions
@pytest.mark.covers("CP2-C5")
@pytest.mark.parametrize("name", NAMES)
async def test_a_thread_continues_its_session(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, name: str
) -> None:
    agents.plays(name, good(name, "One."), good(name, "Two."))
    result = await run(hf, THREAD, tmp_path, backend=AgentBackend(name))
    assert result.succeeded
    one, two = agents.calls(name)
    assert (one["stdin"], two["stdin"]) == ("One", "Two")
    first = "thread-1" if name == "codex" else after(one, "--session-id")
    assert first
    assert after(two, "resume" if name == "codex" else "--resume") == first


@pytest.mark.covers("CP2-C5")
@pytest.mark.parametrize("name", NAMES)
async def test_the_id_of_a_session_is_recorded_before_its_end(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, name: str
) -> None:
    first, rest = good(name)[0]["out"].split("\n", 1)
    agents.plays(name, [{"wait": "start"}, lines(first), {"wait": "go"}, {"out": rest}])
    runner = Runner(hf, backend=AgentBackend(name), logs_root=tmp_path)
    run_id = str(new_run_id())
    work = asyncio.ensure_future(runner.run(STAGE, run_id=run_id))
    await until(lambda: agents.calls(name))
    (call,) = agents.calls(name)
    events = await (await hf.service()).events(run_id)
    # Where the id is ours, before the start; else at the first event.
    assert [e.data["step"] for e in events if e.type == "node.step_done"][:2] == ["begin", "session"]
    agents.go(name, "start")
    await until(lambda: written(tmp_path / "a" / "session.json"))
    known = json.loads(written(tmp_path / "a" / "session.json"))["session"]
    assert known == (after(call, "--session-id") or "thread-1")
    agents.go(name)
    assert (await work).succeeded
    shown = [each for each in await emitted(hf, run_id, "agent_event") if each["type"] == "session"]
    assert [each["session"] for each in shown] == [known]


NOT_FOUND = "No conversation found with session ID: x"
LOST = {
    "claude": [
        lines(
            {
                "type": "result",
                "subtype": "error_during_execution",
                "is_error": True,
                "num_turns": 0,
                "session_id": "x",
                "errors": [NOT_FOUND],
            }
        ),
        {"err": f"{NOT_FOUND}\n"},
    ],
    "codex": [{"err": "Error: thread/resume failed: no rollout found for thread id x (code -32600)\n"}],
    "gemini": [{"err": "Error resuming session: No previous sessions found for this project.\n"}],
}


@pytest.mark.covers("CP2-C5")
@pytest.mark.parametrize("name", NAMES)
async def test_a_lost_session_begins_anew_with_a_summary(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, name: str
) -> None:
    agents.plays(name, good(name, "One."), [*LOST[name], {"exit": 1}], good(name, "Two."))
    result = await run(hf, THREAD, tmp_path, backend=AgentBackend(name))
    assert result.succeeded
    assert written(tmp_path / "b" / "response.md") == "Two."
    first, _, third = agents.calls(name)
    assert third["stdin"].endswith("\n\nTwo")
    assert "a: success" in third["stdin"]  # what the summary says of the stage before
    assert "resume" not in words(third)
    if name != "codex":
        assert after(third, "--session-id") not in ("", after(first, "--session-id"))
    logged = [each for each in await emitted(hf, result.run_id, "log") if "session" in str(each)]
    assert logged == [f"stage b: the session of {name} is lost: a new session starts with summary:high"]


async def test_a_session_of_another_machine_is_lost(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents.plays("claude", claude("One."), claude("Two."))
    text = line('a [prompt="One"]; g [shape=hexagon]; b [prompt="Two"];', "a", "g", "b", graph=FULL)
    runner = Runner(hf, backend=AgentBackend("claude"), logs_root=tmp_path)
    found = await runner.run(text)
    await (await hf.service()).answer(found.holds[0].id, found.holds[0].options[0].id, by="user:dana")
    monkeypatch.setattr("holdfast.attractor.backends.agents.session.machine", lambda: "elsewhere")
    assert (await runner.resume(found.run_id)).succeeded
    assert "--resume" not in words(agents.calls("claude")[1])
    assert agents.calls("claude")[1]["stdin"].endswith("\n\nTwo")


@pytest.mark.covers("CP2-C5")
@pytest.mark.parametrize("began", [True, False])
async def test_a_next_attempt_resumes_the_session_if_it_had_begun(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, began: bool
) -> None:
    failed = claude_error(529, "API Error: 529 overloaded")
    agents.plays("claude", failed if began else [{"err": "connection refused\n"}, {"exit": 1}], claude())
    text = line('a [prompt="Do it", max_retries=1];', "a")
    result = await run(hf, text, tmp_path, backend=AgentBackend("claude"))
    assert result.succeeded
    one, two = agents.calls("claude")
    assert (after(two, "--resume") == after(one, "--session-id")) == began
    assert began or after(two, "--session-id") not in ("", after(one, "--session-id"))


async def test_a_branch_does_not_use_the_session_of_its_trunk(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    agents.plays("claude", claude("One."), claude("Two."))
    text = dot(
        'a [prompt="One"]; f [shape=component]; x [prompt="X"]; y [prompt="Y"]; j [shape=tripleoctagon];',
        "start -> a -> f; f -> x -> j; f -> y -> j; j -> done",
        FULL,
    )
    assert (await run(hf, text, tmp_path, backend=AgentBackend("claude"))).succeeded
    first, *others = agents.calls("claude")
    assert len({after(call, "--session-id") for call in (first, *others)} - {""}) == 3
    assert all("[user]\nOne\n\n[assistant]\nOne." in call["stdin"] for call in others)


async def test_a_fork_does_not_use_the_session_of_its_origin(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_LOGS", str(tmp_path / "logs"))
    agents.plays("claude", claude("One."), claude("Two."))
    text = line('a [prompt="One"]; g [shape=hexagon]; b [prompt="Two"];', "a", "g", "b", graph=FULL)
    runner = Runner(hf, backend=AgentBackend("claude"))
    found = await runner.run(text)
    service = await hf.service()
    fork = await service.fork(found.run_id, (await service.get(found.run_id)).head)
    for run_id in (found.run_id, str(fork.id)):
        (hold,) = (await runner.resume(run_id)).holds
        await service.answer(hold.id, hold.options[0].id, by="user:dana")
        assert (await runner.resume(run_id)).succeeded
    _, own, forked = agents.calls("claude")
    assert "--resume" in words(own)
    assert "--resume" not in words(forked)
    assert "[assistant]\nOne." in forked["stdin"]


async def test_each_answer_of_one_visit_has_a_session_of_its_own(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    agents.plays("claude", claude("Hurry."))

    class Asks:
        async def perform(self, visit: Any) -> StageOutcome:
            backend = AgentBackend("claude")
            said = [str(await backend.answer(visit, f"Steer {n}")) for n in range(2)]
            return StageOutcome(notes=" ".join(said))

    registry = HandlerRegistry({"asks": Asks()})
    result = await run(hf, line("a [type=asks];", "a"), tmp_path, registry=registry)
    assert status(result)["notes"] == "Hurry. Hurry."
    calls = agents.calls("claude")
    assert len({after(call, "--session-id") for call in calls}) == 2
    # Only a text is wanted.
    assert {after(call, "--permission-mode") for call in calls} == {"plan"}


# ---------------------------------------------------------------------- permissions and environment
@pytest.mark.covers("CP2-C6")
@pytest.mark.parametrize(
    ("of_stage", "of_graph", "limit", "mode"),
    [
        ("", "", "", "acceptEdits"),
        (", agent_permissions=plan", "", "", "plan"),
        ("", ", agent_permissions=plan", "", "plan"),
        (", agent_permissions=edit", ", agent_permissions=plan", "", "acceptEdits"),
        (", agent_permissions=full", "", "full", "bypassPermissions"),
        (", agent_permissions=full", "", "", "this worker allows edit"),
        ("", "", "plan", "this worker allows plan"),
        ("", "", "everything", "HOLDFAST_AGENT_PERMISSIONS is 'everything'"),
    ],
)
async def test_a_document_gets_no_more_permissions_than_the_operator_allows(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, monkeypatch: pytest.MonkeyPatch,
    of_stage: str, of_graph: str, limit: str, mode: str,
) -> None:  # fmt: skip
    agents.plays("claude", claude())
    if limit:
        monkeypatch.setenv("HOLDFAST_AGENT_PERMISSIONS", limit)
    text = line(f"a [label=A{of_stage}];", "a", graph=f"goal=g{of_graph}")
    result = await run(hf, text, tmp_path, backend=AgentBackend("claude"))
    if " " in mode:
        assert mode in result.outcome.failure_reason
        assert not agents.calls("claude")
        assert result.context["failure_class"] == "terminal"
    else:
        assert after(agents.calls("claude")[0], "--permission-mode") == mode


@pytest.mark.covers("CP2-C11")
async def test_an_agent_gets_listed_variables_and_its_own_key(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY", "HOLDFAST_STORE", "DB_PASSWORD"):
        monkeypatch.setenv(name, f"value-of-{name}")
    key = "value-of-ANTHROPIC_API_KEY"
    agents.plays("claude", [{"err": f"sent {key}\n"}, *claude_error(401, f"API Error: 401 {key}")])
    result = await run(hf, STAGE, tmp_path / "logs", backend=AgentBackend("claude"))
    given = agents.calls("claude")[0]["env"]
    assert given["ANTHROPIC_API_KEY"] == key
    assert not {"CODEX_API_KEY", "GEMINI_API_KEY", "HOLDFAST_STORE", "DB_PASSWORD"} & set(given)
    assert given["HOLDFAST_NODE"] == "a"
    # The key is in no record, whatever the agent writes.
    events = await (await hf.service()).events(result.run_id)
    assert key not in json.dumps([each.data for each in events], default=str)
    files = [path for path in (tmp_path / "logs").rglob("*") if path.is_file()]
    assert {"events.jsonl", "stdout", "stderr"} <= {path.name for path in files}
    assert [path for path in files if key.encode() in path.read_bytes()] == []
    assert "401 ***" in result.outcome.failure_reason


@pytest.mark.parametrize("name", ["ANTHROPIC_BASE_URL", "NODE_OPTIONS", "HTTPS_PROXY", "PATH"])
async def test_a_document_cannot_redirect_an_agent(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, name: str
) -> None:
    agents.plays("claude", claude())
    text = line(f'a [env.{name}="x", env.FINE="y"];', "a")
    result = await run(hf, text, tmp_path, backend=AgentBackend("claude"))
    assert f"sets env.{name}, which only the operator may set" in result.outcome.failure_reason
    assert not agents.calls("claude")


# ---------------------------------------------------------------------- limits and costs
@pytest.mark.covers("CP2-C8")
@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("agent_idle_timeout=400ms", "claude was silent for 0.4 seconds and was stopped"),
        ("timeout=400ms", "timeout: claude took longer than 400ms and was stopped"),
    ],
)
async def test_a_silent_or_slow_agent_is_stopped_with_its_group(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, limit: str, reason: str
) -> None:
    agents.plays("claude", [lines({"type": "system", "session_id": "s"}), {"wait": "never"}])
    result = await run(hf, line(f"a [{limit}];", "a"), tmp_path / "logs", backend=AgentBackend("claude"))
    assert result.outcome.failure_reason == reason
    assert result.context["failure_class"] == "transient"
    (folder,) = begun(tmp_path / "logs")
    assert not is_living(int(written(folder / "pid")))


async def test_an_agent_that_goes_on_writing_is_not_silent(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    agents.plays("claude", [*[{"out": '{"type": "x"}\n'}] * 3, *claude()])
    text = line("a [agent_idle_timeout=20s];", "a", graph="goal=g, agent_idle_timeout=1ms")
    assert (await run(hf, text, tmp_path, backend=AgentBackend("claude"))).succeeded


@pytest.mark.covers("CP2-C9")
@pytest.mark.parametrize(
    ("name", "model", "tokens", "cost"),
    [("claude", "", 22, 0.25), ("codex", "gpt-y", 120, 0.00041), ("gemini", "gemini-y", 63, 0.00022)],
)
async def test_cost_is_what_was_reported_else_usage_times_price(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, monkeypatch: pytest.MonkeyPatch,
    name: str, model: str, tokens: int, cost: float,
) -> None:  # fmt: skip
    prices = "".join(
        f'[prices."{each}"]\ninput = "2"\noutput = "10"\ncached = "1"\n' for each in ("gpt-y", "gemini-y")
    )
    (tmp_path / "models.toml").write_text(prices)
    monkeypatch.setenv("HOLDFAST_MODELS", str(tmp_path / "models.toml"))
    agents.plays(name, good(name))
    stage = f'a [llm_model="{model}"];' if model else "a;"
    text = line(stage, "a", graph="goal=g, budget_usd=5")
    result = await run(hf, text, tmp_path / "logs", backend=AgentBackend(name))
    found = await spent(hf, result.run_id)
    assert found[0] == tokens
    assert found[1] == pytest.approx({"codex": 0.00039, "gemini": 0.00022}.get(name, cost), rel=0.05)
    # Without prices a budget is refused before the start.
    monkeypatch.delenv("HOLDFAST_MODELS")
    refused = await run(hf, text, tmp_path / "x", backend=AgentBackend(name))
    assert refused.succeeded == (name == "claude")
    assert len(agents.calls(name)) == (2 if name == "claude" else 1)
    if name != "claude":
        assert "budget_usd cannot be kept" in refused.outcome.failure_reason


@pytest.mark.parametrize(
    ("play", "kind", "calls"),
    [
        (claude_error(529, "API Error: 529 overloaded"), "transient", 3),
        (claude_error(400, "API Error: 400 bad"), "terminal", 1),
        (claude_error(0, "", subtype="error_max_turns"), "limit", 1),
    ],
)
async def test_only_transient_failures_are_retried(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, play: list[fake_agents.Step], kind: str, calls: int
) -> None:
    agents.plays("claude", play)
    result = await run(hf, line("a [max_retries=2];", "a"), tmp_path, backend=AgentBackend("claude"))
    assert result.status == "fail"
    assert result.context["failure_class"] == kind
    assert len(agents.calls("claude")) == calls


# ---------------------------------------------------------------------- in doubt
@pytest.mark.parametrize(("answer", "calls"), [("run again", 2), ("it succeeded", 1), ("it failed", 1)])
async def test_an_agent_whose_end_nobody_knows_is_in_doubt(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, answer: str, calls: int
) -> None:
    start = lines({"type": "system", "session_id": "SESSION"})
    said = lines({"type": "assistant", "message": {"content": [{"type": "text", "text": "Half."}]}})
    agents.plays("claude", [start, said, {"wait": "never"}], claude("Whole."))
    logs = tmp_path / "logs"
    runner, run_id = Runner(hf, backend=AgentBackend("claude"), logs_root=logs), str(new_run_id())
    work = asyncio.ensure_future(runner.run(STAGE, run_id=run_id))
    await until(lambda: written(logs / "a" / "session.json"))
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    (folder,) = begun(logs)
    kill_now(folder)
    found = await runner.resume(run_id)
    assert found.status == "waiting"
    await (await hf.service()).answer(found.holds[0].id, answer, by="user:dana")
    found = await runner.resume(run_id)
    assert found.status == ("fail" if answer == "it failed" else "success")
    made = agents.calls("claude")
    assert len(made) == calls
    if answer == "run again":
        # Its first event was read, so that its session exists.
        assert after(made[1], "--resume") == after(made[0], "--session-id")
    if answer == "it succeeded":
        assert written(logs / "a" / "response.md") == "Half."


# ---------------------------------------------------------------------- verdicts
@pytest.mark.covers("CP2-V2", "CP2-V5")
@pytest.mark.parametrize("name", NAMES)
async def test_an_agent_is_asked_for_its_verdict_in_its_session(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, name: str
) -> None:
    verdict = '```json\n{"outcome": "success", "notes": "42 pass"}\n```'
    agents.plays(name, good(name, "All is well."), good(name, f"Yes.\n{verdict}"))
    text = line('a [prompt="Test it", goal_gate=true, auto_status=false];', "a")
    result = await run(hf, text, tmp_path / "logs", backend=AgentBackend(name))
    assert result.succeeded
    assert status(result)["notes"] == "42 pass"
    one, two = agents.calls(name)
    path = whole(tmp_path / "logs" / "a" / "status.json")
    assert path in one["stdin"]
    assert path in two["stdin"]
    assert two["stdin"].startswith("Your answer has no verdict")
    first = "thread-1" if name == "codex" else after(one, "--session-id")
    assert after(two, "resume" if name == "codex" else "--resume") == first
    events = written(tmp_path / "logs" / "a" / "events.jsonl")
    assert len(events.splitlines()) == 2 * len(good(name)[0]["out"].splitlines())


@pytest.mark.covers("CP2-V3")
async def test_the_status_file_of_an_agent_counts_unless_it_says_worse_elsewhere(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    file = {"file": json.dumps({"outcome": "success", "context_updates": {"n": 3}})}
    agents.plays("codex", [file, *codex("Done.")], [file, *codex('```json\n{"outcome": "fail"}\n```')])
    good_one = await run(hf, STAGE, tmp_path / "x", backend=AgentBackend("codex"))
    assert (good_one.status, good_one.context["n"]) == ("success", 3)
    assert (await run(hf, STAGE, tmp_path / "y", backend=AgentBackend("codex"))).status == "fail"


def test_an_agent_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="there is no agent 'nobody'"):
        AgentBackend("nobody")


# ---------------------------------------------------------------------- on another store
async def test_both_turns_of_an_agent_are_adopted_from_its_directory(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    verdict = 'Yes.\n```json\n{"outcome": "success", "notes": "42 pass"}\n```'
    agents.plays("claude", claude("All is well."), [{"wait": "go"}, *claude(verdict)])
    text = line('a [prompt="Test it", goal_gate=true, auto_status=false];', "a")
    logs = tmp_path / "logs"
    runner = Runner(hf, backend=AgentBackend("claude"), logs_root=logs)
    work = asyncio.ensure_future(runner.run(text))
    await until(lambda: len(agents.calls("claude")) == 2)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    agents.go("claude")
    found = await Runner(elsewhere, backend=AgentBackend("claude")).resume(logs)
    assert found.succeeded, found.holds or found.outcome.failure_reason
    assert len(agents.calls("claude")) == 2
    assert written(logs / "a" / "response.md") == f"All is well.\n\n{verdict}"


# ---------------------------------------------------------------------- steering
@pytest.mark.covers("CP2-A8")
async def test_a_message_to_a_stage_that_fails_reaches_no_later_one(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents
) -> None:
    agents.plays("claude", [{"wait": "go"}, *claude_error(401, "no key")], claude("Repaired."))
    text = dot("a; b;", 'start -> a; a -> done; a -> b [condition="outcome=fail"]; b -> done')
    runner, run_id = Runner(hf, backend=AgentBackend("claude"), logs_root=tmp_path), str(new_run_id())
    work = asyncio.ensure_future(runner.run(text, run_id=run_id))
    await until(lambda: agents.calls("claude"))
    service = await hf.service()
    await service.steer(run_id, "Delete the cache first.")
    agents.go("claude")
    assert (await work).succeeded
    assert not any("Delete" in call["stdin"] for call in agents.calls("claude"))
    assert len(agents.calls("claude")) == 2
    events = await service.events(run_id)
    logs = [str(event.data["data"]) for event in events if event.type == "node.emitted"]
    assert "a message of user:local came too late for a: Delete the cache first." in logs


@pytest.mark.covers("CP2-A8")
@pytest.mark.parametrize("name", NAMES)
async def test_a_message_is_a_further_turn_of_the_agents_session(
    hf: Holdfast, tmp_path: Path, agents: FakeAgents, name: str
) -> None:
    agents.plays(name, [{"wait": "go"}, *good(name, "First.")], good(name, "Second."))
    runner, run_id = Runner(hf, backend=AgentBackend(name), logs_root=tmp_path / "logs"), str(new_run_id())
    work = asyncio.ensure_future(runner.run(STAGE, run_id=run_id))
    await until(lambda: agents.calls(name))
    service = await hf.service()
    await service.steer(run_id, "Only the east side.")
    await service.steer(run_id, "And be quick.")
    agents.go(name)
    result = await work
    assert result.succeeded
    first, second = agents.calls(name)
    assert first["stdin"] == "Do it"
    assert second["stdin"] == "Only the east side.\n\nAnd be quick."
    assert "resume" in words(second)
    assert result.context["last_response"] == "Second."
    with pytest.raises(RunEndedError):
        await service.steer(run_id, "Too late.")
