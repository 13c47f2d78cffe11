"""An agent of the OpenAI Agents SDK inside a script."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast
from weakref import WeakKeyDictionary

from agents import Agent, RunConfig, RunContextWrapper, Runner, RunResult, RunState
from agents.exceptions import UserError
from agents.run_config import DEFAULT_MAX_TURNS, ToolExecutionConfig

from holdfast.errors import HoldfastError, InputError, VersionMismatchError
from holdfast.integrations.openai_agents.copies import AgentCopies
from holdfast.integrations.openai_agents.private_names import (
    CURRENT_SCHEMA_VERSION,
    SUPPORTED_SCHEMA_VERSIONS,
)
from holdfast.integrations.openai_agents.recorded import (
    STATE,
    AgentSteps,
    RecordedProvider,
    arguments_in,
    recorded_model,
)
from holdfast.integrations.tool_effects import read_effects
from holdfast.integrations.tool_holds import HoldOptions, ToolDecision, ask_approval
from holdfast.runs.context.context import Context
from holdfast.runs.context.thread_context import ThreadContext
from holdfast.types.status import Effect
from holdfast.types.value import thaw

_counts: WeakKeyDictionary[Context, Counter[str]] = WeakKeyDictionary()
"""How many agents have run in each branch of a script: branches that do not run again change no number of
others."""


async def run_agent(
    ctx: Context,
    agent: Agent[Any],
    input: str | list[Any],  # noqa: A002
    *,
    effects: Mapping[str, Any] | None = None,
    hold: HoldOptions = None,
    run_config: RunConfig | None = None,
    context: Any = None,
    max_turns: int | None = DEFAULT_MAX_TURNS,
) -> RunResult:
    """`Runner.run` inside a script: each model call, tool call and handoff is a recorded step, and each call
    that needs approval is a hold. The agents and the `run_config` stay as they are.

    `effects`: what tools do, by name: `{"lookup": "read"}`, or `{"refund": {"effect": "write",
    "idempotency_key": "refund-{{order_id}}"}}`; a tool that is not named is `external`. `hold`: whom
    approvals go to and until when, as for `ctx.ask`, or a function of the tool's name and arguments; with
    `"always": True` a person may also allow all later calls of the tool in this agent run. `context`,
    `max_turns`: as for the SDK.

    Raises InputError for agents and tools that cannot be recorded, VersionMismatchError if the agent waited
    under a version of the SDK whose state this one cannot read; the SDK's own errors as they are."""
    if not isinstance(cast("Any", ctx), Context) or isinstance(ctx, ThreadContext):
        raise InputError(
            f"run_agent was given {type(ctx).__name__} as its context.",
            hint="Call it in an async script that takes ctx: `await run_agent(ctx, agent, question)`.",
        )
    counts = _counts.setdefault(ctx, Counter())
    counts[ctx.branch] += 1
    steps = AgentSteps(ctx, counts[ctx.branch], read_effects(effects))
    copies = AgentCopies(steps)
    made = copies.of(agent)
    copies.require_names(effects or ())
    config = _recorded_config(run_config or RunConfig(), steps)
    run = AgentRun(steps, made, config, hold, context, max_turns)
    try:
        return await run.finish(input)
    except UserError as error:
        # The SDK puts an error of its own around what a tool raises.
        found = _inner(error)
        if found is None:
            raise
        raise found from error


def _recorded_config(given: RunConfig, steps: AgentSteps) -> RunConfig:
    # Tools of one turn run one after the other: an outcome that is not known stops those after it.
    one = dataclasses.replace(given.tool_execution or ToolExecutionConfig(), max_function_tool_concurrency=1)
    return dataclasses.replace(
        given,
        model=recorded_model(given.model, steps),
        model_provider=RecordedProvider(given.model_provider, steps),
        tool_execution=one,
    )


def _inner(error: BaseException) -> HoldfastError | None:
    found: BaseException | None = error
    while found is not None and not isinstance(found, HoldfastError):
        found = found.__cause__
    return found


class AgentRun:
    """One agent run: from its input to its output, over the interruptions in between."""

    def __init__(
        self,
        steps: AgentSteps,
        agent: Agent[Any],
        config: RunConfig,
        hold: HoldOptions,
        context: Any,
        max_turns: int | None,
    ) -> None:
        self._steps = steps
        self._agent = agent
        self._config = config
        self._hold = hold
        self._context = context
        self._max_turns = max_turns

    async def finish(self, source: Any) -> RunResult:
        """Each interruption is recorded with the SDK's state. A resumed run continues from the last of them:
        nothing before it is run again, neither recorded calls nor the code around them."""
        turn = 1
        while True:
            if self._is_recorded(turn):
                kept = await self._state(turn)
                await self._steps.skip_to(kept)
            else:
                result = await Runner.run(
                    self._agent,
                    source,
                    context=None if turn > 1 else self._context,
                    max_turns=self._max_turns,
                    run_config=self._config,
                )
                if not result.interruptions:
                    return result
                kept = await self._record(turn, result)
            decisions = await self._decisions(turn, kept)
            if not self._is_recorded(turn + 1):
                source = await self._continued(kept, decisions)
            turn += 1

    def _is_recorded(self, turn: int) -> bool:
        return self._steps.ctx.recorded(self._steps.state_key(turn)) is not None

    async def _record(self, turn: int, result: RunResult) -> dict[str, Any]:
        state = result.to_state()
        # What the user's own context object holds is the script's to give again.
        text = json.dumps(state.to_json(context_serializer=lambda _: {}))
        asked = [
            {"call": each.call_id or str(place), "tool": each.name or "", "arguments": each.arguments or ""}
            for place, each in enumerate(state.get_interruptions())
        ]
        found = {"state": text, "asked": asked, **self._steps.counts()}

        async def as_it_is() -> dict[str, Any]:
            return found

        key = self._steps.state_key(turn)
        kept = thaw(await self._steps.ctx.step(STATE, as_it_is, key=key, effect=Effect.pure))
        self._steps.made = []
        return kept

    async def _state(self, turn: int) -> dict[str, Any]:
        async def never() -> None:
            raise AssertionError("a recorded state is not made again")

        key = self._steps.state_key(turn)
        return thaw(await self._steps.ctx.step(STATE, never, key=key, effect=Effect.pure))

    async def _decisions(self, turn: int, kept: dict[str, Any]) -> list[ToolDecision]:
        """One hold for each call of this interruption, all open before the first is waited for."""
        asked: list[dict[str, str]] = kept["asked"]
        return await asyncio.gather(
            *(
                ask_approval(
                    self._steps.ctx,
                    each["tool"],
                    arguments_in(each["arguments"]),
                    key=self._steps.approval_key(turn, place, each["call"]),
                    hold=self._hold,
                    context={"entity_id": each["call"], "agent": self._agent.name},
                    # The SDK runs a call with the arguments that the model gave, or not at all.
                    editable=False,
                    may_allow_always=True,
                )
                for place, each in enumerate(asked)
            )
        )

    async def _continued(self, kept: dict[str, Any], decisions: list[ToolDecision]) -> RunState[Any, Any]:
        """The state with the decisions. It is read from the journal in any case, so that it is the same
        whether or not the process has been another one since."""
        found = json.loads(kept["state"])
        _require_schema(str(found.get("$schemaVersion")))
        context = RunContextWrapper(context=self._context)
        state = await RunState.from_json(self._agent, found, context_override=context)
        for item, decision in zip(state.get_interruptions(), decisions, strict=True):
            if decision.approved:
                state.approve(item, always_approve=decision.always)
            else:
                state.reject(item, rejection_message=decision.message)
        return state


def _require_schema(found: str) -> None:
    if found not in SUPPORTED_SCHEMA_VERSIONS:
        raise VersionMismatchError(
            f"the agent waits with a state of schema {found}; the installed openai-agents reads schemas up "
            f"to {CURRENT_SCHEMA_VERSION}.",
            hint="Install the version of openai-agents that it was started with or a later one, and resume "
            "the run: the answers are kept.",
            found=found,
            supported=CURRENT_SCHEMA_VERSION,
        )
