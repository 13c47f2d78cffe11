"""`holdfast run FILE.dot` with models and agents, and what it says where nobody can answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.provider import Answer, Provider, Refusal
from tests.attractor.models import asked, nearby, said
from tests.attractor.run import dot, line
from tests.cli.conftest import Cli
from tests.deadlines import HANG

__all__ = ["nearby"]

KEY = "sk-of-a-test-4711"


def write(text: str) -> str:
    Path("x.dot").write_text(text)
    return "x.dot"


@pytest.mark.covers("ATTRACTOR-HANDLER-04", "ATTRACTOR-HANDLER-05", "AT-211")
@pytest.mark.covers("CP2-L1")
def test_keys_in_the_environment_are_enough(
    cli: Cli, nearby: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{nearby.url}/v1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", nearby.url)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_BASE_URL", nearby.url)
    nearby.says(Answer("one"), Answer("two"), Answer("three"))
    file = write(line("a [llm_model=gpt-x]; b [llm_model=claude-x]; c [llm_model=gemini-x];", "a", "b", "c"))
    ended = cli("run", file, "--json")
    assert (ended.code, ended.json["state"]["last_response"]) == (0, "three")
    assert [seen.path for seen in nearby.seen] == [
        "/v1/responses",
        "/v1/messages",
        "/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
    ]
    assert nearby.seen[2].headers["x-goog-api-key"] == KEY
    assert KEY not in ended.out + ended.err


@pytest.mark.covers("ATTRACTOR-HANDLER-10")
def test_a_run_with_a_model_goes_on_in_another_process(
    cli: Cli, nearby: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("models.toml").write_text(
        f'model = "m"\nprovider = "near"\n[providers.near]\nbase_url = "{nearby.url}/v1"\n'
    )
    monkeypatch.setenv("HOLDFAST_MODELS", "models.toml")
    nearby.says(Answer("4711"), Answer("4711"))
    text = dot(
        'a [prompt="Think"]; gate [shape=hexagon, label="Go on?"]; b [prompt="Which?"];',
        "start -> a -> gate; gate -> b [label=Go]; b -> done",
        "goal=g, default_fidelity=full, thread_id=t",
    )
    waiting = cli("run", write(text), "--backend", "model", "--json")
    assert waiting.code == 3
    assert cli("answer", waiting.json["id"], "Go").code == 0
    assert cli("worker", "--until-idle").code == 0
    *before, (_, last) = said(nearby.seen[1])
    assert before == [("user", "Think"), ("assistant", "4711")]
    assert last.endswith("\n\nWhich?")


@pytest.mark.covers("ATTRACTOR-HANDLER-08")
def test_a_command_is_a_backend(cli: Cli) -> None:
    file = write(line('a [prompt="hi", fidelity=full];', "a"))
    ended = cli("run", file, "--backend", "cli:tr a-z A-Z", "--json", "--logs", "D")
    assert ended.json["state"]["last_response"] == "HI"
    wrong = cli("run", file, "--backend", "cli:x {y}")
    assert wrong.code == 2
    assert "unknown field {y} in a backend's command" in wrong.err
    assert "Traceback" not in wrong.err


@pytest.mark.covers("ATTRACTOR-HANDLER-08")
def test_the_environment_names_the_backend_of_workers(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_BACKEND", "cli:tr a-z A-Z")
    file = write(line('a [prompt="hi", fidelity=full];', "a"))
    assert cli("run", file, "--detach", "--logs", "D").code == 0
    assert cli("worker", "--until-idle").code == 0
    assert Path("D/a/response.md").read_text() == "HI"


@pytest.mark.covers("ATTRACTOR-BAD-05")
@pytest.mark.parametrize(
    ("attrs", "text"),
    [
        ("llm_provider=nobody, llm_model=m", "stage 'a' uses the provider 'nobody'"),
        ("llm_model=gpt-x", "Set OPENAI_API_KEY"),
        ("prompt=x", "stage 'a' names no model"),
    ],
)
def test_what_is_missing_is_said_before_anything_runs(cli: Cli, attrs: str, text: str) -> None:
    ended = cli("run", write(line(f"t [shape=parallelogram, tool_command=false]; a [{attrs}];", "t", "a")),
                "--backend", "model")  # fmt: skip
    assert ended.code == 2
    assert text in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
    assert not Path(".holdfast").exists()


@pytest.mark.covers("ATTRACTOR-HANDLER-03", "AT-180")
def test_a_stage_may_be_simulated_alone(cli: Cli) -> None:
    ended = cli("run", write(line("a [llm_provider=simulation];", "a")), "--json")
    assert ended.json["state"]["last_response"] == "[Simulated] Response for stage: a"


@pytest.mark.covers("ATTRACTOR-BAD-06")
def test_a_dead_endpoint_is_reported_in_one_sentence(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("models.toml").write_text(
        'model = "m"\nattempts = 1\n[providers.dead]\nbase_url = "http://127.0.0.1:1/v1"\n'
    )
    monkeypatch.setenv("HOLDFAST_MODELS", "models.toml")
    ended = cli("run", write(line("a;", "a")))
    assert ended.code == 1
    reason = next(each for each in ended.out.splitlines() if each.startswith("reason:"))
    assert "http://127.0.0.1:1/v1/chat/completions did not answer" in reason
    assert "Traceback" not in ended.out + ended.err


def test_the_preamble_is_sent_before_the_prompt(
    cli: Cli, nearby: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{nearby.url}/v1")
    nearby.says(Answer("one"), Answer("two"))
    cli(
        "run", write(line('a; b [prompt="Now b"];', "a", "b", graph="goal=G, llm_model=gpt-x")), "--logs", "D"
    )
    result = asked(nearby.seen[1])
    assert result == Path("D/b/preamble.md").read_text() + "\n\nNow b"
    assert "- a: success: one" in result
    assert "- last_response: one" in result


LOGS = """
import logging, os
from holdfast import tool
from holdfast.attractor import ModelBackend

@tool(effect="read")
def look(place: str) -> str:
    \"\"\"Looks at a place.\"\"\"
    logging.getLogger("holdfast").warning("looking with %s", os.environ["OPENAI_API_KEY"])
    return "calm"

backend = ModelBackend(tools=[look])
"""


@pytest.mark.covers("CP2-L10")
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    ("name", "model"), [("OPENAI", "gpt-x"), ("ANTHROPIC", "claude-x"), ("GEMINI", "gemini-x")]
)
def test_a_key_is_in_no_log_record_event_or_file(
    tmp_path: Path, nearby: Provider, form: str, name: str, model: str
) -> None:
    """The endpoint repeats it in its errors, and code of the user logs it."""
    base = f"{nearby.url}/v1" if name == "OPENAI" else nearby.url
    (tmp_path / "mine.py").write_text(LOGS.replace("OPENAI", name))
    (tmp_path / "x.dot").write_text(line(f"a [llm_model={model}]; b [llm_model={model}];", "a", "b"))
    nearby.says(
        Refusal(503, {"retry-after": "0"}, body=json.dumps({"error": {"message": f"busy for {KEY}"}})),
        Answer(calls=[("c1", "look", {"place": "x"})]),
        Answer("done"),
        Refusal(401, body=json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}})),
    )
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HOLDFAST_")}
    more = {
        f"{name}_API_KEY": KEY,
        f"{name}_BASE_URL": base,
        "HOLDFAST_LOG": form,
        "HOLDFAST_LOG_LEVEL": "DEBUG",
    }
    words = ["run", "x.dot", "--backend", "mine.py:backend", "--logs", "D"]
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", *words],
        cwd=tmp_path,
        env={**kept, **more},
        capture_output=True,
        check=False,
        timeout=HANG,
    )
    said = ended.stdout + ended.stderr
    assert ended.returncode == 1, said.decode()
    assert b"looking with ***" in said
    assert b"Incorrect API key provided: ***" in said
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.suffix == ".db" for file in files)
    assert KEY.encode() not in said + b"".join(file.read_bytes() for file in files)
