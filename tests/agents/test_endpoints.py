"""The providers' protocols against a real server: what is sent, what is understood, and all the trouble."""

from __future__ import annotations

import json
import logging
from decimal import Decimal
from typing import Any

import pytest

from holdfast import ModelError, ModelRefusedError, ModelReplyError, ModelUnavailableError, OpenAI
from holdfast.agents.messages import Message, ModelRequest, TokenUsage, ToolCall, ToolSpec
from holdfast.agents.model_http import Retries, without_key
from holdfast.agents.provider_errors import retry_after
from tests.agents.conftest import KEY, PRICES, Naps, a_model
from tests.agents.provider import Answer, Hangs, Provider, Refusal, Silence

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
ASKED = ModelRequest(
    (Message("system", "Be brief."), Message("user", "Hi")), (ToolSpec("search", "Finds.", SCHEMA),)
)


class Heard(list[tuple[str, str]]):
    def __call__(self, kind: str, data: str) -> None:
        self.append((kind, data))

    @property
    def text(self) -> str:
        return "".join(data for kind, data in self if kind == "text")


@pytest.mark.covers("TOOL-AGENT-02", "TOOL-AGENT-03")
async def test_an_answer_is_streamed_and_counted(provider: Provider, kind: str) -> None:
    provider.says(Answer("Good morning to you.", tokens=(100, 7), cached=40))
    heard = Heard()
    reply = await a_model(kind, provider).reply(ASKED, heard)
    assert reply.message == Message("assistant", "Good morning to you.")
    assert heard.text == "Good morning to you."
    assert len(heard) == 4
    assert reply.finish == "stop"
    # Anthropic counts what it read from its cache beside the input, the others within it.
    total = 140 if kind == "anthropic" else 100
    assert reply.tokens == TokenUsage(total, 7, 40)
    assert PRICES.cost(reply.tokens) == (2 * (total - 40) + Decimal("0.5") * 40 + 10 * 7) / Decimal(1_000_000)


@pytest.mark.covers("TOOL-AGENT-02", "TOOL-AGENT-03")
async def test_tool_calls_come_whole_and_in_order_when_their_arguments_are_streamed_in_pieces(
    provider: Provider, kind: str
) -> None:
    # Gemini sends calls whole, as objects.
    second, compact = ("{}", True) if kind == "gemini" else ('{"q": 1', False)
    provider.says(
        Answer("Let me look.", [("c1", "search", {"q": "harbours & tides"}), ("c2", "search", second)])
    )
    reply = await a_model(kind, provider).reply(ASKED, Heard())
    assert reply.message.text == "Let me look."
    assert reply.message.calls == (
        ToolCall("c1", "search", '{"q":"harbours & tides"}' if compact else '{"q": "harbours & tides"}'),
        ToolCall("c2", "search", second),
    )
    assert reply.finish == "tool_calls"


TALK = (
    Message("system", "Be brief."),
    Message("user", "Hi"),
    Message("assistant", "", (ToolCall("c1", "search", '{"q": "a"}'), ToolCall("c2", "search", "{no"))),
    Message("tool", "found", call="c1"),
    Message("tool", "Error: bad", call="c2", failed=True),
    Message("user", "Go on"),
)


@pytest.mark.covers("TOOL-AGENT-02")
async def test_openai_is_sent_a_conversation_in_its_own_form(provider: Provider) -> None:
    provider.says(Answer("ok"))
    await a_model("openai", provider).reply(ModelRequest(TALK, ASKED.tools, 50, must_call=True), Heard())
    (seen,) = provider.seen
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    sent = seen.json
    assert sent["stream"] is True
    assert sent["stream_options"] == {"include_usage": True}
    assert sent["max_completion_tokens"] == 50
    assert sent["tool_choice"] == "required"
    assert sent["tools"][0]["function"] == {"name": "search", "description": "Finds.", "parameters": SCHEMA}
    assert [message["role"] for message in sent["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    # As the model wrote it, also where that is nonsense.
    assert sent["messages"][2]["tool_calls"][1]["function"]["arguments"] == "{no"
    assert sent["messages"][3] == {"role": "tool", "tool_call_id": "c1", "content": "found"}


@pytest.mark.covers("TOOL-AGENT-03")
async def test_anthropic_is_sent_a_conversation_in_its_own_form(provider: Provider) -> None:
    provider.says(Answer("ok"))
    await a_model("anthropic", provider).reply(ModelRequest(TALK, ASKED.tools, 50), Heard())
    (seen,) = provider.seen
    assert seen.path == "/v1/messages"
    assert seen.headers["x-api-key"] == KEY
    assert seen.headers["anthropic-version"] == "2023-06-01"
    sent = seen.json
    assert [block["text"] for block in sent["system"]] == ["Be brief."]
    assert sent["max_tokens"] == 50
    assert sent["tool_choice"] == {"type": "auto"}
    assert sent["tools"][0]["input_schema"] == SCHEMA
    assert [turn["role"] for turn in sent["messages"]] == ["user", "assistant", "user"]
    assert sent["messages"][1]["content"][1]["input"] == {"malformed": "{no"}
    assert sent["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "found"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "Error: bad", "is_error": True},
        {"type": "text", "text": "Go on", "cache_control": {"type": "ephemeral"}},
    ]


@pytest.mark.covers("TOOL-AGENT-03")
async def test_an_answer_of_nothing_is_left_out_where_the_protocol_has_no_form_for_it(
    provider: Provider,
) -> None:
    provider.says(Answer("ok"))
    talk = (Message("user", "Hi"), Message("assistant", " "), Message("user", "Well?"))
    await a_model("anthropic", provider).reply(ModelRequest(talk), Heard())
    mark = {"cache_control": {"type": "ephemeral"}}
    said = [{"type": "text", "text": "Hi"}, {"type": "text", "text": "Well?", **mark}]
    assert provider.seen[0].json["messages"] == [{"role": "user", "content": said}]


@pytest.mark.covers("TOOL-AGENT-03")
async def test_signed_reasoning_goes_back_to_anthropic_as_it_came(provider: Provider) -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 3}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s1"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Yes."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    provider.says(Answer(raw=[json.dumps(event) for event in events]), Answer("ok"))
    model = a_model("anthropic", provider)
    reply = await model.reply(ASKED, Heard())
    assert reply.message.text == "Yes."
    await model.reply(ModelRequest((*ASKED.messages, reply.message, Message("user", "Sure?"))), Heard())
    assert provider.seen[1].json["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "Hm.",
        "signature": "s1",
    }


@pytest.mark.covers("TOOL-AGENT-11")
async def test_a_busy_endpoint_is_asked_again_after_as_long_as_it_says(
    provider: Provider, kind: str, naps: Naps
) -> None:
    provider.says(
        Refusal(429, {"retry-after": "7"}),
        Refusal(503),
        Refusal(529, {"retry-after-ms": "250"}),
        Answer("Hi"),
    )
    heard = Heard()
    reply = await a_model(kind, provider, naps).reply(ASKED, heard)
    assert reply.message.text == "Hi"
    # Never less than what was said, else doubled from one second on.
    assert naps.taken == [7.0, 2.0, 4.0]
    assert [kind for kind, _ in heard if kind == "retry"] == ["retry"] * 3
    assert len(set(provider.bodies)) == 1


@pytest.mark.covers("TOOL-AGENT-11", "CP2-L5")
async def test_an_answer_that_breaks_off_does_not_count_when_it_is_asked_for_again(
    provider: Provider, kind: str, naps: Naps
) -> None:
    provider.says(Answer("A long answer that is cut", cut=4), Silence(), Answer("A long answer, whole."))
    heard = Heard()
    reply = await a_model(kind, provider, naps).reply(ASKED, heard)
    assert reply.message.text == "A long answer, whole."
    after = heard[max(i for i, (kind, _) in enumerate(heard) if kind == "retry") + 1 :]
    assert "".join(data for _, data in after) == "A long answer, whole."
    assert len(naps.taken) == 2


@pytest.mark.covers("TOOL-AGENT-11")
async def test_a_polite_end_in_the_middle_of_an_answer_is_a_cut_too(
    provider: Provider, kind: str, naps: Naps
) -> None:
    half = {
        "openai": '{"choices": [{"delta": {"content": "Half"}}]}',
        "anthropic": '{"type": "content_block_start", "content_block": {"type": "text", "text": "Half"}}',
        "responses": '{"type": "response.output_text.delta", "delta": "Half"}',
        "gemini": '{"candidates": [{"content": {"parts": [{"text": "Half"}]}}]}',
    }[kind]
    broken = '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'
    provider.says(Answer(raw=[half]), Answer(raw=[half, broken]), Answer("Whole."))
    reply = await a_model(kind, provider, naps).reply(ASKED, Heard())
    assert reply.message.text == "Whole."
    assert len(naps.taken) == 2


@pytest.mark.covers("TOOL-AGENT-11")
async def test_an_endpoint_that_stays_away_is_given_up_with_what_it_said_last(
    provider: Provider, kind: str, naps: Naps
) -> None:
    provider.says(Refusal(500), Silence(), Refusal(500, body=f'{{"error": "broken for {KEY}"}}'))
    with pytest.raises(ModelUnavailableError) as caught:
        await a_model(kind, provider, naps, attempts=3).reply(ASKED, Heard())
    assert "3 attempts" in str(caught.value)
    assert "broken for ***" in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(naps.taken) == 2


@pytest.mark.covers("TOOL-AGENT-11")
@pytest.mark.parametrize(("after", "later"), [("60.5", 60.5), ("3600", 3600.0), ("3601", None)])
async def test_a_wait_longer_than_the_longest_is_reported_instead_of_taken(
    provider: Provider, naps: Naps, kind: str, after: str, later: float | None
) -> None:
    provider.says(Refusal(429, {"retry-after": after}))
    with pytest.raises(ModelUnavailableError, match=f"asks to wait {after} s") as caught:
        await a_model(kind, provider, naps).reply(ASKED, Heard())
    assert "attempts" not in caught.value.message
    assert naps.taken == []
    assert caught.value.facts.get("retry_after") == later


QUOTA = json.dumps(
    {
        "error": {
            "code": 429,
            "status": "RESOURCE_EXHAUSTED",
            "message": "quota",
            "details": [
                {
                    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
                },
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "20s"},
            ],
        }
    }
)


@pytest.mark.covers("CP2-L6")
@pytest.mark.parametrize(
    "refusal",
    [
        Refusal(429, body='{"error": {"code": "insufficient_quota", "message": "pay first"}}'),
        Refusal(402, body='{"type": "error", "error": {"type": "billing_error", "message": "pay first"}}'),
        Refusal(429, body='{"type": "error", "error": {"type": "billing_error", "message": "pay first"}}'),
        Refusal(429, body=QUOTA),
        Refusal(409),
        Refusal(425),
        Refusal(422),
    ],
)
async def test_other_refusals_and_a_quota_that_is_used_up_are_final(
    provider: Provider, kind: str, refusal: Refusal, naps: Naps
) -> None:
    provider.says(refusal)
    with pytest.raises(ModelRefusedError, match=f"HTTP {refusal.status}"):
        await a_model(kind, provider, naps).reply(ASKED, Heard())
    assert len(provider.seen) == 1
    assert naps.taken == []


@pytest.mark.covers("CP2-L6")
@pytest.mark.parametrize("status", [408, 429, 500, 501, 502, 503, 504, 520, 529])
async def test_what_may_pass_is_tried_five_times(
    provider: Provider, kind: str, status: int, naps: Naps
) -> None:
    provider.says(*[Refusal(status)] * 4, Answer("There."))
    assert (await a_model(kind, provider, naps, attempts=5).reply(ASKED, Heard())).message.text == "There."
    assert naps.taken == [1, 2, 4, 8]


@pytest.mark.covers("CP2-L6")
async def test_gemini_names_the_wait_in_the_error(provider: Provider, naps: Naps) -> None:
    body = QUOTA.replace("PerDay", "PerMinute")
    provider.says(Refusal(429, body=body), Answer("There."))
    assert (await a_model("gemini", provider, naps).reply(ASKED, Heard())).message.text == "There."
    assert naps.taken == [20]


@pytest.mark.covers("TOOL-AGENT-11")
async def test_a_silent_endpoint_is_left_when_the_timeout_passes(
    provider: Provider, kind: str, naps: Naps
) -> None:
    provider.says(Hangs(), Answer("There."))
    reply = await a_model(kind, provider, naps, timeout=5).reply(ASKED, Heard())
    assert reply.message.text == "There."
    assert len(naps.taken) == 1


@pytest.mark.covers("TOOL-AGENT-13", "CP2-L10")
@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_a_refusal_is_reported_at_once_and_without_the_key(
    provider: Provider, kind: str, status: int, naps: Naps
) -> None:
    provider.says(
        Refusal(status, body=json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    )
    with pytest.raises(ModelRefusedError) as caught:
        await a_model(kind, provider, naps).reply(ASKED, Heard())
    said = str(caught.value)
    assert f"HTTP {status}" in said
    assert provider.url in said
    assert KEY not in said
    assert KEY not in repr(caught.value.__cause__) + repr(caught.value.__context__)
    assert naps.taken == []


@pytest.mark.covers("TOOL-AGENT-13", "CP2-L10")
async def test_no_log_line_of_any_library_has_the_key(
    provider: Provider, kind: str, naps: Naps, caplog: pytest.LogCaptureFixture
) -> None:
    """At the lowest level, over a refusal that repeats it, a retry and an answer."""
    caplog.set_level(logging.DEBUG)
    echo = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}})
    provider.says(Refusal(503, body=echo), Answer("There."), Refusal(401, body=echo))
    model = a_model(kind, provider, naps)
    assert (await model.reply(ASKED, Heard())).message.text == "There."
    with pytest.raises(ModelRefusedError):
        await model.reply(ASKED, Heard())
    lines = [f"{each.name} {each.getMessage()} {each.args} {each.exc_text}" for each in caplog.records]
    assert any("http" in each for each in lines)
    assert not [each for each in lines if KEY in each]


@pytest.mark.covers("TOOL-AGENT-13", "CP2-L10")
async def test_nothing_of_a_model_shows_its_key(provider: Provider, kind: str) -> None:
    model = a_model(kind, provider)
    assert KEY not in repr(model) + repr(vars(model)) + repr(vars(model.endpoint))  # type: ignore[attr-defined]


@pytest.mark.covers("TOOL-AGENT-13")
async def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelRefusedError, match="OPENAI_API_KEY"):
        await OpenAI("m").reply(ASKED, Heard())
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\nx")
    with pytest.raises(ModelRefusedError, match="invalid characters") as caught:
        await OpenAI("m").reply(ASKED, Heard())
    assert KEY not in str(caught.value)


@pytest.mark.covers("TOOL-AGENT-13")
async def test_an_address_where_nobody_listens_is_reported(naps: Naps) -> None:
    model = OpenAI("m", base_url="http://127.0.0.1:9/v1", key=None, retries=Retries(attempts=2), sleep=naps)
    with pytest.raises(ModelUnavailableError, match=r"http://127\.0\.0\.1:9/v1/chat/completions"):
        await model.reply(ASKED, Heard())
    assert len(naps.taken) == 1


OPENAI_NONSENSE = [
    ("{", "not JSON"),
    ("[1]", "not an object"),
    ("{}", "choices is None"),
    ('{"choices": 3}', "choices is 3"),
    ('{"choices": [{"delta": {"content": 5}}]}', r"choices\[0\].delta.content is 5"),
    ('{"choices": [{"delta": {"tool_calls": [{"index": "x"}]}}]}', r"tool_calls\[\].index is 'x'"),
    ('{"choices": [], "usage": {"prompt_tokens": -1}}', "usage.prompt_tokens is -1"),
    (
        '{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": ""}}]}, "finish_reason": "x"}]}',
        "function.name is None",
    ),
]
ANTHROPIC_NONSENSE = [
    ("{", "not JSON"),
    ('{"type": 3}', "type is 3"),
    ("{}", "type is None"),
    ('{"type": "message_start"}', "message is None"),
    ('{"type": "content_block_delta", "index": 4, "delta": {"type": "text_delta"}}', "index is 4"),
    ('{"type": "message_delta", "delta": {}, "usage": {"output_tokens": "7"}}', "usage.output_tokens is '7'"),
]

RESPONSES_NONSENSE = [
    ("{", "not JSON"),
    ("{}", "type is None"),
    ('{"type": 3}', "type is 3"),
    ('{"type": "response.output_text.delta", "delta": 5}', "delta is 5"),
    ('{"type": "response.output_item.done", "output_index": -1, "item": {}}', "output_index is -1"),
    ('{"type": "response.output_item.done", "output_index": 0}', "item is None"),
    ('{"type": "response.completed"}', "response is None"),
    (
        '{"type": "response.completed", "response": {"output": [{"type": "function_call", "name": "x"}]}}',
        "item.call_id is None",
    ),
    (
        '{"type": "response.completed", "response": {"output": [], "usage": {"input_tokens": "7"}}}',
        "response.usage.input_tokens is '7'",
    ),
]
GEMINI_NONSENSE = [
    ("{", "not JSON"),
    ("{}", "candidates is None"),
    ('{"candidates": 3}', "candidates is 3"),
    ('{"candidates": [{"content": {"parts": [{"text": 5}]}}]}', r"parts\[\].text is 5"),
    (
        '{"candidates": [{"content": {"parts": [{"functionCall": {}}]}, "finishReason": "STOP"}]}',
        "functionCall.name is None",
    ),
    (
        '{"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": -1}}',
        "usageMetadata.promptTokenCount is -1",
    ),
]


@pytest.mark.covers("TOOL-AGENT-13")
@pytest.mark.parametrize(
    ("kind", "data", "what"),
    [("openai", *case) for case in OPENAI_NONSENSE]
    + [("anthropic", *case) for case in ANTHROPIC_NONSENSE]
    + [("responses", *case) for case in RESPONSES_NONSENSE]
    + [("gemini", *case) for case in GEMINI_NONSENSE],
)
async def test_a_malformed_reply_names_endpoint_and_field(
    provider: Provider, kind: str, data: str, what: str
) -> None:
    provider.says(Answer(raw=[data]))
    with pytest.raises(ModelReplyError, match=what) as caught:
        await a_model(kind, provider).reply(ASKED, Heard())
    assert provider.url in str(caught.value)


@pytest.mark.covers("TOOL-AGENT-13", "CP2-L10")
@pytest.mark.parametrize(
    "data",
    [
        f'{{"error": {{"message": "key {KEY} is over its limit"}}, "type": "error"}}',
        f'["{KEY}"]',
        f'{{"{KEY}',
        f'{{"type": ["{KEY}"], "choices": "{KEY}", "candidates": "{KEY}"}}',
    ],
)
async def test_no_complaint_about_a_reply_repeats_the_key(provider: Provider, kind: str, data: str) -> None:
    provider.says(*[Answer(raw=[data])] * 4)
    with pytest.raises(ModelError) as caught:
        await a_model(kind, provider).reply(ASKED, Heard())
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value.facts)
    assert "***" in str(caught.value)


@pytest.mark.covers("TOOL-AGENT-13")
async def test_an_answer_that_is_no_stream_is_reported(provider: Provider, kind: str) -> None:
    provider.says(Refusal(200, {"content-type": "text/html"}, "<html>Welcome"))
    with pytest.raises(ModelReplyError, match="text/html instead of a stream"):
        await a_model(kind, provider).reply(ASKED, Heard())


@pytest.mark.covers("TOOL-AGENT-13")
def test_a_key_is_hidden_whole_and_where_it_was_cut() -> None:
    key = "sk-proj-" + "abcdefgh" * 20
    assert without_key(f"bad key {key}.", key) == "bad key ***."
    assert without_key(f"bad key {key[:70]}…", key) == "bad key ***"
    assert without_key("all fine", key) == "all fine"
    assert without_key("all fine", "") == "all fine"
    assert without_key("short key abc", "abc") == "short key ***"


@pytest.mark.covers("TOOL-AGENT-11")
def test_retry_after_is_understood_in_all_its_forms() -> None:
    date = {"date": "Sun, 15 Nov 2026 11:00:00 GMT"}
    assert retry_after({"retry-after": "12"}) == 12.0
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after({"retry-after": "Sun, 15 Nov 2026 11:00:30 GMT", **date}) == 30.0
    assert retry_after({"retry-after": "Sun, 15 Nov 2026 10:00:00 GMT", **date}) == 0.0
    for nonsense in ("", "soon", "-3", "inf", "nan"):
        assert retry_after({"retry-after": nonsense}) is None


def test_waits_grow_up_to_the_longest_and_are_spread_by_the_request() -> None:
    plain = Retries(first=1, longest=10, jitter=0)
    assert [plain.wait(n, None, b"x") for n in (1, 2, 3, 4, 5)] == [1, 2, 4, 8, 10]
    spread = Retries()
    waits = [spread.wait(1, None, bytes([n])) for n in range(200)]
    assert min(waits) < 0.6
    assert max(waits) > 1.4
    assert all(0.5 <= wait <= 1.5 for wait in waits)
    assert all(30 <= spread.wait(9, None, bytes([n])) <= 90 for n in range(200))
    assert spread.wait(3, None, b"x") == spread.wait(3, None, b"x")
    assert spread.attempts == 5


@pytest.mark.covers("SAFE-BUDGET-01")
@pytest.mark.parametrize(
    ("trouble", "may_be_paid"),
    [
        ([Refusal(503), Refusal(429)], False),
        ([Answer("Good morning.", cut=2), Refusal(503)], True),
        ([Hangs(9), Hangs(9)], True),
        ([Silence(), Silence()], True),
    ],
)
async def test_a_call_that_fails_says_whether_it_may_have_been_paid(
    provider: Provider, kind: str, trouble: list[Any], may_be_paid: bool
) -> None:
    provider.says(*trouble)
    with pytest.raises(ModelUnavailableError) as found:
        await a_model(kind, provider, attempts=2).reply(ASKED, Heard())
    assert found.value.facts["may_be_paid"] is may_be_paid


@pytest.mark.covers("SAFE-BUDGET-01")
async def test_an_answer_says_how_many_attempts_before_it_may_have_been_paid(
    provider: Provider, kind: str
) -> None:
    provider.says(Refusal(503), Answer("Good morning.", cut=2), Silence(), Answer("Good morning."))
    assert (await a_model(kind, provider, attempts=4).reply(ASKED, Heard())).broken == 2


@pytest.mark.covers("SAFE-BUDGET-01")
async def test_a_call_that_was_never_sent_was_not_paid(kind: str) -> None:
    nowhere = Provider("http://127.0.0.1:9")
    with pytest.raises(ModelUnavailableError) as found:
        await a_model(kind, nowhere, attempts=2).reply(ASKED, Heard())
    assert found.value.facts["may_be_paid"] is False
