"""`holdfast serve` on MariaDB with large values in S3: a document with a skill from its deployment to its
end, over HTTP alone, with the server killed while a person is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.test_serve import is_done, served, until
from tests.services import mariadb
from tests.services.s3 import KEYS, S3Server

FUNCTIONS = """
import random

def collect():
    return random.Random(1).randbytes(1_500_000).hex()

def write(ctx, text):
    return {"letter": ctx.skills["letters"].instructions, "size": len(text)}
"""
DOCUMENT = """
holdfast: "1.0"
name: letter
config: {scaiqueue: {scope: support}}
nodes:
  - {id: start, type: start}
  - {id: collect, type: python, config: {function: collect, effect: read}}
  - {id: ask, type: hitl_review, config: {queue: reviews, prompt: Send it?, sections: [{type: decision, options: [approve, reject]}]}}
  - {id: write, type: python, config: {function: write, args: {text: "{{collect}}"}}}
  - {id: done, type: end, config: {output: {letter: "{{write}}", decision: "{{decision}}"}}}
edges:
  - {source: start, target: collect}
  - {source: collect, target: ask}
  - {source: ask, source_port: approve, target: write}
  - {source: ask, source_port: reject, target: done}
  - {source: write, target: done}
"""  # noqa: E501  (a node reads best on one line)


def sent(client: httpx2.Client, method: str, path: str, body: Any = None) -> Any:
    answer = client.request(method, path, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, s3_server: S3Server, prefix: str) -> str:
    monkeypatch.setenv("HOLDFAST_BLOBS", s3_server.address(prefix))
    for name, value in KEYS.items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    return mariadb.emptied("served")


@pytest.mark.anyio
@pytest.mark.covers("PLATFORM-SKILL-01", "BS-7", "MB-8")
async def test_document_with_a_skill_is_served_on_mariadb_and_s3_over_a_killed_server(
    tmp_path: Path, store: str, s3_server: S3Server, prefix: str
) -> None:
    code = tmp_path / "letters.py"
    code.write_text(FUNCTIONS)
    # The killed worker still has the lease of the run that it was about to put aside.
    words = ("--functions", str(code), "--lease", "3s")
    with served(tmp_path, *words, store=store) as first:
        with first.ready().client() as client:
            sent(client, "PUT", "/v1/skills/letters/1.0.0", {"instructions": "Dear customer."})
            yaml = {"Content-Type": "application/yaml"}
            made = client.post("/v1/flows", content=DOCUMENT.encode(), headers=yaml)
            assert made.status_code == 201, made.text
            sent(client, "PUT", "/v1/deployments/post", {"flow": "letter", "skills": ["letters@^1"]})
            run = sent(client, "POST", "/v1/runs", {"flow": "letter", "deployment": "post"})["id"]
            until(lambda: sent(client, "GET", "/v1/queues/support/reviews/messages")["items"], "it is asked")
            sent(client, "PUT", "/v1/skills/letters/1.1.0", {"instructions": "Hello."})
            sent(client, "POST", "/v1/skills/letters/1.0.0/yank", {"reason": "too stiff"})
        first.child.kill()
        first.child.wait()

    [(key, status, core)] = mariadb.execute(
        "SELECT state_s3_key, status, core_id FROM mod_scaicore_checkpoints", store
    )
    assert (status, core) == ("pending", _deployment(store))
    blobs = s3_server.blobs(prefix).of("default")
    state = json.loads(await blobs.get_key(key))
    assert state["runId"] == run
    assert len([digest async for digest in blobs.list()]) == 1

    with served(tmp_path, *words, store=store) as second, second.ready().client() as client:
        reviews = "/v1/queues/support/reviews/messages"
        [work] = sent(client, "POST", f"{reviews}/claim", {"wait": 30})["items"]
        answer = {"token": work["claim_token"], "result": {"decision": "approve"}}
        assert sent(client, "POST", f"{reviews}/{work['id']}/complete", answer)["state"] == "completed"
        until(is_done(client, run), "the other server resumes it")
        letter = sent(client, "GET", f"/v1/runs/{run}/artifacts/letter")
        assert letter == {"letter": "Dear customer.", "size": 3_000_000}
        assert client.get(f"/v1/runs/{run}/artifacts/decision").text == "approve"
        assert second.end() == 0


def _deployment(store: str) -> str:
    [(found,)] = mariadb.execute("SELECT DISTINCT deployment FROM runs", store)
    return found
