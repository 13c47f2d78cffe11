"""The capability that makes an agent durable inside a run of Holdfast."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, cast
from weakref import WeakKeyDictionary, ref

from pydantic_ai.agent import AbstractAgent, EventStreamHandler
from pydantic_ai.capabilities.abstract import WrapModelRequestHandler, WrapRunHandler
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    DurabilityEngineSpec,
    DurableOperationBackend,
    DurableOperationId,
    JournalCallableOperationBackend,
    ModelRequestId,
    ToolsetCallToolId,
    ToolsetKind,
    conversation_id_from_run_id,
)
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UserError
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import (
    AgentDepsT,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolApproved,
    ToolDenied,
)

from holdfast.agents.tool_call import UNKNOWN_RESULT
from holdfast.errors import HoldExpiredError, InputError, StepFailedError
from holdfast.integrations.pydantic_ai.digests import operation_digests
from holdfast.integrations.pydantic_ai.effects import METADATA, EffectTable
from holdfast.integrations.pydantic_ai.event_stream import emitter
from holdfast.integrations.pydantic_ai.private_names import arguments_of, is_registered, tool_result
from holdfast.integrations.pydantic_ai.refusals import (
    require_effect_names,
    require_json_results,
    require_one_agent,
    same_name,
)
from holdfast.integrations.tool_effects import OperationEffect
from holdfast.integrations.tool_holds import HoldOptions, ask_approval, ask_result
from holdfast.runs.context.context import Context
from holdfast.runs.context.current import current_context, current_session
from holdfast.runs.context.thread_context import ThreadContext

_STATUS: Final = re.compile(r"^status_code: (\d+), ")
_CALL: Final = "call"
"""The key of a tool's result in its record."""
_REGISTER: Final = "Give model instances to HoldfastDurability(models={...})."
_KINDS: Final[frozenset[ToolsetKind]] = frozenset({"function", "mcp", "dynamic"})


class AgentRuns:
    """The agent runs of one attempt of a handler: how many have started, and which agent has which name."""

    def __init__(self) -> None:
        self.count = 0
        self.agents: dict[str, object] = {}


class RunSteps:
    """Numbers the steps of one agent run: agents that run side by side do not share the order of calls."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._count = 0
        self._calls: Counter[str] = Counter()

    def next(self) -> str:
        self._count += 1
        return f"{self._run}/{self._count}"

    def of_call(self, call: str) -> str:
        """The key of the question about a call. Models may use an id again: the answer to the call that had
        it before must not allow this one."""
        self._calls[call] += 1
        again = self._calls[call]
        # The count is before the id: a model could choose an id that ends like one.
        return f"{self._run}/{call}" if again == 1 else f"{self._run}#{again}/{call}"


_attempts: WeakKeyDictionary[Context, AgentRuns] = WeakKeyDictionary()
_nodes: WeakKeyDictionary[Any, dict[str, tuple[str, Any]]] = WeakKeyDictionary()
"""Of each run that is at work here: in which node the agent of a name ran first, and which one it was."""
_steps: ContextVar[RunSteps | None] = ContextVar("the steps of the agent run", default=None)


def _not_json(error: Exception) -> InputError:
    found = InputError(
        f"a result of the agent cannot be stored as JSON: {error}.",
        hint="Return text, numbers, lists, dicts, dataclasses or pydantic models from tools.",
    )
    found.__cause__ = error
    return found


class StepBackend(JournalCallableOperationBackend[OperationEffect]):
    """Each operation is one `ctx.step`."""

    async def execute(
        self,
        *,
        operation_id: DurableOperationId,
        name: str,
        body: Callable[[], Awaitable[object]],
        cache_key: tuple[object, ...],
        config: OperationEffect,
    ) -> object:
        ctx, steps = current_context(), _steps.get()
        if ctx is None:
            # Inside another step, which is recorded as a whole.
            return await body()
        raised: list[ModelAPIError] = []
        is_call = isinstance(operation_id, ToolsetCallToolId)

        async def perform() -> Any:
            token = emitter.set(ctx)
            ctx.note_digests(**operation_digests(operation_id, cache_key))
            try:
                found: Any = await body()
            except ModelAPIError as error:
                raised.append(error)
                raise
            finally:
                emitter.reset(token)
            if isinstance(operation_id, ModelRequestId):
                ctx.spent(tokens=_tokens(found))
            return {_CALL: found} if is_call else found

        key = _idempotency_key(operation_id, config, cache_key)
        try:
            place = None if steps is None else steps.next()
            kept = await ctx.step(name, perform, effect=config.effect, key=place, idempotency_key=key)
        except StepFailedError as error:
            # The framework's fallback to another model looks at the class of the error.
            if raised:
                raise raised[0] from error
            if isinstance(operation_id, ModelRequestId) and error.info is not None:
                _raise_recorded(operation_id, error)
            raise
        return _call_result(kept) if is_call else kept


def _tokens(response: dict[str, Any]) -> int:
    usage: dict[str, Any] = response.get("usage") or {}
    return int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)


def _raise_recorded(operation: ModelRequestId, error: StepFailedError) -> None:
    """A recorded error of a model is of the same class for the framework when it is raised again."""
    info: Any = error.info
    names = {cls.__name__ for cls in _classes(ModelAPIError)}
    if info.type in names:
        status = _STATUS.match(info.message)
        if status:
            raise ModelHTTPError(int(status[1]), operation.model_name) from error
        raise ModelAPIError(operation.model_name, info.message) from error


def _classes(root: type[BaseException]) -> list[type[BaseException]]:
    return [root, *(found for each in root.__subclasses__() for found in _classes(each))]


def _idempotency_key(
    operation: DurableOperationId, config: OperationEffect, given: tuple[object, ...]
) -> str | None:
    if not config.key or not isinstance(operation, ToolsetCallToolId):
        return None
    return config.key_of(str(given[0]), arguments_of(given))


def _call_result(kept: Any) -> Any:
    """The recorded result of a tool; or the value that a person entered for an unknown outcome."""
    if isinstance(kept, dict) and _CALL in kept and len(cast("dict[str, Any]", kept)) == 1:
        return cast("dict[str, Any]", kept)[_CALL]
    return tool_result(UNKNOWN_RESULT if kept is None else kept)


class HoldfastDurability(BaseDurabilityCapability[AgentDepsT]):
    """Give it to an agent: `Agent(model, name="support", capabilities=[HoldfastDurability()])`. When the
    agent runs inside a script of a flow, each model request, tool call and discovery is a recorded step, and
    each call that needs approval is a hold. Outside a run it does nothing.

    `effects`: the effect class of tools by name, such as `{"lookup": "read"}`; a tool that is not named is
    `external`. `hold`: whom approvals go to and until when, as for `ctx.ask`, or a function of the tool's
    name and arguments. `models`, `event_stream_handler`, `name`: as for the framework's own engines.
    """

    engine_spec = DurabilityEngineSpec(
        engine_name="Holdfast",
        durable_unit_noun="step",
        durable_container_noun="run",
        codec=JSON_CODEC,
        serialization_failure=_not_json,
        unsupported_runtime_toolset_kinds=_KINDS,
        wrapped_toolset_kinds=_KINDS,
        toolset_lifecycles={
            "function": "enter-always",
            "mcp": "enter-in-durable-unit",
            "dynamic": "enter-never",
        },
        journal_discovery=True,
        sequential_tools_in_durable_context=True,
        tool_config_key=METADATA,
    )

    def __init__(
        self,
        *,
        models: Mapping[str, Model] | None = None,
        event_stream_handler: EventStreamHandler[AgentDepsT] | None = None,
        name: str | None = None,
        effects: Mapping[str, str] | None = None,
        hold: HoldOptions = None,
    ) -> None:
        super().__init__(models=models, event_stream_handler=event_stream_handler, name=name)
        self._effects = EffectTable(effects)
        self._hold = hold

    @property
    def in_durable_context(self) -> bool:
        return _context() is not None

    def get_durable_operation_backend(self) -> DurableOperationBackend[OperationEffect]:
        return StepBackend(agent_name=self.name, default_model_id=self.default_model_id, config=self._effects)

    # Identity over resumes (IN-55).
    def get_default_run_id(self) -> str | None:
        ctx = _context()
        if ctx is None:
            return None
        runs = _attempts.setdefault(ctx, AgentRuns())
        runs.count += 1
        return f"{ctx.run_id}:{ctx.scope}{'/' if ctx.scope else ''}{ctx.node}:{ctx.visit}:{runs.count}"

    def get_default_conversation_id(self, run_id: str) -> str | None:
        return None if _context() is None else conversation_id_from_run_id(run_id)

    async def get_run_start_time(self, run_id: str) -> datetime | None:
        ctx = _context()
        if ctx is None:
            return None

        async def start_time() -> str:
            return datetime.fromtimestamp(ctx.now() / 1e6, UTC).isoformat()

        key = f"{run_id}/start"
        return datetime.fromisoformat(
            await ctx.step(f"{self.name}__run_start_time", start_time, effect="pure", key=key)
        )

    def _require_allowed(self, ctx: Context, run: RunContext[AgentDepsT]) -> None:
        """Raises InputError, before anything is called (IN-56)."""
        session = current_session()
        require_one_agent(session.program, self.name, self.agent, _durable_name)
        # Agents that code makes while it runs: another one in this attempt, or in another node.
        attempt = _attempts.setdefault(ctx, AgentRuns()).agents.setdefault(self.name, self.agent)
        nodes = _nodes.setdefault(session, {}).setdefault(self.name, (ctx.node, ref(self.agent)))
        if attempt is not self.agent or (nodes[0] != ctx.node and nodes[1]() is not self.agent):
            raise same_name(self.name, f"flow {ctx.flow!r}")
        # One that was built from its name has `model_id`, and is built again from that.
        if run.model_id is None and not is_registered(self, run.model):
            raise InputError(
                f"agent {self.name!r} cannot use the model instance {run.model.model_id!r} in a run.",
                hint=_REGISTER,
            )
        if self.agent is not None:
            require_json_results(self.name, self.agent.toolsets)

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        here = _context()
        if here is None:
            return await super().wrap_run(ctx, handler=handler)
        self._require_allowed(here, ctx)
        token = _steps.set(RunSteps(str(ctx.run_id)))
        try:
            return await super().wrap_run(ctx, handler=handler)
        finally:
            _steps.reset(token)

    async def wrap_model_request(
        self,
        ctx: RunContext[AgentDepsT],
        *,
        request_context: ModelRequestContext,
        handler: WrapModelRequestHandler,
    ) -> ModelResponse:
        if self.in_durable_context and self.agent is not None:
            offered = request_context.model_request_parameters.tool_defs
            require_effect_names(self.name, self._effects.tools, offered, self.agent.toolsets)
        try:
            return await super().wrap_model_request(ctx, request_context=request_context, handler=handler)
        except UserError as error:
            if not self.in_durable_context:
                raise
            raise InputError(
                f"agent {self.name!r} cannot make this model request in a run: {error}",
                hint=_REGISTER,
            ) from error

    # Approvals and answers of people (IN-54).
    async def handle_deferred_tool_calls(
        self, ctx: RunContext[AgentDepsT], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        here, steps = _context(), _steps.get()
        if here is None or steps is None:
            return None
        approvals = [self._approval(here, steps, ctx, call) for call in requests.approvals]
        answers = [self._answer(here, steps, call) for call in requests.calls]
        # All are open before the first is waited for.
        found = await asyncio.gather(*approvals, *answers)
        count = len(approvals)
        return DeferredToolResults(
            approvals={
                call.tool_call_id: each for call, each in zip(requests.approvals, found[:count], strict=True)
            },
            calls={call.tool_call_id: each for call, each in zip(requests.calls, found[count:], strict=True)},
        )

    async def _approval(
        self, here: Context, steps: RunSteps, ctx: RunContext[AgentDepsT], call: ToolCallPart
    ) -> ToolApproved | ToolDenied:
        tools = ctx.tool_manager
        tool = None if tools is None else tools.get_tool_def(call.tool_name)
        decision = await ask_approval(
            here,
            call.tool_name,
            call.args_as_dict(),
            key=steps.of_call(call.tool_call_id),
            hold=self._hold,
            schema=None if tool is None else tool.parameters_json_schema,
            context={"entity_id": call.tool_call_id, "agent": self.name},
        )
        if not decision.approved:
            return ToolDenied(decision.message)
        return ToolApproved(override_args=decision.arguments)

    async def _answer(self, here: Context, steps: RunSteps, call: ToolCallPart) -> Any:
        key = steps.of_call(call.tool_call_id)
        try:
            return await ask_result(here, call.tool_name, call.args_as_dict(), key=key, hold=self._hold)
        except HoldExpiredError:
            return "No answer came in time."


def _durable_name(agent: AbstractAgent[Any, Any]) -> tuple[str, object] | None:
    found = HoldfastDurability.from_agent(agent)
    return None if found is None else (found.name, found.agent)


def _context() -> Context | None:
    """Raises InputError in a sync handler: its thread has no event loop that the run's steps could use."""
    found = current_context()
    if isinstance(found, ThreadContext):
        raise InputError(
            f"node {found.node!r} runs an agent in a thread, where its steps cannot be recorded.",
            hint="Make the script async, and write `await agent.run(...)`.",
        )
    return found
