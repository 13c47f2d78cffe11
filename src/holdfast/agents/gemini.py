"""Google's Gemini API: `streamGenerateContent`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Unpack, cast

import msgspec

from holdfast.agents.messages import Message, ModelReply, ModelRequest, TokenUsage, ToolCall
from holdfast.agents.model import StreamCallback
from holdfast.agents.model_http import Endpoint, EndpointOptions, Key, StreamCutError
from holdfast.agents.output_schemas import is_closed
from holdfast.agents.prices import Prices
from holdfast.agents.streams import EventFields
from holdfast.types.text import clean_text

VERSION: Final = "v1beta"
FINISH: Final = {"STOP": "stop", "MAX_TOKENS": "length"}
# The model wrote a call that the provider could not read: another attempt may do better.
_BROKEN: Final = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "OTHER"})
# For calls that another model made: the provider accepts this word in place of a signature.
_UNSIGNED: Final = "skip_thought_signature_validator"


class Gemini:
    """`Gemini("gemini-3.8-flash", prices=Prices(...))`. Options as for `OpenAI`; those that the API has under
    `generationConfig` go there."""

    provider = "gcp.gemini"

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "https://generativelanguage.googleapis.com",
        key: Key = "GEMINI_API_KEY",
        prices: Prices | None = None,
        options: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **call: Unpack[EndpointOptions],
    ) -> None:
        self.name = name
        self.prices = prices
        self.options = dict(options or {})
        self.origin = f"gemini/{name}"
        base = base_url.rstrip("/").removesuffix(f"/{VERSION}")
        # In a header: an address with a key would be in logs of proxies.
        self.endpoint = Endpoint(base, key=key, key_header="x-goog-api-key", headers=headers, **call)

    def __repr__(self) -> str:
        return f"Gemini({self.name!r}, base_url={self.endpoint.base_url!r})"

    async def reply(self, request: ModelRequest, emit: StreamCallback) -> ModelReply:
        path = f"/{VERSION}/models/{self.name}:streamGenerateContent?alt=sse"
        fields = EventFields(f"{self.endpoint.base_url}{path}")
        return await self.endpoint.stream(
            path, self.body(request), lambda: GeminiStreamedReply(fields, emit, self.origin), emit
        )

    def takes_schema(self, schema: Mapping[str, Any]) -> bool:
        return is_closed(schema)

    def body(self, request: ModelRequest) -> bytes:
        """The same request is the same bytes, in every process. The contents are last: without its last two
        characters it is the beginning of the body of the next turn."""
        body: dict[str, Any] = {}
        if request.instructions:
            body["systemInstruction"] = {"parts": [{"text": request.instructions}]}
        if request.tools:
            declared = [
                {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema}
                for tool in request.tools
            ]
            body["tools"] = [{"functionDeclarations": declared}]
            mode = "ANY" if request.must_call else "AUTO"
            body["toolConfig"] = {"functionCallingConfig": {"mode": mode}}
        options = dict(self.options)
        generation: dict[str, Any] = {}
        if request.max_tokens is not None:
            generation["maxOutputTokens"] = request.max_tokens
        if request.output_schema is not None:
            generation["responseMimeType"] = "application/json"
            generation["responseJsonSchema"] = request.output_schema
        generation |= cast("dict[str, Any]", options.pop("generationConfig", {}))
        if generation:
            body["generationConfig"] = generation
        contents = list(_contents(request.messages, self.origin))
        return msgspec.json.encode({**body, **options, "contents": contents})


def _contents(messages: Sequence[Message], origin: str) -> Iterator[dict[str, Any]]:
    """Results of tools and the messages after them are one turn of the user. They name the function; the id
    is sent if the call was sent with one."""
    names: dict[str, tuple[str, bool]] = {}
    turn: dict[str, Any] | None = None
    for message in messages:
        if message.role == "system":
            continue
        role = "model" if message.role == "assistant" else "user"
        parts = _parts(message, origin, names)
        if not parts:
            continue
        if turn is not None and turn["role"] == role:
            turn["parts"] += parts
            continue
        if turn is not None:
            yield turn
        turn = {"role": role, "parts": parts}
    if turn is not None:
        yield turn


def _parts(message: Message, origin: str, names: dict[str, tuple[str, bool]]) -> list[dict[str, Any]]:
    if message.role == "tool":
        name, has_id = names.get(message.call, ("", True))
        answer = {"error" if message.failed else "output": message.text}
        found = {"name": name, "response": answer}
        return [{"functionResponse": {"id": message.call, **found} if has_id else found}]
    own = message.extra_for(origin)
    made = [part["functionCall"] for part in own if "functionCall" in part]
    for index, call in enumerate(message.calls):
        names[call.id] = (call.name, not own or (index < len(made) and "id" in made[index]))
    if own:
        return list(own)
    parts: list[dict[str, Any]] = [{"text": message.text}] if message.text.strip() else []
    for index, call in enumerate(message.calls):
        part: dict[str, Any] = {
            "functionCall": {"id": call.id, "name": call.name, "args": _args(call.arguments)}
        }
        parts.append(part if index else {**part, "thoughtSignature": _UNSIGNED})
    return parts


def _args(arguments: str) -> dict[str, Any]:
    try:
        found: Any = msgspec.json.decode(arguments)
    except ValueError:
        found = None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {"malformed": arguments}


class GeminiStreamedReply:
    """What was streamed so far. Pieces of one text are joined; a signed part stays as it came."""

    def __init__(self, fields: EventFields, emit: StreamCallback, origin: str) -> None:
        self._fields = fields
        self._emit = emit
        self._origin = origin
        self._parts: list[dict[str, Any]] = []
        self._pieces: list[str] = []
        self._usage: dict[str, Any] = {}
        self._finish: str | None = None
        self._said = ""
        self._model = ""

    def take(self, event: dict[str, Any]) -> None:
        fields = self._fields
        fields.failed(event)
        if "candidates" not in event and "usageMetadata" not in event and "promptFeedback" not in event:
            raise fields.wrong("candidates", None)
        self._model = fields.text(event, "modelVersion") or self._model
        if event.get("usageMetadata") is not None:
            self._usage = fields.record(event, "usageMetadata")
        if event.get("promptFeedback") is not None:
            feedback = fields.record(event, "promptFeedback")
            self._finish = fields.text(feedback, "blockReason", "promptFeedback.") or self._finish
        for candidate in fields.records(event, "candidates")[:1]:
            content = fields.maybe_record(candidate, "content", "candidates[0].")
            for part in fields.records(content, "parts", "candidates[0].content."):
                self._hear(part)
            self._finish = fields.text(candidate, "finishReason", "candidates[0].") or self._finish
            self._said = fields.text(candidate, "finishMessage", "candidates[0].") or self._said

    def _hear(self, part: dict[str, Any]) -> None:
        where = "candidates[0].content.parts[]."
        if "text" in part and not part.get("thought"):
            piece = self._fields.text(part, "text", where)
            if piece:
                self._emit("text", piece)
            if len(part) == 1:
                self._pieces.append(piece)
                return
        self._join()
        self._parts.append(part)

    def _join(self) -> None:
        if self._pieces:
            self._parts.append({"text": "".join(self._pieces)})
            self._pieces = []

    def reply(self) -> ModelReply:
        finish = self._fields.ended(self._finish)
        if finish in _BROKEN:
            raise StreamCutError(f"the answer ended with {finish}: {clean_text(self._said, 300)}")
        self._join()
        spoken = (part for part in self._parts if "text" in part and not part.get("thought"))
        text = "".join(part["text"] for part in spoken)
        calls = tuple(self._call(part) for part in self._parts if "functionCall" in part)
        extra = tuple(self._parts) if any("thoughtSignature" in part for part in self._parts) else ()
        message = Message("assistant", text, calls, extra=extra, origin=self._origin if extra else "")
        word = "tool_calls" if calls else FINISH.get(finish, "refused")
        return ModelReply(message, self._tokens(), word, model=self._model)

    def _call(self, part: dict[str, Any]) -> ToolCall:
        fields, where = self._fields, "candidates[0].content.parts[].functionCall."
        call = fields.record(part, "functionCall", "candidates[0].content.parts[].")
        name = fields.text(call, "name", where)
        if not name:
            raise fields.wrong(f"{where}name", call.get("name"))
        args = fields.maybe_record(call, "args", where)
        return ToolCall(fields.text(call, "id", where), name, msgspec.json.encode(args).decode())

    def _tokens(self) -> TokenUsage:
        """What is thought is counted beside the answer, and paid like it."""

        def count(name: str) -> int:
            return self._fields.count(self._usage, name, "usageMetadata.")

        thought = count("thoughtsTokenCount")
        return TokenUsage(
            count("promptTokenCount") + count("toolUsePromptTokenCount"),
            count("candidatesTokenCount") + thought,
            count("cachedContentTokenCount"),
            reasoning=thought,
        )
