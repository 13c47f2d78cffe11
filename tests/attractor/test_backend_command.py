"""Command-line agents answer stages: processes of their own that no crash runs twice."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.attractor import Runner
from holdfast.attractor.backends.cli import CommandBackend
from holdfast.attractor.detached_commands import is_living
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.handlers.fan_in import ask_backend
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.prepare import prepare_pipeline
from holdfast.attractor.program import PipelineSetup
from holdfast.attractor.registry import HandlerRegistry
from holdfast.errors import InputError
from holdfast.types.ids import new_run_id
from tests.attractor.run import begun, dot, either, line, run, until, written

pytestmark = pytest.mark.anyio


def an_agent(folder: Path, script: str) -> str:
    """A program; what it is called with is told after it by the template."""
    file = folder / "agent"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def streams(stage: Path, name: str) -> list[str]:
    return [written(file) for file in sorted(stage.glob(f"tool-*/{name}"))]


@pytest.mark.covers("ATTRACTOR-HANDLER-08", "AT-143")
async def test_an_agent_is_given_the_prompt_and_its_output_is_the_answer(
    hf: Holdfast, tmp_path: Path
) -> None:
    agent = an_agent(tmp_path, 'cat "$2"; echo; echo "$1|$3|$HOLDFAST_NODE"; echo thinking >&2')
    asks = CommandBackend(f"{agent} {{model}} {{prompt_file}} '{{stage}} {{{{x}}}}'")
    text = line('a [prompt="Do $goal", llm_model=m-1];', "a")
    result = await run(hf, text, tmp_path / "logs", backend=asks)
    assert result.succeeded
    stage = tmp_path / "logs" / "a"
    answer = written(stage / "response.md")
    assert answer.startswith("Goal: ship it\n")
    assert answer.endswith("\n\nDo ship it\nm-1|a {x}|a")
    assert written(stage / "prompt.md") == "Do ship it"
    assert result.context["last_response"] == answer[:200]
    # The transcript stays, whole.
    assert streams(stage, "stdout") == [answer + "\n"]
    assert streams(stage, "stderr") == ["thinking\n"]


@pytest.mark.covers("ATTRACTOR-HANDLER-08")
async def test_no_shell_reads_what_stands_in_a_prompt(hf: Holdfast, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    nasty = f"$(touch {touched}); touch {touched}; 'it' is `touch {touched}` & *"
    text = line(f'a [prompt="{nasty}", fidelity=full];', "a")
    result = await run(hf, text, tmp_path / "logs", backend=CommandBackend("printf %s {prompt}"))
    assert result.succeeded
    assert written(tmp_path / "logs" / "a" / "response.md") == nasty
    assert not touched.exists()


@pytest.mark.covers("ATTRACTOR-HANDLER-08")
async def test_nothing_in_a_document_becomes_an_option(hf: Holdfast, tmp_path: Path) -> None:
    text = line('a [prompt="--help", llm_model="-rf", fidelity=full];', "a")
    said = await run(hf, text, tmp_path / "x", backend=CommandBackend("printf %s. {prompt} -m={model}"))
    assert written(tmp_path / "x" / "a" / "response.md") == "--help.-m=-rf."
    assert said.succeeded
    refused = await run(hf, text, tmp_path / "y", backend=CommandBackend("printf {model} {prompt}"))
    assert refused.status == "fail"
    assert "{model} would be '-rf', which looks like an option" in refused.outcome.failure_reason


@pytest.mark.covers("ATTRACTOR-HANDLER-08")
async def test_a_prompt_that_nothing_names_is_the_input(hf: Holdfast, tmp_path: Path) -> None:
    text = line('a [prompt="hello", fidelity=full];', "a")
    result = await run(hf, text, tmp_path, backend=CommandBackend("sed 's/hello/HELLO {}/'"))
    assert result.context["last_response"] == "HELLO {}"


@pytest.mark.covers("ATTRACTOR-HANDLER-08", "AT-A15")
async def test_what_an_agent_writes_as_its_status_counts(hf: Holdfast, tmp_path: Path) -> None:
    status = json.dumps({"outcome": "success", "preferred_label": "fix", "context_updates": {"n": 3}})
    agent = an_agent(tmp_path, f"echo looked; echo '{status}' >\"$ATTRACTOR_STAGE_DIR/status.json\"")
    text = dot("a; fix;", "start -> a; a -> done [label=ship]; a -> fix [label=fix]; fix -> done")
    result = await run(hf, text, tmp_path / "logs", backend=CommandBackend(agent))
    assert result.completed_nodes[:3] == ("start", "a", "fix")
    assert result.context["n"] == 3


@pytest.mark.covers("ATTRACTOR-HANDLER-08", "AT-179")
async def test_an_agent_that_fails_takes_the_fail_edge(hf: Holdfast, tmp_path: Path) -> None:
    agent = an_agent(tmp_path, '[ "$HOLDFAST_NODE" = b ] || { echo half; echo no luck >&2; exit 7; }')
    text = dot("a; b;", either("a", "b"))
    result = await run(hf, text, tmp_path / "logs", backend=CommandBackend(agent))
    assert result.completed_nodes == ("start", "a", "b", "done")
    status = json.loads(written(tmp_path / "logs" / "a" / "status.json"))
    assert status["failure_reason"] == "the agent ended with exit code 7: no luck"
    assert written(tmp_path / "logs" / "a" / "response.md") == "half\n"


@pytest.mark.covers("ATTRACTOR-HANDLER-08")
async def test_an_agent_that_takes_too_long_is_killed_with_all_that_it_started(
    hf: Holdfast, tmp_path: Path
) -> None:
    agent = an_agent(tmp_path, "sleep 600 & wait")
    text = line("a [timeout=300ms];", "a")
    result = await run(hf, text, tmp_path / "logs", backend=CommandBackend(agent))
    assert result.status == "fail"
    assert "timeout: the agent took longer than 300ms" in result.outcome.failure_reason
    (folder,) = begun(tmp_path / "logs")
    assert not is_living(int(written(folder / "pid")))


@pytest.mark.covers("ATTRACTOR-HANDLER-08")
async def test_an_agent_goes_on_while_nobody_waits_for_it_and_runs_once(hf: Holdfast, tmp_path: Path) -> None:
    go, trace = tmp_path / "go", tmp_path / "trace"
    agent = an_agent(
        tmp_path,
        f"echo ran >>{trace}; until [ -e {go} ] || [ ! -e {trace} ]; do sleep 0.01; done; echo done it",
    )
    logs = tmp_path / "logs"
    runner = Runner(hf, backend=CommandBackend(agent), logs_root=logs)
    run_id = str(new_run_id())
    work = asyncio.ensure_future(runner.run(line("a;", "a"), run_id=run_id))
    await until(lambda: begun(logs) and trace.exists())
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    go.touch()
    ended = await runner.resume(run_id)
    assert ended.succeeded
    assert ended.context["last_response"] == "done it"
    assert written(trace) == "ran\n"


@pytest.mark.covers("ATTRACTOR-HANDLER-08", "ATTRACTOR-HANDLER-06")
@pytest.mark.parametrize("failed", [False, True])
async def test_an_agent_that_tells_of_itself_in_json_is_understood(
    hf: Holdfast, tmp_path: Path, failed: bool
) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 200, "cache_read_input_tokens": 300, "odd": "x"}
    last = {
        "type": "result",
        "result": "all done",
        "is_error": failed,
        "total_cost_usd": 0.25,
        "usage": usage,
    }
    agent = an_agent(tmp_path, f"echo '{json.dumps({'type': 'system'})}'; echo '{json.dumps(last)}'")
    result = await run(hf, line("a;", "a"), tmp_path / "logs", backend=CommandBackend(agent))
    assert written(tmp_path / "logs" / "a" / "response.md") == "all done"
    assert result.succeeded != failed
    assert ("the agent reported a failure: all done" in result.outcome.failure_reason) == failed
    text = (await (await hf.service()).latest(result.run_id)).diagnostics
    assert (text["totalTokensUsed"], text["totalCost"]) == (1500, 0.25)


@pytest.mark.covers("AT-132")
async def test_an_agent_is_reported_the_conversation_or_the_name_of_its_own(
    hf: Holdfast, tmp_path: Path
) -> None:
    graph = "goal=g, default_fidelity=full, thread_id=t"
    text = line('a [prompt="one"]; b [prompt="two"];', "a", "b", graph=graph)
    result = await run(hf, text, tmp_path / "x", backend=CommandBackend("tr a-z A-Z"))
    request = written(tmp_path / "x" / "b" / "request.md")
    assert request == "The conversation so far:\n\n[user]\none\n\n[assistant]\nONE\n\n[user]\ntwo"
    own = await run(hf, text, tmp_path / "y", backend=CommandBackend("echo {session} {prompt}"))
    names = [written(tmp_path / "y" / stage / "response.md").split() for stage in ("a", "b")]
    assert names[0][0] == names[1][0] != ""
    assert [each[1] for each in names] == ["one", "two"]
    assert own.run_id != result.run_id


@pytest.mark.covers("ATTRACTOR-HANDLER-08")
@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("agent {nonsense}", "unknown field {nonsense}"),
        ("", "command is empty"),
        ("agent 'x", "cannot be parsed"),
    ],
)
def test_a_command_that_means_nothing_is_refused(template: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        CommandBackend(template)


async def test_an_agent_whose_interpreter_is_not_there_fails_the_stage(hf: Holdfast, tmp_path: Path) -> None:
    """Only the program itself can be looked for: a run without that waits for a worker that has it."""
    agent = tmp_path / "agent"
    agent.write_text("#!/no/such/interpreter-4711\n")
    agent.chmod(0o755)
    result = await run(hf, line("a;", "a"), tmp_path / "logs", backend=CommandBackend(str(agent)))
    assert result.status == "fail"
    assert "the agent ended with exit code" in result.outcome.failure_reason


async def test_each_of_two_questions_to_an_agent_in_one_visit_is_its_own(
    hf: Holdfast, tmp_path: Path
) -> None:
    """As a manager asks that steers twice. The agent is killed with all that could tell how it ended."""
    agent = an_agent(tmp_path, 'cat "$1" >> "$2/seen"; kill -KILL 0')
    backend = CommandBackend(f"{agent} {{prompt_file}} {tmp_path}")

    class AsksTwice:
        async def perform(self, visit: StageVisit) -> StageOutcome:
            for prompt in ("first ", "second "):
                await ask_backend(backend, visit, prompt, "steer")
            return StageOutcome()

    registry = HandlerRegistry({"twice": AsksTwice()})
    runner = Runner(hf, registry=registry, logs_root=tmp_path / "logs")
    found = await runner.run(line("a [type=twice, effect=read];", "a"))
    for seen in ("first ", "first second "):
        assert found.status == "waiting", found.outcome
        assert written(tmp_path / "seen") == seen
        await (await hf.service()).answer(found.holds[0].id, "it succeeded")
        found = await runner.resume(found.run_id)
    assert found.succeeded
    assert written(tmp_path / "seen") == "first second "


@pytest.mark.covers("CP2-V4")
@pytest.mark.parametrize(
    ("template", "is_refused"),
    [
        ("claude -p", True),
        ("env A=b /opt/bin/claude --print --model {model}", True),
        ("sh -c 'claude -p --verbose | tail -n 1'", True),
        ("claude -p --output-format text", True),
        ("claude -p --output-format json", False),
        ("sh -c 'claude --print --output-format=stream-json --verbose'", False),
        ("claude-like -p", False),
        ("grep -p claude", False),
    ],
)
async def test_claude_without_its_events_is_refused_before_a_run(
    hf: Holdfast, tmp_path: Path, template: str, is_refused: bool
) -> None:
    """As text, an error of its API is an answer with exit code 0."""
    backend = CommandBackend(template)
    pipeline = prepare_pipeline(line("a;", "a"), PipelineSetup(backend=backend)).pipeline
    found = [str(each) for each in backend.problems(pipeline, pipeline.stages.values()).values()]
    assert any("prints an error of its API as an answer" in each for each in found) is is_refused


@pytest.mark.covers("CP2-V4")
@pytest.mark.parametrize("said", ["", "API Error: Rate limit reached"])
async def test_claude_that_prints_no_event_has_failed(hf: Holdfast, tmp_path: Path, said: str) -> None:
    (tmp_path / "claude").write_text(f"#!/bin/sh\ncat >/dev/null\necho '{said}'\n")
    (tmp_path / "claude").chmod(0o755)
    backend = CommandBackend(f"{tmp_path}/claude -p --output-format json")
    result = await run(hf, line("a;", "a"), tmp_path / "logs", backend=backend)
    assert result.status == "fail"
    assert f"the agent printed no event{': ' + said if said else ''}" in result.outcome.failure_reason
