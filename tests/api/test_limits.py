"""What a server does with too much, too fast, too large, and with callers of all kinds."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import httpx2
import pytest
from backports import zstd

from holdfast import Flow, Holdfast
from holdfast.api.app import ApiSettings
from holdfast.api.rate_limit import TokenBuckets
from holdfast.errors import RateLimitedError
from tests.api.conftest import Server, serving
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio

PAGE = "https://app.example"


@pytest.mark.covers("SERVER-API-17", "SERVER-API-13")
async def test_body_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    settings = ApiSettings(most_body=1000, most_file=2000)
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf, serving(hf, settings) as server:
        result = await server.client.post("/v1/runs", content=b"x" * 1001)
        assert (result.status_code, result.json()["code"]) == (413, "too_large")

        async def endless() -> object:
            for _ in range(100):
                yield b"x" * 100

        drip = await server.client.post("/v1/runs", content=endless())  # type: ignore[arg-type]
        assert drip.status_code == 413
        file = await server.client.post("/v1/runs/import", content=b"x" * 1500)
        assert file.status_code == 422
        assert (await server.client.post("/v1/runs/import", content=b"x" * 2001)).status_code == 413


@pytest.mark.covers("SERVER-API-18")
async def test_caller_who_is_too_fast_is_reported_when_to_come_back(tmp_path: Path) -> None:
    settings = ApiSettings(pace=0.1, burst=30, anonymous_pace=0.1)
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf, serving(hf, settings) as server:
        answers = [await server.client.get("/v1/runs") for _ in range(5)]
        assert [each.status_code for each in answers] == [200, 200, 200, 429, 429]
        last = answers[-1]
        assert 1 <= int(last.headers["retry-after"]) <= 11
        assert (last.json()["code"], last.json()["retryable"]) == ("rate_limited", True)
        # Whoever guesses is slowed down too, and takes nothing from those who are known.
        wrong = {"Authorization": "Bearer hf_wrong"}
        guesses = [(await server.client.get("/v1/runs", headers=wrong)).status_code for _ in range(4)]
        assert guesses == [401, 401, 401, 429]


@pytest.mark.covers("SERVER-API-18")
def test_bucket_fills_again_as_time_goes_by() -> None:
    now = [100.0]
    bucket = TokenBuckets(10, 1, "by one credential", now=lambda: now[0])
    for _ in range(10):
        bucket.take("a")
    with pytest.raises(RateLimitedError):
        bucket.take("a")
    bucket.take("b")
    now[0] += 0.11
    bucket.take("a")
    with pytest.raises(RateLimitedError):
        bucket.take("a")
    free = TokenBuckets(0, 1, "by one credential")
    for _ in range(1000):
        free.take("a")


@pytest.mark.covers("SERVER-API-19")
async def test_long_answers_are_compressed_for_those_who_take_it(server: Server, greeting: Flow) -> None:
    run = (await greeting.run({"name": "you" * 1000}, on=server.hf)).run_id
    path = f"{server.serving.address}/v1/runs/{run}/checkpoints/latest"
    known = {"Authorization": f"Bearer {server.token}"}
    async with httpx2.AsyncClient() as plain:
        whole = await plain.get(path, headers={**known, "Accept-Encoding": "identity"})
        assert "content-encoding" not in whole.headers
        assert whole.headers["vary"] == "Accept-Encoding"
        for wanted, expand in (("gzip", gzip.decompress), ("zstd, gzip;q=0.5", zstd.decompress)):
            async with plain.stream("GET", path, headers={**known, "Accept-Encoding": wanted}) as answer:
                raw = b"".join([part async for part in answer.aiter_raw()])
            assert answer.headers["content-encoding"] == wanted.partition(",")[0]
            assert int(answer.headers["content-length"]) == len(raw) < len(whole.content)
            assert expand(raw) == whole.content
            again = {**known, "If-None-Match": answer.headers["etag"]}
            assert (await plain.get(path, headers=again)).status_code == 304
        none = await plain.get(path, headers={**known, "Accept-Encoding": "gzip;q=0"})
        assert "content-encoding" not in none.headers
        short = await server.client.get("/v1/dead", headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in short.headers


@pytest.mark.covers("SERVER-API-20")
async def test_pages_of_other_origins_call_only_where_they_are_listed(tmp_path: Path) -> None:
    settings = ApiSettings(origins=(PAGE,))
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}") as hf, serving(hf, settings) as server:
        before = await server.client.options("/v1/runs", headers={"Origin": PAGE, **asks})
        assert before.status_code == 200
        assert before.headers["access-control-allow-origin"] == PAGE
        assert "access-control-allow-credentials" not in before.headers
        other = await server.client.options("/v1/runs", headers={"Origin": "https://evil.example", **asks})
        assert other.status_code == 400
        assert "access-control-allow-origin" not in other.headers
        said = await server.client.get("/v1/runs", headers={"Origin": PAGE})
        assert said.headers["access-control-allow-origin"] == PAGE
        assert "ETag" in said.headers["access-control-expose-headers"]
        silent = await server.client.get("/v1/runs", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in silent.headers


@pytest.mark.covers("SERVER-API-20")
async def test_no_origin_is_allowed_unless_somebody_lists_it(server: Server) -> None:
    said = await server.client.get("/v1/runs", headers={"Origin": PAGE})
    assert "access-control-allow-origin" not in said.headers


@pytest.mark.covers("SERVER-API-13", "SERVER-API-16")
async def test_method_that_is_not_for_a_path_learns_which_are(server: Server) -> None:
    answer = await server.client.delete("/v1/runs")
    assert (answer.status_code, answer.headers["content-type"]) == (405, "application/problem+json")
    assert set(answer.headers["allow"].replace(" ", "").split(",")) == {"GET", "HEAD", "POST"}
    head = await server.client.head("/v1/runs")
    assert (head.status_code, head.content) == (200, b"")
    own = await server.client.get("/v1/runs", headers={"X-Request-Id": "abc-1"})
    assert own.headers["x-request-id"] == "abc-1"
    bad = await server.client.get("/v1/runs", headers={"X-Request-Id": "a b\tc"})
    assert bad.headers["x-request-id"] != "a b\tc"


@pytest.mark.covers("R-66-http", "PLAIN-WIRE-04")
async def test_old_paths_answer_like_ours(server: Server, greeting: Flow) -> None:
    run = (await greeting.run({"name": "you"}, on=server.hf)).run_id
    ours = await server.json("GET", f"/v1/runs/{run}")
    points = await server.json("GET", f"/v1/runs/{run}/checkpoints")
    headers = {"Accept": "application/json"}
    for prefix in ("", "/v2", "/api/v1", "/api", "/api/v2"):
        assert await server.json("GET", f"{prefix}/runs/{run}", headers=headers) == ours
        same = await server.json("GET", f"{prefix}/runs/{run}/checkpoints", headers=headers)
        assert same == points, prefix


@pytest.mark.covers("R-66-http", "PLAIN-WIRE-04")
async def test_run_is_started_by_the_name_of_the_document_under_every_prefix(
    server: Server, greeting: Flow
) -> None:
    server.hf.register(greeting.program())
    for prefix in ("", "/v1", "/v2", "/api", "/api/v1", "/api/v2"):
        for name in ("workflow_uri", "flow"):
            body = {name: greeting.name, "input": {"name": "you"}}
            run = await server.json("POST", f"{prefix}/runs", 201, json=body)
            assert run["flow"] == greeting.name


MALFORMED = [
    (b"{", 400, "not_json"),
    (b"\xff\xfe", 400, "not_json"),
    (b"[]", 422, "invalid_input"),
    (b'"x"', 422, "invalid_input"),
    (b'{"flow": 3}', 422, "invalid_input"),
    (b'{"flow": "a", "priority": 1e999}', 422, "invalid_input"),
    (b'{"flow": "' + b"x" * 300 + b'"}', 422, "invalid_input"),
    (b'{"flow": "a", "input": ' + b"[" * 5000 + b"]" * 5000 + b"}", 422, "invalid_input"),
]


@pytest.mark.covers("SERVER-BAD-01", "SERVER-API-13")
async def test_malformed_body_is_reported_what_to_change(server: Server) -> None:
    for content, status, code in MALFORMED:
        answer = await server.client.post("/v1/runs", content=content)
        assert (answer.status_code, answer.json()["code"]) == (status, code), (content[:80], answer.text)
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.covers("SERVER-BAD-01")
async def test_what_is_no_request_is_reported_as_a_problem(server: Server) -> None:
    """Before anything of the application sees it: a path without end, and bytes that are no HTTP."""
    for sent, status, code in (
        (b"GET /v1/runs?flow=" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"431", "headers_too_large"),
        (b"\x16\x03\x01 tls?\r\n\r\n", b"400", "bad_request"),
    ):
        reader, writer = await asyncio.open_connection(server.serving.host, server.serving.port)
        writer.write(sent)
        answer = await asyncio.wait_for(reader.read(), HANG)
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 " + status), answer[:200]
        assert b"application/problem+json" in head
        assert json.loads(body)["code"] == code
