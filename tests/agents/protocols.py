"""An answer as each provider streams it: its events, complete enough for the vendors' own SDKs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

MODEL = "m-1-2026"


@dataclass
class Answer:
    """What the model says. `cut`: the connection breaks after so many events. `stall`: it does not, but
    nothing more comes, and so many seconds pass. `thought`: signed reasoning before the answer, of
    `reasoning` tokens."""

    text: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)  # (id, name, arguments or their text)
    tokens: tuple[int, int] = (10, 5)
    cached: int = 0
    written: int = 0
    reasoning: int = 0
    thought: str = ""
    finish: str | None = None
    cut: int | None = None
    stall: float | None = None
    raw: list[str] | None = None  # the data of events as they are
    before: Callable[[], Any] | None = None


def pieces(text: str) -> list[str]:
    return [text[i : i + 5] for i in range(0, len(text), 5)]


def text_of(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def events(path: str, turn: Answer) -> Iterator[str]:
    """As they are sent for a request to this path."""
    if turn.raw is not None:
        return (f"event: x\ndata: {data}\n\n" for data in turn.raw)
    if path.endswith("/messages"):
        return anthropic(turn)
    if path.endswith("/responses"):
        return responses(turn)
    return gemini(turn) if ":streamGenerateContent" in path else chat(turn)


def _named(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"


def chat(turn: Answer) -> Iterator[str]:
    def event(delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        return f"data: {json.dumps({**head, 'choices': [choice]})}\n\n"

    yield event({"role": "assistant", "content": ""})
    for piece in pieces(turn.text):
        yield event({"content": piece})
    for index, (call, name, arguments) in enumerate(turn.calls):
        first = {"index": index, "id": call, "type": "function", "function": {"name": name, "arguments": ""}}
        yield event({"tool_calls": [first]})
        for piece in pieces(text_of(arguments)):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, turn.finish or ("tool_calls" if turn.calls else "stop"))
    usage = {
        "prompt_tokens": turn.tokens[0],
        "completion_tokens": turn.tokens[1],
        "total_tokens": sum(turn.tokens),
        "prompt_tokens_details": {"cached_tokens": turn.cached},
        "completion_tokens_details": {"reasoning_tokens": turn.reasoning},
    }
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    yield f"data: {json.dumps({**head, 'choices': [], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


def anthropic(turn: Answer) -> Iterator[str]:
    usage = {
        "input_tokens": turn.tokens[0],
        "output_tokens": 1,
        "cache_read_input_tokens": turn.cached,
        "cache_creation_input_tokens": turn.written,
    }
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    yield _named("message_start", message=message)
    yield _named("ping")
    index = 0
    if turn.thought:
        yield _named("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""})
        for piece in pieces(turn.thought):
            yield _named("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": piece})
        signed = {"type": "signature_delta", "signature": f"signed:{turn.thought}"}
        yield _named("content_block_delta", index=0, delta=signed)
        yield _named("content_block_stop", index=0)
        index = 1
    if turn.text:
        yield _named("content_block_start", index=index, content_block={"type": "text", "text": ""})
        for piece in pieces(turn.text):
            yield _named("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
        yield _named("content_block_stop", index=index)
        index += 1
    for call, name, arguments in turn.calls:
        block = {"type": "tool_use", "id": call, "name": name, "input": {}}
        yield _named("content_block_start", index=index, content_block=block)
        for piece in pieces(text_of(arguments)):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield _named("content_block_delta", index=index, delta=delta)
        yield _named("content_block_stop", index=index)
        index += 1
    finish = turn.finish or ("tool_use" if turn.calls else "end_turn")
    used: dict[str, Any] = {"output_tokens": turn.tokens[1]}
    if turn.reasoning:
        used["output_tokens_details"] = {"thinking_tokens": turn.reasoning}
    yield _named("message_delta", delta={"stop_reason": finish, "stop_sequence": None}, usage=used)
    yield _named("message_stop")


def responses(turn: Answer) -> Iterator[str]:
    number = iter(range(100_000))
    output: list[dict[str, Any]] = []

    def event(kind: str, **data: Any) -> str:
        return _named(kind, sequence_number=next(number), **data)

    def whole(status: str, **more: Any) -> dict[str, Any]:
        return {
            "id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": MODEL,
            "output": list(output), "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
            "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, **more,
        }  # fmt: skip

    def item(found: dict[str, Any]) -> str:
        output.append(found)
        return event("response.output_item.done", output_index=len(output) - 1, item=found)

    yield event("response.created", response=whole("in_progress"))
    yield event("response.in_progress", response=whole("in_progress"))
    if turn.thought:
        reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": ""}
        yield event("response.output_item.added", output_index=0, item=reasoning)
        yield item({**reasoning, "encrypted_content": f"sealed:{turn.thought}"})
    if turn.text:
        index = len(output)
        said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
        where = {"item_id": "msg_1", "output_index": index, "content_index": 0}
        yield event("response.output_item.added", output_index=index, item=said)
        part = {"type": "output_text", "text": "", "annotations": []}
        yield event("response.content_part.added", **where, part=part)
        for piece in pieces(turn.text):
            yield event("response.output_text.delta", **where, delta=piece, logprobs=[])
        yield event("response.output_text.done", **where, text=turn.text, logprobs=[])
        yield event("response.content_part.done", **where, part={**part, "text": turn.text})
        yield item({**said, "status": "completed", "content": [{**part, "text": turn.text}]})
    for place, (call, name, arguments) in enumerate(turn.calls, 1):
        index, text = len(output), text_of(arguments)
        made = {
            "type": "function_call", "id": f"fc_{place}", "call_id": call, "name": name, "arguments": "",
            "status": "in_progress",
        }  # fmt: skip
        where = {"item_id": f"fc_{place}", "output_index": index}
        yield event("response.output_item.added", output_index=index, item=made)
        for piece in pieces(text):
            yield event("response.function_call_arguments.delta", **where, delta=piece)
        yield event("response.function_call_arguments.done", **where, arguments=text, name=name)
        yield item({**made, "arguments": text, "status": "completed"})
    usage = {
        "input_tokens": turn.tokens[0],
        "input_tokens_details": {"cached_tokens": turn.cached, "cache_write_tokens": turn.written},
        "output_tokens": turn.tokens[1],
        "output_tokens_details": {"reasoning_tokens": turn.reasoning},
        "total_tokens": sum(turn.tokens),
    }
    if turn.finish:
        details = {"incomplete_details": {"reason": turn.finish}}
        yield event("response.incomplete", response=whole("incomplete", usage=usage, **details))
    else:
        yield event("response.completed", response=whole("completed", usage=usage))


def gemini(turn: Answer) -> Iterator[str]:
    def event(parts: list[dict[str, Any]], finish: str | None = None) -> str:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        thought = turn.reasoning
        usage = {
            "promptTokenCount": turn.tokens[0],
            "candidatesTokenCount": turn.tokens[1] - thought,
            "thoughtsTokenCount": thought,
            "cachedContentTokenCount": turn.cached,
            "totalTokenCount": sum(turn.tokens),
        }
        whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "r1"}
        return f"data: {json.dumps(whole)}\n\n"

    # The signature is base64, as the API has it.
    signed = {"thoughtSignature": "c2lnbmVk"} if turn.thought else {}
    for piece in pieces(turn.text):
        yield event([{"text": piece}])
    for place, (call, name, arguments) in enumerate(turn.calls):
        args = json.loads(arguments) if isinstance(arguments, str) else arguments
        made = {"functionCall": {**({"id": call} if call else {}), "name": name, "args": args}}
        yield event([made if place else {**made, **signed}])
    last = [{"text": "", **signed}] if signed and not turn.calls else [{"text": ""}]
    yield event(last, turn.finish or "STOP")
