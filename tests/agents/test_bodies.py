"""What is sent to each provider: golden files, the beginning that turns share, marks for caches, and
reasoning that goes back to the model that it came from and to no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Anthropic, Gemini, Message, OpenAI, OpenAIResponses
from holdfast.agents.messages import ModelRequest, TokenUsage, ToolCall, ToolSpec
from tests.agents.conftest import KEY, PRICES, a_model
from tests.agents.provider import Answer, Provider
from tests.agents.test_endpoints import Heard

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
FORM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TOOLS = (ToolSpec("search", "Finds.", SCHEMA), ToolSpec("look", "Looks.", SCHEMA))
FIRST = (Message("system", "Be brief."), Message("user", "Hi"))
MODELS: dict[str, Any] = {
    "openai": lambda: OpenAI("m-1", key=None),
    "responses": lambda: OpenAIResponses("m-1", key=None, options={"reasoning": {"effort": "low"}}),
    "anthropic": lambda: Anthropic("m-1", key=None, cache=False),
    "anthropic-5m": lambda: Anthropic("m-1", key=None),
    "anthropic-1h": lambda: Anthropic(
        "m-1", key=None, cache="1h", options={"output_config": {"effort": "low"}}
    ),
    "gemini": lambda: Gemini(
        "m-1", key=None, options={"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}
    ),
}  # fmt: skip


def own(kind: str) -> tuple[dict[str, Any], ...]:
    """What a provider wants back."""
    if kind == "responses":
        return (
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "search",
             "arguments": '{"q": "a"}', "status": "completed"},
            {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "look", "arguments": "{no",
             "status": "completed"},
        )  # fmt: skip
    if kind == "gemini":
        return (
            {"text": "Let me look."},
            {"functionCall": {"id": "c1", "name": "search", "args": {"q": "a"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "look", "args": {}}},
        )
    return ({"type": "thinking", "thinking": "Hm.", "signature": "s1"},) if kind == "anthropic" else ()


def talk(kind: str) -> list[ModelRequest]:
    """Three turns of one conversation."""
    family = kind.partition("-")[0]
    said = Message(
        "assistant",
        "Let me look.",
        (ToolCall("c1", "search", '{"q": "a"}'), ToolCall("c2", "look", "{no")),
        extra=own(family),
        origin=f"{family}/m-1",
    )
    results = (Message("tool", "found", call="c1"), Message("tool", "Error: bad", call="c2", failed=True))
    second = (*FIRST, said, *results)
    third = (*second, Message("assistant", "It is a."), Message("user", "Sure?"))
    return [
        ModelRequest(
            messages, TOOLS, 500, output_schema=FORM if kind != "openai" else None, thread="run/talk"
        )
        for messages in (FIRST, second, third)
    ]


@pytest.mark.covers("CP2-L3")
@pytest.mark.parametrize("kind", MODELS)
def test_a_request_is_the_bytes_of_its_golden_file(kind: str) -> None:
    found = MODELS[kind]().body(talk(kind)[-1])
    assert found == MODELS[kind]().body(talk(kind)[-1])
    shown = json.dumps(json.loads(found), indent=2) + "\n"
    golden = GOLDEN / f"{kind}.json"
    assert shown == golden.read_text()


@pytest.mark.covers("CP2-L3")
@pytest.mark.parametrize("kind", ["openai", "responses", "anthropic", "gemini"])
def test_a_turn_begins_with_the_bytes_of_the_turn_before_it(kind: str) -> None:
    model = MODELS[kind]()
    one, two, three = (model.body(request) for request in talk(kind))
    assert two.startswith(one[:-2])
    assert three.startswith(two[:-2])


@pytest.mark.covers("CP2-L4")
@pytest.mark.parametrize(("kind", "mark"), [("5m", {}), ("1h", {"ttl": "1h"})])
def test_anthropic_is_told_what_to_keep_in_its_four_marks(kind: str, mark: dict[str, str]) -> None:
    sent = json.loads(MODELS[f"anthropic-{kind}"]().body(talk("anthropic")[-1]))
    control = {"type": "ephemeral", **mark}
    assert [tool.get("cache_control") for tool in sent["tools"]] == [None, control]
    assert [block["cache_control"] for block in sent["system"]] == [control]
    marked = [
        (index, place)
        for index, turn in enumerate(sent["messages"])
        for place, block in enumerate(turn["content"])
        if block.get("cache_control") == control
    ]
    # The last two turns of the user: the results of tools, and what was asked last.
    assert marked == [(2, 1), (4, 0)]
    assert json.dumps(sent).count('"cache_control"') == 4


@pytest.mark.covers("CP2-L4")
async def test_caching_needs_no_header_and_can_be_switched_off(provider: Provider) -> None:
    provider.says(Answer("a"), Answer("b"))
    for cache in (False, "5m"):
        model = Anthropic("m-1", base_url=provider.url, key=lambda: KEY, prices=PRICES, cache=cache)  # type: ignore[arg-type]
        await model.reply(talk("anthropic")[1], Heard())
    off, on = provider.seen
    assert b"cache_control" not in off.body
    assert b"cache_control" in on.body
    assert "anthropic-beta" not in on.headers


@pytest.mark.covers("CP2-L4")
def test_openai_gets_one_cache_key_for_one_thread() -> None:
    model = MODELS["responses"]()
    keys = [json.loads(model.body(request))["prompt_cache_key"] for request in talk("responses")]
    assert len(set(keys)) == 1
    assert len(keys[0]) <= 64
    other = ModelRequest(FIRST, thread="run/other")
    assert json.loads(model.body(other))["prompt_cache_key"] != keys[0]
    assert "prompt_cache_key" not in json.loads(model.body(ModelRequest(FIRST)))


@pytest.mark.covers("CP2-L2")
def test_nothing_is_stored_at_openai_and_its_reasoning_is_asked_for_where_there_is_any() -> None:
    sent = json.loads(OpenAIResponses("gpt-6.1-sol", key=None).body(ModelRequest(FIRST)))
    assert sent["store"] is False
    assert sent["include"] == ["reasoning.encrypted_content"]
    # Models without reasoning refuse the request for it.
    plain = json.loads(OpenAIResponses("gpt-4o", key=None).body(ModelRequest(FIRST)))
    assert plain["store"] is False
    assert "include" not in plain


REASONING = {
    "responses": lambda sent: [item for item in sent["input"] if item["type"] == "reasoning"],
    "anthropic": lambda sent: [
        block for turn in sent["messages"] for block in turn["content"] if block["type"] == "thinking"
    ],
    "gemini": lambda sent: [
        part
        for turn in sent["contents"]
        for part in turn["parts"]
        if part.get("thoughtSignature") == "c2lnbmVk"
    ],
}
SEALED: dict[str, dict[str, Any]] = {
    "responses": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed:Hm, hm."},
    "anthropic": {"type": "thinking", "thinking": "Hm, hm.", "signature": "signed:Hm, hm."},
    "gemini": {
        "functionCall": {"id": "c1", "name": "search", "args": {"q": "a"}},
        "thoughtSignature": "c2lnbmVk",
    },
}


@pytest.mark.covers("CP2-L2")
@pytest.mark.parametrize("kind", SEALED)
async def test_reasoning_goes_back_unchanged_and_only_to_its_model(provider: Provider, kind: str) -> None:
    provider.says(Answer("I look.", [("c1", "search", {"q": "a"})], thought="Hm, hm.", reasoning=3))
    model: Any = a_model(kind, provider)
    reply = await model.reply(ModelRequest(FIRST, TOOLS), Heard())
    assert reply.tokens == TokenUsage(10, 5, reasoning=3)
    # As it is recorded.
    kept = json.loads(json.dumps(_plain(reply.message)))
    after = ModelRequest((*FIRST, _message(kept), Message("tool", "found", call="c1")), TOOLS)
    assert REASONING[kind](json.loads(model.body(after))) == [SEALED[kind]]
    for other in SEALED:
        foreign = a_model(other, provider)
        foreign.name = "m-2"
        made: Any = type(foreign)("m-2", base_url=provider.url, key=None)
        sent = json.loads(made.body(after))
        assert REASONING[other](sent) == []
        assert "I look." in json.dumps(sent)
        assert "found" in json.dumps(sent)


def _plain(message: Message) -> Any:
    from holdfast.agents.messages import message_to_plain

    return message_to_plain(message)


def _message(plain: Any) -> Message:
    from holdfast.agents.messages import message_from_plain

    return message_from_plain(plain)


@pytest.mark.covers("CP2-L2")
async def test_reasoning_between_calls_keeps_its_place_at_anthropic(provider: Provider) -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "One.", "signature": "s1"},
        {"type": "tool_use", "id": "c1", "name": "search", "input": {"q": "a"}},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "And:"},
        {"type": "tool_use", "id": "c2", "name": "look", "input": {"q": "b"}},
    ]
    start = [
        {"type": "content_block_start", "index": index, "content_block": block}
        for index, block in enumerate(blocks)
    ]
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 3}}},
        *start,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    provider.says(Answer(raw=[json.dumps(event) for event in events]))
    model: Any = a_model("anthropic", provider)
    reply = await model.reply(ModelRequest(FIRST, TOOLS), Heard())
    assert [call.id for call in reply.message.calls] == ["c1", "c2"]
    results = (Message("tool", "1", call="c1"), Message("tool", "2", call="c2"))
    sent = json.loads(model.body(ModelRequest((*FIRST, reply.message, *results), TOOLS)))
    assert sent["messages"][1]["content"] == blocks


@pytest.mark.covers("CP2-L2")
def test_gemini_is_answered_by_the_name_of_the_function_and_by_its_id_if_it_gave_one() -> None:
    sent = json.loads(MODELS["gemini"]().body(talk("gemini")[1]))
    assert sent["contents"][2]["parts"] == [
        {"functionResponse": {"id": "c1", "name": "search", "response": {"output": "found"}}},
        {"functionResponse": {"name": "look", "response": {"error": "Error: bad"}}},
    ]


@pytest.mark.parametrize("finish", ["SAFETY", "PROHIBITED_CONTENT"])
async def test_a_refusal_of_gemini_is_one(provider: Provider, finish: str) -> None:
    provider.says(Answer("No.", finish=finish))
    assert (await a_model("gemini", provider).reply(ModelRequest(FIRST), Heard())).finish == "refused"


async def test_a_prompt_that_gemini_blocks_is_refused_and_a_call_it_cannot_read_is_asked_again(
    provider: Provider,
) -> None:
    provider.says(
        Answer(raw=['{"promptFeedback": {"blockReason": "SAFETY"}}']),
        Answer(finish="MALFORMED_FUNCTION_CALL"),
        Answer("Better."),
    )
    model = a_model("gemini", provider)
    assert (await model.reply(ModelRequest(FIRST), Heard())).finish == "refused"
    assert (await model.reply(ModelRequest(FIRST), Heard())).message.text == "Better."


@pytest.mark.parametrize(("kind", "word"), [("responses", "max_output_tokens"), ("gemini", "MAX_TOKENS")])
async def test_an_answer_at_its_limit_says_so(provider: Provider, kind: str, word: str) -> None:
    provider.says(Answer("Half", finish=word))
    reply = await a_model(kind, provider).reply(ModelRequest(FIRST), Heard())
    assert (reply.finish, reply.message.text) == ("length", "Half")


async def test_a_refusal_of_openai_is_one(provider: Provider) -> None:
    item = {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    done = {"type": "response.completed", "response": {"output": [item]}}
    provider.says(Answer(raw=[json.dumps(done)]))
    reply = await a_model("responses", provider).reply(ModelRequest(FIRST), Heard())
    assert (reply.finish, reply.message.text) == ("refused", "I cannot.")
