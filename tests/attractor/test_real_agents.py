"""The real agents against servers on this machine, without an account.

They are not part of the dev environment: `npm install @anthropic-ai/claude-code @openai/codex
@google/gemini-cli`, and HOLDFAST_TEST_AGENTS names the folder with their programs.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import AgentBackend
from tests.attractor.run import line, run, written

pytestmark = pytest.mark.anyio

PROGRAMS = os.environ.get("HOLDFAST_TEST_AGENTS", "")
SAID = "It is done."
MODELS = {"claude": "claude-opus-4-8", "codex": "gpt-5", "gemini": "gemini-2.5-pro"}
CODEX = """
model_provider = "near"
[model_providers.near]
name = "near"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


def events(*found: dict[str, Any]) -> bytes:
    return "".join(f"event: {each.get('type')}\ndata: {json.dumps(each)}\n\n" for each in found).encode()


def messages() -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {
        "id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    return events(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    )


def responses() -> bytes:
    content = [{"type": "output_text", "text": SAID, "annotations": []}]
    item = {"type": "message", "role": "assistant", "id": "i", "content": content}
    usage = {
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 30}, "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 120,
    }  # fmt: skip
    return events(
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    )


def generated() -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": SAID}]}
    usage = {"promptTokenCount": 50, "candidatesTokenCount": 8, "totalTokenCount": 58}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "modelVersion": "x",
    }


class Answers(BaseHTTPRequestHandler):
    refuses = 0
    """An HTTP status for every question."""

    def log_message(self, *args: Any) -> None:  # type: ignore[override]
        pass

    def do_GET(self) -> None:
        self._send(b'{"data": [], "models": []}')

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if Answers.refuses:
            error = {"type": "invalid_request_error", "code": Answers.refuses, "message": "refused here"}
            self._send(json.dumps({"type": "error", "error": error}).encode(), Answers.refuses)
        elif "messages" in self.path:
            self._send(messages(), kind="text/event-stream")
        elif "responses" in self.path:
            self._send(responses(), kind="text/event-stream")
        elif "stream" in self.path:
            self._send(f"data: {json.dumps(generated())}\r\n\r\n".encode(), kind="text/event-stream")
        else:
            self._send(json.dumps(generated()).encode())

    def _send(self, body: bytes, status: int = 200, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".gemini").mkdir()
    (home / ".codex" / "config.toml").write_text(CODEX.format(url=url))
    auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(auth))
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    for name in ("ANTHROPIC", "OPENAI", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", "a-key-of-a-test")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
    monkeypatch.chdir(tmp_path)
    Answers.refuses = 0
    yield
    server.shutdown()
    server.server_close()


def skip_without(name: str) -> None:
    if not shutil.which(name, path=PROGRAMS):
        pytest.skip(f"HOLDFAST_TEST_AGENTS names no folder with {name}")


@pytest.mark.covers("CP2-P3")
@pytest.mark.parametrize("name", list(MODELS))
async def test_a_real_agent_answers_and_continues_its_session(
    hf: Holdfast, tmp_path: Path, installed: None, name: str
) -> None:
    skip_without(name)
    text = line(
        f'a [prompt="One", llm_model="{MODELS[name]}"]; b [prompt="Two", llm_model="{MODELS[name]}", '
        "agent_permissions=plan];",
        "a",
        "b",
        graph="goal=g, default_fidelity=full, thread_id=t",
    )
    result = await run(hf, text, tmp_path / "logs", backend=AgentBackend(name))
    assert result.succeeded, result.outcome.failure_reason
    logs = tmp_path / "logs"
    assert [written(logs / stage / "response.md") for stage in "ab"] == [SAID, SAID]
    ids = {json.loads(written(logs / stage / "session.json"))["session"] for stage in "ab"}
    assert len(ids) == 1
    found = (await (await hf.service()).latest(result.run_id)).diagnostics
    # What codex reports for its second turn is the sum of both.
    assert found["totalTokensUsed"] == {"claude": 34, "codex": 240, "gemini": 116}[name]


@pytest.mark.parametrize("name", list(MODELS))
async def test_a_refused_request_of_a_real_agent_is_final(
    hf: Holdfast, tmp_path: Path, installed: None, name: str
) -> None:
    skip_without(name)
    Answers.refuses = 400
    text = line(f'a [prompt="One", llm_model="{MODELS[name]}", max_retries=2];', "a")
    result = await run(hf, text, tmp_path / "logs", backend=AgentBackend(name))
    assert result.status == "fail"
    assert "refused here" in result.outcome.failure_reason
    assert result.context["failure_class"] == "terminal"


@pytest.mark.parametrize("name", list(MODELS))
async def test_a_session_that_a_real_agent_does_not_have_begins_anew(
    hf: Holdfast, tmp_path: Path, installed: None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without(name)
    stages = f'a [prompt="One", llm_model="{MODELS[name]}"]; t [shape=parallelogram, tool_command="{{}}"]; '
    forget = "rm -rf $HOME/.claude/projects $HOME/.codex/sessions $HOME/.gemini/tmp"
    text = line(
        f'{stages.format(forget)} b [prompt="Two", llm_model="{MODELS[name]}"];',
        "a",
        "t",
        "b",
        graph="goal=g, default_fidelity=full, thread_id=t",
    )
    result = await run(hf, text, tmp_path / "logs", backend=AgentBackend(name))
    assert result.succeeded, result.outcome.failure_reason
    assert (tmp_path / "logs" / "b" / "request-2.md").exists()
