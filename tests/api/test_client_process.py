"""The Python client and `holdfast serve`: restarts that nobody notices, and the proposal's example."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.tokens import ApiTokens
from holdfast.client import Client, Retries, RuntimeClient
from tests.api.test_serve import PATIENCE, Serve, served

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = """\
from dynamiq_runtime import RuntimeClient

client = RuntimeClient(base_url="http://localhost:8000")

# Start a run
run = client.create_run(workflow_uri="workflows/agent.yaml", input={"query": "..."})

# If run is paused for input
if run.status == "pending_input":
    # Get checkpoint info
    checkpoints = client.list_checkpoints(run.id)
    latest = checkpoints[0]
    
    print(f"Workflow waiting for input at: {latest.pending_input_context['prompt']}")
    
    # Provide input and resume
    client.send_input(run.id, content="APPROVE")
    
    # Or resume from checkpoint explicitly
    resumed_run = client.resume_run(run.id, checkpoint_id=latest.id)
"""  # noqa: W293
"""Section 8.2 of the runtime proposal, word for word."""

AGENT = """
from holdfast import Flow

agent = Flow("agent", effect="pure")

@agent.node
async def think(s):
    return {"plan": s["query"]}

agent.hold("sure", prompt="Go ahead with {{query}}?", options=["approve", "reject"])

@agent.node
async def act(s):
    return {"acted": s["decision"]}

agent.edge(think, "sure")
agent.edge("sure", act, when="decision == 'approve'")
"""

DOCUMENT = """
holdfast: "1.0"
name: agent-of-yaml
nodes:
  - {id: start, type: start}
  - id: sure
    type: checkpoint
    config: {prompt: "Go ahead with {{query}}?", options: [approve, reject]}
  - {id: act, type: set, config: {values: {acted: "{{decision}}"}}}
  - {id: done, type: end}
edges:
  - {source: start, target: sure}
  - {source: sure, source_port: approve, target: act}
  - {source: sure, source_port: reject, target: done}
  - {source: act, target: done}
input: {type: object, required: [query], properties: {query: {type: string}}}
"""


@pytest.fixture
def token(tmp_path: Path) -> str:
    """One that outlives a server's process."""

    async def made() -> str:
        async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf:
            grant = CredentialGrant(subject="user:dana@acme", roles=("admin",))
            return (await ApiTokens(await hf.open()).create(grant, by="user:test"))[1]

    return asyncio.run(made())


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A server that may load flows from a folder."""
    folder = tmp_path_factory.mktemp("agents")
    place = folder / "roots" / "workflows" / "agent.py"
    place.parent.mkdir(parents=True)
    place.write_text(AGENT)
    place.with_suffix(".yaml").write_text(DOCUMENT)
    with served(folder, str(EXAMPLES / "refund.py"), "--root", str(folder / "roots")) as server:
        yield server.ready()


@pytest.mark.covers("SERVER-SDK-01", "SERVER-SDK-02")
def test_stream_misses_nothing_and_repeats_nothing_when_its_server_is_killed(
    tmp_path: Path, token: str
) -> None:
    with served(tmp_path, "--lease", "2s") as first:
        address = first.ready().told["address"]
        port = address.rpartition(":")[2]
        client = Client(address, token, retries=Retries(first=0.05, longest=0.5), patience=PATIENCE)
        run = client.start("asks", wait=20)
        assert run.status == "pending_input"
        events = run.follow()
        seen = [next(events)]
        # Somebody looks on while the server dies; nothing tells the stream's reader of it.
        rest = threading.Thread(target=lambda: seen.extend(events))
        rest.start()
        first.child.send_signal(signal.SIGKILL)
        first.child.wait()
    with served(tmp_path, "--port", port, "--lease", "2s") as second:
        second.ready()
        run.answer("yes")
        rest.join(PATIENCE)
        assert not rest.is_alive()
        done = run.end(timeout=PATIENCE)
        stored = client.runs.events(run.id, limit=200)
        client.close()
    assert (done.status, done.state["went"]) == ("completed", True)
    assert [event.number for event in seen] == list(range(1, stored.last + 1))
    assert stored.ended is True
    assert "run.completed" in [event.type for event in seen]


@pytest.mark.covers("SERVER-SDK-01", "R-57", "R-67-http", "PLATFORM-DOC-06")
@pytest.mark.parametrize("file", ["agent.yaml", "agent.py"])
def test_example_of_the_proposal_runs_as_it_stands(agents: Serve, tmp_path: Path, file: str) -> None:
    ours = {
        "dynamiq_runtime": "holdfast.client",
        "http://localhost:8000": agents.told["address"],
        "agent.yaml": file,
    }
    text = EXAMPLE
    for word, own in ours.items():
        assert text.count(word) == 1
        text = text.replace(word, own)
    script = tmp_path / "example.py"
    script.write_text(text + "print(run.id, resumed_run.status)\n")
    env = {**os.environ, "HOLDFAST_TOKEN": agents.told["token"]}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "Workflow waiting for input at: Go ahead with ...?"
    with Client(agents.told["address"], agents.told["token"]) as client:
        ended = client.run(second.split()[0]).end(timeout=PATIENCE)
    assert (ended.status, ended.state["acted"]) == ("completed", "approve")


def test_example_starts_follows_and_answers_a_run_over_http(agents: Serve) -> None:
    env = {**os.environ, "HOLDFAST_URL": agents.told["address"], "HOLDFAST_TOKEN": agents.told["token"]}
    done = subprocess.run(
        [sys.executable, EXAMPLES / "over_http.py"], env=env, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "Refund 900 to c-1 for order C3" in done.stdout
    assert lines[-1].startswith("completed paid 900")


@pytest.mark.covers("R-57")
def test_four_calls_answer_as_the_server_does(agents: Serve) -> None:
    with RuntimeClient(agents.told["address"], token=agents.told["token"]) as client:
        run = client.create_run("workflows/agent.py", {"query": "it"}, wait=20)
        assert run.status == "pending_input"
        checkpoints = client.list_checkpoints(run.id, limit=1)
        assert [each.status for each in checkpoints] == ["pending_input"]
        assert checkpoints[0]["id"] == checkpoints[0].id == run.metadata.checkpoint_id
        # Nobody has answered: it goes on waiting, the same run.
        assert client.resume_run(run.id, checkpoint_id=checkpoints[0].id).id == run.id
        taken = client.send_input(run.id, "approve", checkpoint_id=checkpoints[0].id)
        assert taken.decision == "approve"
        client.client.run(run.id).end(timeout=PATIENCE)
        assert client.get_run(run.id).status == "completed"
        # The first checkpoint with another input: a run of its own.
        fork = client.resume_run(run.id, client.list_checkpoints(run.id)[-1].id, {"query": "more"})
        assert fork.forked_from
        assert fork.id != run.id
