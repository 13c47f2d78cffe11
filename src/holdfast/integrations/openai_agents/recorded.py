"""The model calls, tool calls and handoffs of one agent run, each a recorded step (IN-61)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, cast

from agents import FunctionTool, Model, ModelProvider, ModelResponse
from agents.exceptions import ModelBehaviorError
from agents.tool import ToolOutputFileContent, ToolOutputImage, ToolOutputText, default_tool_error_function
from pydantic import BaseModel, TypeAdapter

from holdfast.agents.tool_call import UNKNOWN_RESULT
from holdfast.errors import InputError, NotDone, StepFailedError
from holdfast.integrations.openai_agents.private_names import has_default_errors, raising
from holdfast.integrations.tool_effects import EXTERNAL, OperationEffect
from holdfast.runs.context.context import Context
from holdfast.runs.context.substeps import inside_step
from holdfast.types.record import PRIVATE
from holdfast.types.status import REPEATABLE, Effect
from holdfast.types.value import thaw

MODEL: Final = "model.request"
STATE: Final = "run_state"
_CALL: Final = "call"
"""The key of a tool's result in its record."""
_KIND: Final = "holdfast_output"
_OUTPUTS: Final[dict[str, type[BaseModel]]] = {
    each.__name__: each for each in (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
}
_RESPONSE: Final[TypeAdapter[ModelResponse]] = TypeAdapter(ModelResponse)


class AgentSteps:
    """The steps of one agent run. Their keys are places in that run, so that agents that run side by side do
    not share an order, and an answer to one call belongs to no other."""

    def __init__(self, ctx: Context, number: int, effects: Mapping[str, OperationEffect]) -> None:
        self.ctx = ctx
        self._run = f"openai_agents/{number}"
        self._effects = effects
        self._models = 0
        self._calls: Counter[str] = Counter()
        self.made: list[list[str]] = []
        """Key and name of each step since the last recorded state."""

    # ---- places
    def state_key(self, turn: int) -> str:
        return f"{PRIVATE}{self._run}/state/{turn}"

    def approval_key(self, turn: int, place: int, call: str) -> str:
        return f"{self._run}/approval/{turn}/{place}/{call}"

    def _model_key(self) -> str:
        return f"{self._run}/model/{self._models}"

    def _call_key(self, kind: str, call: str) -> str:
        """Models may use an id again: that is another call."""
        self._calls[f"{kind}/{call}"] += 1
        again = self._calls[f"{kind}/{call}"]
        # The count is before the id: a model could choose an id that ends like one.
        return f"{self._run}/{kind}{'' if again == 1 else f'#{again}'}/{call}"

    # ---- steps
    async def step(self, name: str, key: str, perform: Callable[[], Awaitable[Any]], **options: Any) -> Any:
        self.made.append([key, name])
        return await self.ctx.step(name, perform, key=key, **options)

    async def model(self, call: Callable[[], Awaitable[ModelResponse]]) -> ModelResponse:
        raised: list[Exception] = []

        async def perform() -> Any:
            try:
                found = await call()
            except Exception as error:
                raised.append(error)
                raise
            self.ctx.spent(tokens=found.usage.input_tokens + found.usage.output_tokens)
            return _RESPONSE.dump_python(found, mode="json", exclude_unset=True)

        while True:
            self._models += 1
            try:
                kept = await self.step(MODEL, self._model_key(), perform, effect=Effect.read)
                return _RESPONSE.validate_python(thaw(kept))
            except StepFailedError as error:
                if raised:
                    # The SDK's retries look at the class of the error.
                    raise raised[0] from error
                # A recorded failure that another request follows: the SDK had retried it.
                if self.ctx.recorded(f"{self._run}/model/{self._models + 1}") is None:
                    raise

    async def tool(self, tool: FunctionTool, at: Any, given: str) -> Any:
        name = tool.qualified_name
        how = self._effects.get(name, EXTERNAL)
        kept = await self.step(
            f"tool:{name}",
            self._call_key("tool", at.tool_call_id),
            lambda: _call(tool, at, given, how),
            effect=how.effect,
            idempotency_key=how.key_of(name, arguments_in(given)),
        )
        return _result(thaw(kept))

    async def handoff(self, name: str, invoke: Callable[[], Awaitable[str]]) -> str | None:
        """The name of the agent that it leads to; None: a person answered for an unknown outcome."""
        how = self._effects.get(name)
        found = await self.step(
            f"handoff:{name}",
            self._call_key("handoff", name),
            invoke,
            effect=Effect.read if how is None else how.effect,
        )
        return found if isinstance(found, str) else None

    # ---- the state at an interruption
    def counts(self) -> dict[str, Any]:
        return {"models": self._models, "calls": dict(self._calls), "steps": self.made}

    async def skip_to(self, kept: Mapping[str, Any]) -> None:
        """As if the calls before a recorded state had been made again: their results are part of it."""
        for key, name in kept["steps"]:
            try:
                await self.ctx.step(name, _never, key=key, effect=Effect.read)
            except StepFailedError:
                continue
        self._models = kept["models"]
        self._calls = Counter(kept["calls"])
        self.made = []


async def _never() -> None:
    raise AssertionError("a recorded step is not run again")


async def _call(tool: FunctionTool, at: Any, given: str, how: OperationEffect) -> dict[str, Any]:
    """The SDK tells the model about an error, and the model may call again. If the outcome is not known then,
    the error is raised instead, unless the user of the tool has said what the model is told."""
    sure = how.effect in REPEATABLE or bool(how.key)
    if sure or not has_default_errors(tool):
        return {_CALL: _stored(await tool.on_invoke_tool(at, given))}
    try:
        return {_CALL: _stored(await raising(tool).on_invoke_tool(at, given))}
    except (ModelBehaviorError, NotDone) as error:
        # Arguments that do not fit, or a tool that says so: nothing has happened.
        return {_CALL: default_tool_error_function(at, error)}


def _stored(value: Any) -> Any:
    """A tool's result as JSON. What the SDK would only turn into text is recorded as that text."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, BaseModel) and type(value).__name__ in _OUTPUTS:
        return {_KIND: type(value).__name__, "value": value.model_dump(mode="json", exclude_unset=True)}
    if isinstance(value, list):
        return [_stored(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        named = cast("dict[Any, Any]", value)
        if all(isinstance(key, str) for key in named):
            return {key: _stored(each) for key, each in named.items()}
    return str(cast("object", value))


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(each) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    named = cast("dict[str, Any]", value)
    if named.get(_KIND) in _OUTPUTS:
        return _OUTPUTS[named[_KIND]].model_validate(named["value"])
    return {key: _restored(each) for key, each in named.items()}


def _result(kept: Any) -> Any:
    """The recorded result of a tool; or the value that a person entered for an unknown outcome."""
    if isinstance(kept, dict) and list(cast("dict[str, Any]", kept)) == [_CALL]:
        return _restored(cast("dict[str, Any]", kept)[_CALL])
    return UNKNOWN_RESULT if kept is None else cast("Any", kept)


def arguments_in(given: str | None) -> dict[str, Any]:
    """The arguments of a call. Models may write what is not JSON, which the SDK tells them."""
    try:
        found = json.loads(given or "{}")
    except ValueError:
        found = None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {"input": given}


class RecordedModel(Model):
    """A model whose calls are recorded steps. Inside a step (an agent that is a tool) it is the model."""

    def __init__(self, inner: Model, steps: AgentSteps) -> None:
        self._inner = inner
        self._steps = steps

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        async def call() -> ModelResponse:
            return await self._inner.get_response(*args, **kwargs)

        return await (call() if inside_step.get() else self._steps.model(call))

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        if inside_step.get():
            return self._inner.stream_response(*args, **kwargs)
        raise InputError("run_agent does not stream.", hint="Emit what people see with ctx.emit.")

    def get_retry_advice(self, request: Any) -> Any:
        return self._inner.get_retry_advice(request)

    async def close(self) -> None:
        await self._inner.close()


class RecordedProvider(ModelProvider):
    """A provider whose models are recorded."""

    def __init__(self, inner: ModelProvider, steps: AgentSteps) -> None:
        self._inner = inner
        self._steps = steps

    def get_model(self, model_name: str | None) -> Model:
        return RecordedModel(self._inner.get_model(model_name), self._steps)

    async def aclose(self) -> None:
        await self._inner.aclose()


def recorded_model(model: str | Model | None, steps: AgentSteps) -> str | Model | None:
    return RecordedModel(model, steps) if isinstance(model, Model) else model
