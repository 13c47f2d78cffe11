"""The matrix and the smoke test of the public client specification (ULM 8.9, 8.10), each line with each of
the three protocols, over a real HTTP server with scripted answers. `tests/agents/test_checklists.py` lists
them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from holdfast import Anthropic, Gemini, Holdfast, Model, ModelRefusedError, OpenAIResponses
from holdfast.agents.messages import Message, ModelRequest, TokenUsage
from tests.agents.conftest import KEY, Naps, a_model
from tests.agents.helpers import World, a_flow
from tests.agents.provider import Answer, Provider, Refusal, Seen
from tests.agents.test_endpoints import Heard
from tests.agents.test_structured import FORM, GOOD, form_in

pytestmark = [pytest.mark.anyio, pytest.mark.covers("CP2-P1")]

PATHS: Final = {
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m-1:streamGenerateContent?alt=sse",
}
HELLO: Final = ModelRequest((Message("user", "Say hello in one sentence."),), max_tokens=100)


@pytest.fixture(params=sorted(PATHS))
def kind(request: pytest.FixtureRequest) -> str:
    """Of OpenAI its new protocol, and not chat completions."""
    return request.param


@pytest.fixture
def model(kind: str, provider: Provider, naps: Naps) -> Model:
    return a_model(kind, provider, naps)


def results_in(seen: Seen) -> list[str]:
    """The results of tools in a request, in the order of their calls."""
    body = seen.json
    if "input" in body:
        return [each["output"] for each in body["input"] if each.get("type") == "function_call_output"]
    if "contents" in body:
        parts = [part for turn in body["contents"] for part in turn["parts"]]
        return [_text(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]
    blocks = [
        block for each in body["messages"] if isinstance(each["content"], list) for block in each["content"]
    ]
    return [_text(block["content"]) for block in blocks if block["type"] == "tool_result"]


def _text(content: Any) -> str:
    if isinstance(content, dict):
        (only,) = content.values()
        return str(only)
    return content if isinstance(content, str) else "".join(each.get("text", "") for each in content)


async def test_a_text_is_generated(provider: Provider, model: Model, kind: str) -> None:
    provider.says(Answer("Hello to all of you.", tokens=(12, 6)))
    reply = await model.reply(HELLO, Heard())
    assert reply.message == Message("assistant", "Hello to all of you.")
    assert (reply.finish, reply.tokens) == ("stop", TokenUsage(12, 6))
    assert provider.seen[0].path == PATHS[kind]
    limit = {"responses": "max_output_tokens", "anthropic": "max_tokens"}.get(kind)
    sent = provider.seen[0].json
    assert (sent["generationConfig"]["maxOutputTokens"] if limit is None else sent[limit]) == 100


async def test_a_text_is_streamed(provider: Provider, model: Model) -> None:
    provider.says(Answer("An old silent pond."))
    heard = Heard()
    reply = await model.reply(HELLO, heard)
    assert len(heard) > 1
    assert heard.text == reply.message.text


async def test_a_tool_is_called_once(hf: Holdfast, provider: Provider, model: Model) -> None:
    provider.says(Answer(calls=[("c1", "look", {"place": "Kiel"})]), Answer("Kiel is calm."))
    world = World()
    result = await a_flow(model, world.looks(), prompt="Kiel?").run({}, on=hf)
    assert result.expect().state["answer"] == "Kiel is calm."
    assert world.done == ["look Kiel"]
    assert results_in(provider.seen[1]) == ["Kiel is calm"]


async def test_tools_of_one_reply_are_called_together(hf: Holdfast, provider: Provider, model: Model) -> None:
    calls = [("c1", "look", {"place": "San Francisco"}), ("c2", "look", {"place": "New York"})]
    provider.says(Answer("I look at both.", calls), lambda _: Answer("San Francisco and New York are calm."))
    heard: list[str] = []
    world = World()
    result = await a_flow(model, world.looks(), prompt="Both?").run({}, on=hf)
    heard += [event.data["data"] for event in await _emitted(hf, result)]
    answer = result.expect().state["answer"]
    assert "San Francisco" in answer
    assert "New York" in answer
    assert sorted(world.done) == ["look New York", "look San Francisco"]
    assert results_in(provider.seen[1]) == ["San Francisco is calm", "New York is calm"]
    # What was said before the calls was streamed too.
    assert "".join(heard).startswith("I look at both.")


async def _emitted(hf: Holdfast, result: Any) -> list[Any]:
    events = await (await hf.service()).events(result.run_id)
    return [event for event in events if event.type == "node.emitted" and isinstance(event.data["data"], str)]


async def test_rounds_of_tools_follow_each_other(hf: Holdfast, provider: Provider, model: Model) -> None:
    places = ["one", "two", "three", "four"]
    provider.says(*(Answer(calls=[(f"c{n}", "look", {"place": each})]) for n, each in enumerate(places)))
    provider.says(Answer("All calm."))
    world = World()
    result = await a_flow(model, world.looks(), prompt="Go").run({}, on=hf)
    assert result.expect().state["answer"] == "All calm."
    assert world.done == [f"look {each}" for each in places]
    assert results_in(provider.seen[-1]) == [f"{each} is calm" for each in places]


async def test_an_answer_has_the_form_that_was_asked_for(
    hf: Holdfast, provider: Provider, model: Model
) -> None:
    provider.says(Answer(GOOD))
    result = await a_flow(model, prompt="Extract: Alice is 30 years old", returns=FORM).run({}, on=hf)
    assert result.expect().state["answer"] == {"name": "Alice", "age": 30}
    assert form_in(provider.seen[0].json) == FORM


async def test_reasoning_tokens_are_told_apart(provider: Provider, model: Model) -> None:
    provider.says(Answer("So.", tokens=(10, 50), reasoning=40, thought="Hm."))
    assert (await model.reply(HELLO, Heard())).tokens == TokenUsage(10, 50, reasoning=40)


@pytest.mark.parametrize("status", [401, 404])
async def test_an_invalid_key_and_an_unknown_model_are_refused_at_once(
    provider: Provider, model: Model, naps: Naps, status: int
) -> None:
    provider.says(Refusal(status, body='{"error": {"message": "no"}}'))
    with pytest.raises(ModelRefusedError, match=f"HTTP {status}") as refused:
        await model.reply(HELLO, Heard())
    assert KEY not in str(refused.value)
    assert (len(provider.seen), naps.taken) == (1, [])


async def test_a_rate_limit_is_waited_for(provider: Provider, model: Model, naps: Naps) -> None:
    provider.says(Refusal(429, {"retry-after": "3"}), Answer("There."))
    assert (await model.reply(HELLO, Heard())).message.text == "There."
    assert naps.taken == [3]


async def test_tokens_of_a_run_are_the_sum_of_its_calls(
    hf: Holdfast, provider: Provider, model: Model
) -> None:
    provider.says(
        Answer(calls=[("c1", "look", {"place": "Kiel"})], tokens=(100, 10)), Answer("Calm.", tokens=(150, 5))
    )
    result = await a_flow(model, World().looks(), prompt="Kiel?").run({}, on=hf)
    assert (await (await hf.service()).latest(result.run_id)).diagnostics["totalTokensUsed"] == 265


async def test_the_second_turn_reads_the_cache(provider: Provider, model: Model, kind: str) -> None:
    """What was sent in the first turn begins the second, and what the provider read again is counted."""
    provider.says(Answer("Calm.", tokens=(100, 10)), Answer("Still calm.", tokens=(120, 5), cached=90))
    first = await model.reply(HELLO, Heard())
    turns = (*HELLO.messages, first.message, Message("user", "And now?"))
    second = await model.reply(ModelRequest(turns, max_tokens=100), Heard())
    assert (first.tokens.cached, second.tokens.cached) == (0, 90)
    before, after = (_uncached(seen.json, kind) for seen in provider.seen)
    assert after[: len(before)] == before
    if kind == "anthropic":
        assert "cache_control" in str(provider.seen[0].json)


def _uncached(body: dict[str, Any], kind: str) -> list[Any]:
    key = {"responses": "input", "anthropic": "messages"}.get(kind, "contents")
    return [_without_marks(each) for each in body[key]]


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(each) for key, each in value.items() if key != "cache_control"}
    return [_without_marks(each) for each in value] if isinstance(value, list) else value


async def test_options_of_a_provider_pass_through(provider: Provider, kind: str) -> None:
    made = {"responses": OpenAIResponses, "anthropic": Anthropic, "gemini": Gemini}[kind]
    options: dict[str, Any] = (
        {"generationConfig": {"topK": 7}} if kind == "gemini" else {"service_tier": "flex"}
    )
    base = f"{provider.url}/v1" if kind == "responses" else provider.url
    provider.says(Answer("Hello."))
    model = made("m-1", base_url=base, key=lambda: KEY, options=options)
    await model.reply(HELLO, Heard())
    sent = provider.seen[0].json
    if kind == "gemini":
        assert sent["generationConfig"] == {"maxOutputTokens": 100, "topK": 7}
    else:
        assert sent["service_tier"] == "flex"
