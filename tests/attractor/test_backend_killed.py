"""Engines are killed while a model or an agent works: what was said and done stands, and is not repeated."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.provider import Answer, Hangs, Provider
from tests.attractor.kill import Place, until
from tests.attractor.models import nearby
from tests.attractor.run import dot, line, written

__all__ = ["nearby"]

BACKEND = """
from holdfast.attractor import ModelBackend, ModelSettings, Providers, ProviderSpec

near = ProviderSpec(base_url="{url}/v1")
settings = ModelSettings(model="m", providers={{"near": near}})
backend = ModelBackend(Providers(settings, environment={{}}), kits=["shell"])
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "x", line('a [prompt="Do it"];', "a"))
    yield made
    made.clean_up()


@pytest.mark.covers("ATTRACTOR-PROOF-16", "ATTRACTOR-HANDLER-07")
def test_a_conversation_goes_on_where_its_process_was_killed(place: Place, nearby: Provider) -> None:
    (place.folder / "killed_backend.py").write_text(BACKEND.format(url=nearby.url))
    asks = ("--backend", "killed_backend.py:backend")
    nearby.says(
        Answer(calls=[("c1", "shell", {"command": "echo ran >>trace"})]), Hangs(0), Answer("all done")
    )
    first = place.call("run", "x.dot", "--logs", "D", "--run-id", place.run_id, *asks)
    until(lambda: len(nearby.seen) == 2 or first.process.exitcode is not None, first.told)
    first.kill()
    again = place.call("resume", place.run_id, "--json", *asks)
    assert again.end() == 0, again.told
    assert written(place.folder / "D" / "a" / "response.md") == "all done"
    assert written(place.folder / "trace") == "ran\n"
    assert nearby.bodies[1] == nearby.bodies[2]
    assert len(nearby.seen) == 3


@pytest.mark.covers("ATTRACTOR-HANDLER-08")
def test_an_agent_that_outlives_its_engine_is_adopted(place: Place) -> None:
    script = "echo ran >>trace; until test -e go || ! test -e trace; do sleep 0.02; done; echo all done"
    asks = ("--backend", f"cli:sh -c '{script}'")
    first = place.call("run", "x.dot", "--logs", "D", "--run-id", place.run_id, *asks)
    until(lambda: place.has("trace") or first.process.exitcode is not None, first.told)
    first.kill()
    place.touch("go")
    again = place.call("resume", place.run_id, "--json", *asks)
    assert again.end() == 0, again.told
    assert written(place.folder / "D" / "a" / "response.md") == "all done"
    assert written(place.folder / "trace") == "ran\n"


LABELS = """
import json, os, re, sys, time

asked = sys.stdin.read()
open("trace", "a").write("ran\\n")
while os.path.exists("trace") and not os.path.exists("go"):
    time.sleep(0.02)
known = re.search('"verdict_id": "(v[0-9a-f]+)"', asked)[1]
said = {"outcome": "success", "preferred_label": "Change it", "verdict_id": known}
print("I looked.", "```json", json.dumps(said), "```", sep=chr(10))
"""


@pytest.mark.covers("CP2-V2")
def test_the_verdict_of_an_agent_that_outlives_its_engine_is_its_own(tmp_path: Path) -> None:
    """Its id is the one that it was asked with: a label that is not read would lead along the other edge."""
    text = dot(
        'a [prompt="Do it", goal_gate=true, fail_closed=true]; b [shape=parallelogram, tool_command="true"];',
        'start -> a; a -> done [label="Ship it", weight=9]; a -> b [label="Change it"]; b -> done',
    )
    place = Place(tmp_path / "x", text)
    (place.folder / "agent.py").write_text(LABELS)
    asks = ("--backend", f"cli:{sys.executable} {place.folder}/agent.py")
    first = place.call("run", "x.dot", "--logs", "D", "--run-id", place.run_id, *asks)
    until(lambda: place.has("trace") or first.process.exitcode is not None, first.told)
    first.kill()
    place.touch("go")
    again = place.call("resume", place.run_id, "--json", *asks)
    assert again.end() == 0, again.told
    assert written(place.folder / "trace") == "ran\n"
    assert (place.folder / "D/b/status.json").exists()
    place.clean_up()


FUNCTION = """
import os


def answer(prompt):
    with open("trace", "a") as file:
        file.write("called\\n")
    if not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), 9)
    return "all done"


def repeatable(prompt):
    return answer(prompt)


repeatable.effect = "read"
"""


@pytest.mark.covers("CP2-D3")
@pytest.mark.parametrize(
    ("decision", "calls", "status"),
    [("happened", 1, "completed"), ("not_happened", 2, "completed"), ("fail", 1, "failed")],
)
def test_a_function_is_not_called_again_in_silence(
    place: Place, decision: str, calls: int, status: str
) -> None:
    (place.folder / "killed_function.py").write_text(FUNCTION)
    asks = ("--backend", "killed_function.py:answer")
    first = place.call("run", "x.dot", "--logs", "D", "--run-id", place.run_id, *asks)
    assert first.end() == -9, first.told
    again = place.call("resume", place.run_id, "--json", *asks)
    assert again.end() == 3, again.told
    assert "step 'answer' (" in again.told
    assert "of node 'a'" in again.told
    assert place.trace == ["called"]
    answered = place.call("answer", place.run_id, decision)
    assert answered.end() == 0, answered.told
    last = place.call("resume", place.run_id, "--json", *asks)
    assert last.end() in (0, 1), last.told
    assert place.end().status == status
    assert place.trace == ["called"] * calls


@pytest.mark.parametrize(
    ("function", "more"), [("repeatable", ""), ("answer", ", effect=read"), ("answer", ", in_doubt=retry")]
)
def test_a_function_that_may_be_repeated_is_called_again(tmp_path: Path, function: str, more: str) -> None:
    place = Place(tmp_path / "x", line(f'a [prompt="Do it"{more}];', "a"))
    (place.folder / "killed_function.py").write_text(FUNCTION)
    asks = ("--backend", f"killed_function.py:{function}")
    first = place.call("run", "x.dot", "--logs", "D", "--run-id", place.run_id, *asks)
    assert first.end() == -9, first.told
    again = place.call("resume", place.run_id, "--json", *asks)
    assert again.end() == 0, again.told
    assert place.trace == ["called", "called"]
    assert written(place.folder / "D" / "a" / "response.md") == "all done"
