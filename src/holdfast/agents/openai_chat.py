"""Any endpoint with OpenAI's chat completions API: a gateway, a local model, OpenAI itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.agents.messages import Message, ModelReply, ModelRequest, TokenUsage, ToolCall, ToolSpec
from holdfast.agents.model import StreamCallback
from holdfast.agents.model_http import Endpoint, Key, Retries, Sleep
from holdfast.agents.prices import Prices
from holdfast.agents.streams import EventFields
from holdfast.holds.egress import Egress

FINISH = {"tool_calls": "tool_calls", "function_call": "tool_calls", "content_filter": "refused"}


class OpenAI:
    """`OpenAI("gpt-5", prices=Prices(...))`, or with `base_url="http://localhost:11434/v1", key=None`.

    `key` is the name of an environment variable, or a function that gives the key. `options` go into the
    body of each request unchanged: temperature, reasoning_effort, and other options of the endpoint.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "https://api.openai.com/v1",
        key: Key = "OPENAI_API_KEY",
        prices: Prices | None = None,
        options: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        max_tokens_field: str = "max_completion_tokens",
        timeout: float = 120.0,
        retries: Retries | None = None,
        sleep: Sleep = asyncio.sleep,
        egress: Egress | None = None,
    ) -> None:
        self.name = name
        self.prices = prices
        self.options = dict(options or {})
        self.max_tokens_field = max_tokens_field
        self.endpoint = Endpoint(
            base_url, key=key, headers=headers, timeout=timeout, retries=retries, sleep=sleep, egress=egress
        )

    def __repr__(self) -> str:
        return f"OpenAI({self.name!r}, base_url={self.endpoint.base_url!r})"

    async def reply(self, request: ModelRequest, emit: StreamCallback) -> ModelReply:
        fields = EventFields(f"{self.endpoint.base_url}/chat/completions")
        return await self.endpoint.stream(
            "/chat/completions", self.body(request), lambda: OpenAIStreamedReply(fields, emit), emit
        )

    def body(self, request: ModelRequest) -> bytes:
        """The same request is the same bytes, in every process. The messages are last: without its last two
        characters it is the beginning of the body of the next turn."""
        body: dict[str, Any] = {
            "model": self.name,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            body["tool_choice"] = "required" if request.must_call else "auto"
        if request.max_tokens is not None:
            body[self.max_tokens_field] = request.max_tokens
        messages = [_message(message) for message in request.messages]
        return msgspec.json.encode({**body, **self.options, "messages": messages})


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call, "content": message.text}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.calls
    ]
    return {"role": message.role, "content": message.text or None, "tool_calls": calls}


class OpenAIStreamedReply:
    """Collects a streamed reply."""

    def __init__(self, fields: EventFields, emit: StreamCallback) -> None:
        self._fields = fields
        self._emit = emit
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._tokens = TokenUsage()
        self._finish: str | None = None
        self._model = ""

    def take(self, event: dict[str, Any]) -> None:
        fields = self._fields
        fields.failed(event)
        self._model = fields.text(event, "model") or self._model
        if event.get("usage") is not None:
            self._count(fields.record(event, "usage"))
        if "choices" not in event:
            raise fields.wrong("choices", None)
        for choice in fields.records(event, "choices")[:1]:
            self._hear(fields.maybe_record(choice, "delta", "choices[0]."))
            self._finish = fields.text(choice, "finish_reason", "choices[0].") or self._finish

    def _count(self, usage: dict[str, Any]) -> None:
        fields = self._fields
        details = fields.maybe_record(usage, "prompt_tokens_details", "usage.")
        made = fields.maybe_record(usage, "completion_tokens_details", "usage.")
        self._tokens = TokenUsage(
            fields.count(usage, "prompt_tokens", "usage."),
            fields.count(usage, "completion_tokens", "usage."),
            fields.count(details, "cached_tokens", "usage.prompt_tokens_details."),
            reasoning=fields.count(made, "reasoning_tokens", "usage.completion_tokens_details."),
        )

    def _hear(self, delta: dict[str, Any]) -> None:
        text = self._fields.text(delta, "content", "choices[0].delta.")
        if text:
            self._text.append(text)
            self._emit("text", text)
        for part in self._fields.records(delta, "tool_calls", "choices[0].delta."):
            self._call(part)

    def _call(self, part: dict[str, Any]) -> None:
        where = "choices[0].delta.tool_calls[]."
        fields = self._fields
        index = fields.count(part, "index", where) if "index" in part else len(self._calls)
        call = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        function = fields.maybe_record(part, "function", where)
        call["id"] = call["id"] or fields.text(part, "id", where)
        call["name"] += fields.text(function, "name", f"{where}function.")
        call["arguments"] += fields.text(function, "arguments", f"{where}function.")

    def reply(self) -> ModelReply:
        finish = self._fields.ended(self._finish)
        calls = [self._whole(call) for _, call in sorted(self._calls.items())]
        message = Message("assistant", "".join(self._text), tuple(calls))
        return ModelReply(message, self._tokens, FINISH.get(finish, finish), model=self._model)

    def _whole(self, call: dict[str, str]) -> ToolCall:
        if not call["name"]:
            raise self._fields.wrong("choices[0].delta.tool_calls[].function.name", None)
        return ToolCall(call["id"], call["name"], call["arguments"] or "{}")
