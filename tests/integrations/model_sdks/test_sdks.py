"""The vendors' own SDKs as oracles: they read the servers that our readers are tested with, to the same end,
and their types accept the bodies that we send."""

# ruff: noqa: E402
from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

for needed in ("openai", "anthropic", "google.genai"):
    pytest.importorskip(
        needed, reason="the SDKs are not installed; `make partners ARGS=model-sdks` runs this"
    )

import anthropic
import openai
import pydantic
from anthropic.types import message_create_params
from google import genai
from google.genai import types
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

from holdfast.agents.messages import ModelRequest
from tests.agents.conftest import KEY, a_model
from tests.agents.provider import Answer, Provider, a_provider
from tests.agents.test_bodies import FIRST, MODELS, TOOLS, talk

pytestmark = pytest.mark.anyio
ANSWERS = [
    Answer("Good morning to you.", tokens=(100, 7), cached=40),
    Answer(
        "I look.",
        [("c1", "search", {"q": "harbours & tides"}), ("c2", "look", {"q": "b"})],
        tokens=(20, 9),
        thought="Hm, hm.",
        reasoning=3,
    ),
]


@pytest.fixture
async def provider(anyio_backend: str) -> AsyncIterator[Provider]:
    async with a_provider() as found:
        yield found


async def by_chat(url: str) -> dict[str, Any]:
    client = openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0)
    stream = await client.chat.completions.create(
        model="m-1", messages=[{"role": "user", "content": "Hi"}], stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    text, calls, usage = "", dict[int, list[str]](), None
    async for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                kept = calls.setdefault(call.index, ["", "", ""])
                kept[0] += call.id or ""
                kept[1] += (call.function and call.function.name) or ""
                kept[2] += (call.function and call.function.arguments) or ""
    assert usage is not None
    details = usage.prompt_tokens_details
    return {
        "text": text,
        "calls": [(call, name, json.loads(given)) for call, name, given in calls.values()],
        "tokens": (usage.prompt_tokens, usage.completion_tokens, details and details.cached_tokens),
    }


async def by_responses(url: str) -> dict[str, Any]:
    client = openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0)
    async with client.responses.stream(model="m-1", input="Hi", store=False) as stream:
        async for _ in stream:
            pass
        found = await stream.get_final_response()
    assert found.usage is not None
    return {
        "text": found.output_text,
        "calls": [
            (item.call_id, item.name, json.loads(item.arguments))
            for item in found.output
            if item.type == "function_call"
        ],
        "tokens": (
            found.usage.input_tokens,
            found.usage.output_tokens,
            found.usage.input_tokens_details.cached_tokens,
        ),
        "reasoning": found.usage.output_tokens_details.reasoning_tokens,
        "sealed": [item.encrypted_content for item in found.output if item.type == "reasoning"],
    }


async def by_messages(url: str) -> dict[str, Any]:
    client = anthropic.AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0)
    async with client.messages.stream(
        model="m-1", max_tokens=100, messages=[{"role": "user", "content": "Hi"}]
    ) as stream:
        async for _ in stream:
            pass
        found = await stream.get_final_message()
    usage = found.usage
    cached = usage.cache_read_input_tokens or 0
    return {
        "text": "".join(block.text for block in found.content if block.type == "text"),
        "calls": [(block.id, block.name, block.input) for block in found.content if block.type == "tool_use"],
        "tokens": (usage.input_tokens + cached, usage.output_tokens, cached),
        "sealed": [block.signature for block in found.content if block.type == "thinking"],
    }


async def by_gemini(url: str) -> dict[str, Any]:
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url, api_version="v1beta"))
    text, calls, usage, sealed = "", list[Any](), None, list[Any]()
    async for chunk in await client.aio.models.generate_content_stream(model="m-1", contents="Hi"):
        usage = chunk.usage_metadata or usage
        for part in (chunk.candidates or [])[0].content.parts or []:  # type: ignore[union-attr]
            text += part.text or ""
            if part.function_call:
                calls.append((part.function_call.id, part.function_call.name, part.function_call.args))
            if part.thought_signature:
                sealed.append(part.thought_signature)
    assert usage is not None
    thought = usage.thoughts_token_count or 0
    return {
        "text": text,
        "calls": calls,
        "tokens": (
            usage.prompt_token_count,
            (usage.candidates_token_count or 0) + thought,
            usage.cached_content_token_count,
        ),
        "reasoning": thought,
        "sealed": sealed,
    }


SDKS = {"openai": by_chat, "responses": by_responses, "anthropic": by_messages, "gemini": by_gemini}
SEALED = {"responses": "sealed:Hm, hm.", "anthropic": "signed:Hm, hm.", "gemini": b"signed"}


@pytest.mark.covers("CP2-P2")
@pytest.mark.parametrize("kind", SDKS)
@pytest.mark.parametrize("answer", ANSWERS, ids=["text", "calls"])
async def test_the_sdk_reads_what_our_reader_reads(provider: Provider, kind: str, answer: Answer) -> None:
    provider.says(answer, answer)
    theirs = await SDKS[kind](provider.url)
    ours = await a_model(kind, provider).reply(ModelRequest(FIRST, TOOLS), lambda *_: None)
    assert provider.seen[0].path.partition("?")[0] == provider.seen[1].path.partition("?")[0]
    assert ours.message.text == theirs["text"] == answer.text
    calls = [(call.id, call.name, json.loads(call.arguments)) for call in ours.message.calls]
    assert calls == theirs["calls"] == answer.calls
    assert (ours.tokens.input, ours.tokens.output, ours.tokens.cached) == theirs["tokens"]
    if "reasoning" in theirs:
        assert ours.tokens.reasoning == theirs["reasoning"] == answer.reasoning
    if answer.thought and kind in SEALED:
        assert theirs["sealed"] == [SEALED[kind]]
        assert ours.message.extra


BODIES = {
    "openai": completion_create_params.CompletionCreateParamsStreaming,
    "responses": response_create_params.ResponseCreateParamsStreaming,
    "anthropic": message_create_params.MessageCreateParamsStreaming,
}


@pytest.mark.covers("CP2-P2")
@pytest.mark.parametrize("kind", [kind for kind in MODELS if not kind.startswith("gemini")])
def test_the_types_of_the_sdk_accept_our_bodies(kind: str) -> None:
    params: Any = BODIES[kind.partition("-")[0]]
    for request in talk(kind):
        sent = json.loads(MODELS[kind]().body(request))
        assert set(sent) <= set(params.__annotations__) | {
            name for base in params.__orig_bases__ for name in getattr(base, "__annotations__", {})
        }
        pydantic.TypeAdapter(params).validate_python(sent)


@pytest.mark.covers("CP2-P2")
def test_the_types_of_gemini_accept_our_bodies() -> None:
    for request in talk("gemini"):
        sent = json.loads(MODELS["gemini"]().body(request))
        # These refuse unknown fields.
        for content in sent.pop("contents"):
            types.Content.model_validate(content)
        types.Content.model_validate(sent.pop("systemInstruction"))
        for tool in sent.pop("tools"):
            types.Tool.model_validate(tool)
        types.ToolConfig.model_validate(sent.pop("toolConfig"))
        types.GenerationConfig.model_validate(sent.pop("generationConfig"))
        assert sent == {}
