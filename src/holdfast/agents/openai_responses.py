"""OpenAI's responses API, without state at the provider: nothing is stored there, and encrypted reasoning is
recorded here and sent back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, Unpack, cast

import msgspec

from holdfast.agents.messages import Message, ModelReply, ModelRequest, TokenUsage, ToolCall, ToolSpec
from holdfast.agents.model import StreamCallback
from holdfast.agents.model_http import Endpoint, EndpointOptions, Key, StreamCutError
from holdfast.agents.output_schemas import is_strict
from holdfast.agents.prices import Prices
from holdfast.agents.streams import EventFields
from holdfast.errors import ModelRefusedError
from holdfast.types.text import clean_text

ENCRYPTED: Final = "reasoning.encrypted_content"
# These have no reasoning, and refuse the request for it.
_PLAIN: Final = ("gpt-3", "gpt-4", "chatgpt-4")
# Another attempt may succeed after these.
_TRANSIENT: Final = frozenset({"server_error", "rate_limit_exceeded", "vector_store_timeout", "overloaded"})


class OpenAIResponses:
    """`OpenAIResponses("gpt-6.1-sol", prices=Prices(...))`. Options as for `OpenAI`."""

    provider = "openai"

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "https://api.openai.com/v1",
        key: Key = "OPENAI_API_KEY",
        prices: Prices | None = None,
        options: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **call: Unpack[EndpointOptions],
    ) -> None:
        self.name = name
        self.prices = prices
        self.options = dict(options or {})
        self.origin = f"responses/{name}"
        self.endpoint = Endpoint(base_url, key=key, headers=headers, **call)

    def __repr__(self) -> str:
        return f"OpenAIResponses({self.name!r}, base_url={self.endpoint.base_url!r})"

    async def reply(self, request: ModelRequest, emit: StreamCallback) -> ModelReply:
        fields = EventFields(f"{self.endpoint.base_url}/responses")
        return await self.endpoint.stream(
            "/responses", self.body(request), lambda: ResponsesStreamedReply(fields, emit, self.origin), emit
        )

    def takes_schema(self, schema: Mapping[str, Any]) -> bool:
        """Whether it guarantees answers of this form; if not, they are asked for as a tool's arguments."""
        return is_strict(schema)

    def body(self, request: ModelRequest) -> bytes:
        """The same request is the same bytes, in every process. The items are last: without its last two
        characters it is the beginning of the body of the next turn."""
        body: dict[str, Any] = {"model": self.name, "stream": True, "store": False}
        if not self.name.startswith(_PLAIN):
            body["include"] = [ENCRYPTED]
        if request.instructions:
            body["instructions"] = request.instructions
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            body["tool_choice"] = "required" if request.must_call else "auto"
        if request.output_schema is not None:
            schema = request.output_schema
            body["text"] = {
                "format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}
            }
        if request.max_tokens is not None:
            body["max_output_tokens"] = request.max_tokens
        if request.thread:
            # The provider allows 64 characters.
            body["prompt_cache_key"] = sha256(request.thread.encode()).hexdigest()[:32]
        items = [item for message in request.messages for item in _items(message, self.origin)]
        return msgspec.json.encode({**body, **self.options, "input": items})


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        # Without a word it would be strict, and refuse schemas with optional fields.
        "strict": False,
    }


def _items(message: Message, origin: str) -> Iterator[dict[str, Any]]:
    """System messages are the instructions, and no items."""
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.call, "output": message.text}
    elif message.role == "user":
        content = [{"type": "input_text", "text": message.text}]
        yield {"type": "message", "role": "user", "content": content}
    elif message.role == "assistant":
        own = message.extra_for(origin)
        if own:
            yield from own
            return
        if message.text:
            # As a text: a list of parts would have to be an item of its own, with an id.
            yield {"type": "message", "role": "assistant", "content": message.text}
        for call in message.calls:
            yield {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
            }


class ResponsesStreamedReply:
    """What was streamed so far. Items count when they are complete; pieces of text are only passed on."""

    def __init__(self, fields: EventFields, emit: StreamCallback, origin: str) -> None:
        self._fields = fields
        self._emit = emit
        self._origin = origin
        self._items: dict[int, dict[str, Any]] = {}
        self._text: list[str] = []
        self._response: dict[str, Any] | None = None

    def take(self, event: dict[str, Any]) -> None:
        fields = self._fields
        kind = event.get("type")
        if kind == "response.output_text.delta":
            piece = fields.text(event, "delta")
            self._text.append(piece)
            self._emit("text", piece)
        elif kind == "response.output_item.done":
            self._items[fields.count(event, "output_index")] = fields.record(event, "item")
        elif kind in ("response.completed", "response.incomplete"):
            self._response = fields.record(event, "response")
        elif kind == "response.failed":
            response = fields.record(event, "response")
            self._failed(fields.maybe_record(response, "error", "response."))
        elif kind == "error":
            self._failed(fields.maybe_record(event, "error") or event)
        elif not fields.text(event, "type"):
            fields.failed(event)
            raise fields.wrong("type", kind)

    def _failed(self, error: dict[str, Any]) -> None:
        code, said = str(error.get("code") or ""), clean_text(error.get("message") or error, 300)
        if code and code not in _TRANSIENT:
            raise ModelRefusedError(f"{self._fields.where} gave no answer: {code}: {said}.", may_be_paid=True)
        raise StreamCutError(f"the endpoint aborted the answer: {said}")

    def reply(self) -> ModelReply:
        fields = self._fields
        if self._response is None:
            raise StreamCutError("the answer ended before its final event")
        items = [item for _, item in sorted(self._items.items())]
        if not items:
            items = fields.records(self._response, "output", "response.")
        texts, refusals = self._said(items)
        calls = tuple(self._call(item) for item in items if item.get("type") == "function_call")
        text = "".join(texts) or "".join(self._text)
        finish = self._finish(calls, refused=bool(refusals) and not text)
        extra = tuple(items) if any(_is_own(item) for item in items) else ()
        message = Message(
            "assistant", text or "".join(refusals), calls, extra=extra, origin=self._origin if extra else ""
        )
        model = fields.text(self._response, "model", "response.")
        return ModelReply(message, self._tokens(self._response), finish, model=model)

    def _said(self, items: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
        texts: list[str] = []
        refusals: list[str] = []
        for item in items:
            if item.get("type") != "message":
                continue
            for part in self._fields.records(item, "content", "item."):
                if part.get("type") == "refusal":
                    refusals.append(self._fields.text(part, "refusal", "item.content[]."))
                elif part.get("type") == "output_text":
                    texts.append(self._fields.text(part, "text", "item.content[]."))
        return texts, refusals

    def _finish(self, calls: tuple[ToolCall, ...], *, refused: bool) -> str:
        details = self._fields.maybe_record(self._response or {}, "incomplete_details", "response.")
        reason = self._fields.text(details, "reason", "response.incomplete_details.")
        if reason == "max_output_tokens":
            return "length"
        if refused or reason == "content_filter":
            return "refused"
        return reason or ("tool_calls" if calls else "stop")

    def _call(self, item: dict[str, Any]) -> ToolCall:
        fields = self._fields
        for name in ("call_id", "name"):
            if not fields.text(item, name, "item."):
                raise fields.wrong(f"item.{name}", item.get(name))
        return ToolCall(item["call_id"], item["name"], fields.text(item, "arguments", "item.") or "{}")

    def _tokens(self, response: dict[str, Any]) -> TokenUsage:
        fields, path = self._fields, "response.usage."
        usage = fields.maybe_record(response, "usage", "response.")
        read = fields.maybe_record(usage, "input_tokens_details", path)
        made = fields.maybe_record(usage, "output_tokens_details", path)
        return TokenUsage(
            fields.count(usage, "input_tokens", path),
            fields.count(usage, "output_tokens", path),
            fields.count(read, "cached_tokens", f"{path}input_tokens_details."),
            fields.count(read, "cache_write_tokens", f"{path}input_tokens_details."),
            fields.count(made, "reasoning_tokens", f"{path}output_tokens_details."),
        )


def _is_own(item: Mapping[str, Any]) -> bool:
    """Whether text and calls alone would not give the same item again."""
    kind = cast("str", item.get("type"))
    return kind not in ("message", "function_call") or "phase" in item or "namespace" in item
