"""`llm` and `agent` nodes against a real endpoint that refuses, answers nonsense, is down or must not be
reached."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.app.result import Result
from holdfast.documents.connections import ConnectionSettings, ModelConnection
from tests.agents.provider import Answer, Provider, Refusal, Silence, a_provider
from tests.documents.run import flow_text, start

pytestmark = pytest.mark.anyio

HEAD = "input: {properties: {text: {}}}"
SCHEMA = "schema: {type: object, properties: {score: {type: integer}}, required: [score]}"
EDGES = "start -> it -> done\nit:error -> failed -> done"


@pytest.fixture
async def provider(anyio_backend: str) -> AsyncIterator[Provider]:
    async with a_provider() as found:
        yield found


def settings(provider: Provider, *, internal: bool = True, url: str = "") -> ConnectionSettings:
    """One attempt: what the endpoint does is seen by the node at once."""
    spec = ModelConnection(
        model="m-1", base_url=f"{url or provider.url}/v1", internal=internal, attempts=1, timeout=5
    )
    return ConnectionSettings(connections={"gpt": spec})


def one(config: str, edges: str = "start -> it -> done") -> str:
    nodes = f"""
        {{id: start, type: start}}
        {{id: it, type: llm, config: {{connection: gpt, prompt: Rate, {config}}}}}
        {{id: done, type: end}}
        """
    if "failed" in edges:
        nodes += "{id: failed, type: set, config: {values: {went: wrong}}}"
    return flow_text(nodes, edges, HEAD)


async def ask(hf: Holdfast, provider: Provider, config: str = "system: Be brief", **more: Any) -> Result[Any]:
    edges = more.pop("edges", "start -> it -> done")
    return await start(hf, one(config, edges), {}, settings=settings(provider, **more))


async def test_llm_node_asks_a_real_endpoint(hf: Holdfast, provider: Provider) -> None:
    provider.says(Answer("Good."))
    ended = await ask(hf, provider)

    assert ended.state["it"] == "Good."
    [seen] = provider.seen
    assert seen.headers["host"] == provider.url.removeprefix("http://")


async def test_llm_node_fails_with_the_reason_when_the_model_refuses(
    hf: Holdfast, provider: Provider
) -> None:
    provider.says(Answer("", finish="content_filter"))
    ended = await ask(hf, provider)

    assert ended.status == "failed"
    assert ended.failed_node == "it"
    assert ended.error is not None
    assert ended.error.code == "model_refused"


async def test_llm_node_fails_at_once_when_the_endpoint_refuses_the_request(
    hf: Holdfast, provider: Provider
) -> None:
    provider.says(Refusal(401, body='{"error": {"message": "no such key"}}'), Answer("Never asked."))
    ended = await ask(hf, provider, "retry: {attempts: 3, delay: 1s}")

    assert ended.error is not None
    assert ended.error.code == "model_refused"
    assert "no such key" in ended.error.message
    assert len(provider.seen) == 1


@pytest.mark.parametrize(
    "turn",
    [Answer(raw=["{not json"]), Answer(raw=["[1, 2]"]), Answer(raw=['{"choices": "none"}'])],
    ids=["no JSON", "no object", "no choices"],
)
async def test_llm_node_takes_its_error_port_when_the_answer_is_malformed(
    hf: Holdfast, provider: Provider, turn: Answer
) -> None:
    provider.says(turn)
    ended = await ask(hf, provider, edges=EDGES)

    assert ended.completed
    assert ended.state["went"] == "wrong"
    assert "it" not in ended.state or ended.state["it"] is None


async def test_llm_node_with_a_schema_asks_again_and_fails_when_no_answer_fits(
    hf: Holdfast, provider: Provider
) -> None:
    wrong = Answer(calls=[("c1", "final_answer", {"score": "high"})])
    provider.says(wrong, Answer(calls=[("c2", "final_answer", {"score": 3})]))
    ended = await ask(hf, provider, SCHEMA)
    assert ended.state["it"] == {"score": 3}
    assert "score" in str(provider.seen[1].json["messages"][-1])

    provider.says(*[Answer(calls=[(f"c{n}", "final_answer", '{"score"')]) for n in range(5)])
    failed = await ask(hf, provider, SCHEMA)
    assert failed.status == "failed"
    assert failed.failed_node == "it"
    assert len(provider.seen) <= 2 + 5


async def test_run_of_an_llm_node_goes_on_when_its_model_is_up_again(
    hf: Holdfast, provider: Provider
) -> None:
    provider.says(Silence(), Refusal(503), Answer("Here again."))
    ended = await ask(hf, provider, "retry: {attempts: 3, delay: 0s}")

    assert ended.state["it"] == "Here again."
    assert len(provider.seen) == 3


async def test_llm_node_fails_when_its_model_stays_down(hf: Holdfast, provider: Provider) -> None:
    ended = await ask(hf, provider, url="http://127.0.0.1:9")

    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error.code == "model_unavailable"


@pytest.mark.parametrize(
    "url",
    ["", "http://169.254.169.254", "http://localhost:9", "http://[::1]:9"],
    ids=lambda each: each or "own",
)
async def test_model_in_the_internal_network_is_not_reached_unless_the_operator_allows_it(
    hf: Holdfast, provider: Provider, url: str
) -> None:
    provider.says(Answer("Secrets of the network."))
    ended = await ask(hf, provider, "retry: {attempts: 3, delay: 0s}", internal=False, url=url)

    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error.code == "egress_refused"
    assert provider.seen == []


async def test_metadata_service_is_no_model_even_if_the_operator_allows_its_host(
    hf: Holdfast, provider: Provider
) -> None:
    ended = await ask(hf, provider, internal=True, url="http://169.254.169.254")

    assert ended.error is not None
    assert ended.error.code == "egress_refused"


async def test_no_proxy_of_the_environment_gets_the_request(
    hf: Holdfast, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    provider.says(Answer("Directly."))

    assert (await ask(hf, provider)).state["it"] == "Directly."
