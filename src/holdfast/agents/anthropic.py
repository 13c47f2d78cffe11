"""Endpoints that speak Anthropic's messages API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, cast

import msgspec

from holdfast.agents.messages import Message, ModelReply, ModelRequest, TokenUsage, ToolCall
from holdfast.agents.model import StreamCallback
from holdfast.agents.model_http import Endpoint, Key, Retries, Sleep
from holdfast.agents.output_schemas import is_closed
from holdfast.agents.prices import Prices
from holdfast.agents.streams import EventFields
from holdfast.holds.egress import Egress

VERSION = "2023-06-01"
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
COUNTED = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
Cache = Literal[False, "5m", "1h"]
"""How long the provider keeps the beginning of a conversation, or not at all."""
_MARKED_TURNS: Final = 2
"""Of the four marks that the provider allows: the others are for the tools and the instructions."""
# Reasoning blocks are signed by the provider, which requires them back unchanged.
REASONING_BLOCKS = ("thinking", "redacted_thinking")


class Anthropic:
    """`Anthropic("claude-...", prices=Prices(...))`. Options as for `OpenAI`. The protocol requires a limit
    for each answer: `max_tokens` is used unless the agent or its budget sets a lower one. `cache`: how long
    the provider keeps what is sent again with each turn."""

    provider = "anthropic"

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "https://api.anthropic.com",
        key: Key = "ANTHROPIC_API_KEY",
        prices: Prices | None = None,
        max_tokens: int = 8192,
        cache: Cache = "5m",
        options: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 120.0,
        retries: Retries | None = None,
        sleep: Sleep = asyncio.sleep,
        egress: Egress | None = None,
    ) -> None:
        self.name = name
        self.prices = prices
        self.max_tokens = max_tokens
        self.cache: Cache = cache
        self.origin = f"anthropic/{name}"
        self.options = dict(options or {})
        more = {"anthropic-version": VERSION, **(headers or {})}
        self.endpoint = Endpoint(
            base_url,
            key=key, key_header="x-api-key", headers=more,
            timeout=timeout, retries=retries, sleep=sleep, egress=egress,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Anthropic({self.name!r}, base_url={self.endpoint.base_url!r})"

    async def reply(self, request: ModelRequest, emit: StreamCallback) -> ModelReply:
        fields = EventFields(f"{self.endpoint.base_url}/v1/messages")
        return await self.endpoint.stream(
            "/v1/messages",
            self.body(request),
            lambda: AnthropicStreamedReply(fields, emit, self.origin),
            emit,
        )

    def takes_schema(self, schema: Mapping[str, Any]) -> bool:
        """Whether it guarantees answers of this form; if not, they are asked for as a tool's arguments."""
        return is_closed(schema)

    def body(self, request: ModelRequest) -> bytes:
        """The same request is the same bytes, in every process. The messages are last: without marks for the
        cache, and without its last two characters, it is the beginning of the body of the next turn."""
        limit = self.max_tokens if request.max_tokens is None else min(self.max_tokens, request.max_tokens)
        body: dict[str, Any] = {
            "model": self.name,
            "max_tokens": limit,
            "stream": True,
        }
        if request.instructions:
            body["system"] = request.instructions
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
                for tool in request.tools
            ]
            body["tool_choice"] = {"type": "any" if request.must_call else "auto"}
        options = dict(self.options)
        if request.output_schema is not None:
            form = {"type": "json_schema", "schema": request.output_schema}
            options["output_config"] = {"format": form, **options.get("output_config", {})}
        turns = list(_turns(request.messages, self.origin))
        if self.cache:
            _mark(body, turns, self.cache)
        return msgspec.json.encode({**body, **options, "messages": turns})


def _mark(body: dict[str, Any], turns: list[dict[str, Any]], cache: str) -> None:
    """What precedes a mark is kept: the tools, the instructions, the conversation up to the last turn of the
    user, and up to the one before it, which the last request has marked."""
    mark = {"type": "ephemeral", "ttl": cache} if cache == "1h" else {"type": "ephemeral"}
    if body.get("tools"):
        body["tools"][-1] = {**body["tools"][-1], "cache_control": mark}
    if body.get("system"):
        body["system"] = [{"type": "text", "text": body["system"], "cache_control": mark}]
    for turn in [turn for turn in turns if turn["role"] == "user"][-_MARKED_TURNS:]:
        # The provider refuses a mark on an empty text.
        if turn["content"][-1].get("text", turn["content"][-1].get("content")):
            turn["content"][-1] = {**turn["content"][-1], "cache_control": mark}


def _turns(messages: Sequence[Message], origin: str) -> Iterator[dict[str, Any]]:
    """Roles must alternate: results of tools and the messages after them become one turn of the user."""
    turn: dict[str, Any] | None = None
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, origin)
        if not blocks:
            continue  # an empty answer, which the protocol does not allow
        if turn is not None and turn["role"] == role:
            turn["content"] += blocks
            continue
        if turn is not None:
            yield turn
        turn = {"role": role, "content": blocks}
    if turn is not None:
        yield turn


def _blocks(message: Message, origin: str) -> list[dict[str, Any]]:
    if message.role == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.call, "content": message.text}
        return [{**result, "is_error": True} if message.failed else result]
    own = message.extra_for(origin)
    if any(block.get("type") not in REASONING_BLOCKS for block in own):
        return list(own)  # the whole answer, in which reasoning is not only at the beginning
    text = [{"type": "text", "text": message.text}] if message.text.strip() else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)}
        for call in message.calls
    ]
    return [*own, *text, *calls]


def _input(arguments: str) -> dict[str, Any]:
    """The protocol requires an object, even if the model wrote something else."""
    try:
        found: Any = msgspec.json.decode(arguments)
    except ValueError:
        found = None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {"malformed": arguments}


class AnthropicStreamedReply:
    """What was streamed so far: blocks of content by their index."""

    def __init__(self, fields: EventFields, emit: StreamCallback, origin: str) -> None:
        self._fields = fields
        self._emit = emit
        self._origin = origin
        self._blocks: dict[int, dict[str, Any]] = {}
        self._usage: dict[str, int] = {}
        self._finish: str | None = None
        self._ended = False
        self._model = ""

    def take(self, event: dict[str, Any]) -> None:
        kind = self._fields.text(event, "type")
        if kind == "error":
            self._fields.failed(event)
        take = _TAKE.get(kind)
        if take is not None:
            take(self, event)
        elif kind != "ping" and not kind:
            raise self._fields.wrong("type", event.get("type"))

    def _message_start(self, event: dict[str, Any]) -> None:
        message = self._fields.record(event, "message")
        self._count(self._fields.maybe_record(message, "usage", "message."))
        self._model = self._fields.text(message, "model", "message.")

    def _block_start(self, event: dict[str, Any]) -> None:
        block = self._fields.record(event, "content_block")
        index = self._fields.count(event, "index")
        self._blocks[index] = {**block, "json": ""}
        if block.get("text"):
            self._emit("text", self._fields.text(block, "text", "content_block."))

    def _block_delta(self, event: dict[str, Any]) -> None:
        fields = self._fields
        delta = fields.record(event, "delta")
        block = self._blocks.get(fields.count(event, "index"))
        if block is None:
            raise fields.wrong("index", event.get("index"))
        kind = fields.text(delta, "type", "delta.")
        if kind == "text_delta":
            piece = fields.text(delta, "text", "delta.")
            block["text"] = block.get("text", "") + piece
            self._emit("text", piece)
        elif kind == "input_json_delta":
            block["json"] += fields.text(delta, "partial_json", "delta.")
        elif kind == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + fields.text(delta, "thinking", "delta.")
        elif kind == "signature_delta":
            block["signature"] = fields.text(delta, "signature", "delta.")

    def _message_delta(self, event: dict[str, Any]) -> None:
        delta = self._fields.record(event, "delta")
        self._finish = self._fields.text(delta, "stop_reason", "delta.") or self._finish
        self._count(self._fields.maybe_record(event, "usage"))

    def _message_stop(self, _event: dict[str, Any]) -> None:
        self._ended = True

    def _count(self, usage: dict[str, Any]) -> None:
        for name in COUNTED:
            if usage.get(name) is not None:
                self._usage[name] = self._fields.count(usage, name, "usage.")
        details = self._fields.maybe_record(usage, "output_tokens_details", "usage.")
        if details:
            where = "usage.output_tokens_details."
            self._usage["thinking_tokens"] = self._fields.count(details, "thinking_tokens", where)

    def reply(self) -> ModelReply:
        finish = self._fields.ended(self._finish if self._ended else None)
        blocks = [block for _, block in sorted(self._blocks.items())]
        text = "".join(block.get("text", "") for block in blocks if block.get("type") == "text")
        calls = tuple(self._call(block) for block in blocks if block.get("type") == "tool_use")
        extra = self._reasoning(blocks)
        message = Message("assistant", text, calls, extra=extra, origin=self._origin if extra else "")
        return ModelReply(message, self._tokens(), FINISH.get(finish, finish), model=self._model)

    def _reasoning(self, blocks: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
        """The blocks of reasoning; all blocks if one of those follows something else: their order counts."""
        is_reasoning = [block.get("type") in REASONING_BLOCKS for block in blocks]
        if any(later and not here for here, later in pairwise(is_reasoning)):
            return tuple(_sent_back(block) for block in blocks)
        return tuple(_sent_back(block) for block, it_is in zip(blocks, is_reasoning, strict=True) if it_is)

    def _call(self, block: dict[str, Any]) -> ToolCall:
        fields, where = self._fields, "content_block."
        name = fields.text(block, "name", where)
        if not name:
            raise fields.wrong("content_block.name", block.get("name"))
        whole = msgspec.json.encode(block.get("input") or {}).decode()
        return ToolCall(fields.text(block, "id", where), name, block["json"] or whole)

    def _tokens(self) -> TokenUsage:
        """Anthropic counts cached tokens separately from the rest of the input."""
        cached = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        plain = self._usage.get("input_tokens", 0)
        return TokenUsage(
            plain + cached + written,
            self._usage.get("output_tokens", 0),
            cached,
            written,
            self._usage.get("thinking_tokens", 0),
        )


def _sent_back(block: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in block.items() if name != "json"}
    if block.get("type") == "tool_use" and block["json"]:
        found["input"] = _input(block["json"])
    return found


_TAKE = {
    "message_start": AnthropicStreamedReply._message_start,  # pyright: ignore[reportPrivateUsage]
    "content_block_start": AnthropicStreamedReply._block_start,  # pyright: ignore[reportPrivateUsage]
    "content_block_delta": AnthropicStreamedReply._block_delta,  # pyright: ignore[reportPrivateUsage]
    "message_delta": AnthropicStreamedReply._message_delta,  # pyright: ignore[reportPrivateUsage]
    "message_stop": AnthropicStreamedReply._message_stop,  # pyright: ignore[reportPrivateUsage]
}
