"""The agent loop: the model answers and its tools are called, until it gives a final answer.

Everything that determines the conversation is recorded: the first messages, each answer with its cost, each
result. After a crash or a pause the code here runs again, and builds the same messages from the records, byte
by byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.agents.agent_scope import AgentScope
from holdfast.agents.answer_review import review_answer
from holdfast.agents.budget import BudgetMeter, BudgetUsage, usage_of
from holdfast.agents.context_window import SHRUNK, WARNED, ContextWindow
from holdfast.agents.loop_detection import WARNING, LoopDetector
from holdfast.agents.messages import (
    FINAL,
    Message,
    ModelRequest,
    ToolCall,
    message_from_plain,
    message_to_plain,
    unanswered_calls,
)
from holdfast.agents.model_call import ModelCall, model_error
from holdfast.agents.model_wait import LongWait, ModelWaits
from holdfast.agents.reservation import (
    BudgetStop,
    CallBounds,
    CallBudgets,
    PlannedModelCall,
    count_input,
    plan_call,
    require_prices,
)
from holdfast.agents.skills import join_texts, with_skills
from holdfast.agents.tool_call import PlannedCall, ToolResult, result_text
from holdfast.agents.toolbox import Toolbox
from holdfast.errors import (
    AgentLoopError,
    BudgetError,
    InputError,
    ModelReplyError,
    TurnLimitError,
)
from holdfast.model.user_code.boundary import call as call_code
from holdfast.runs.context.substeps import StepFailedError
from holdfast.runs.steer_messages import place_of
from holdfast.types.text import clean_text

if TYPE_CHECKING:
    from holdfast.agents.agent import Agent


EMPTY = "Your answer was empty. Answer, or use a tool."
USE_FINAL = f"Give your answer by calling {FINAL}."


class ConversationResult(msgspec.Struct, frozen=True):
    """The result of a conversation. `stopped`: why it ended before the model was done: "turns", "budget", or
    "length" if its last answer was cut."""

    value: Any
    messages: tuple[Message, ...]
    spent: BudgetUsage
    turns: int
    stopped: str = ""
    files: dict[str, bytes] = {}


class Conversation:
    """One agent at one task."""

    def __init__(
        self,
        agent: Agent,
        at: AgentScope,
        *,
        outer: Sequence[BudgetMeter] | None = None,
        listed: bool = True,
        uploads: Mapping[str, bytes] | None = None,
        thread: str = "",
    ) -> None:
        """`outer`: the budgets that it draws on besides its own; default: that of the run. `thread`: what
        conversations that continue one another have in common."""
        agent, self.lessons = with_skills(agent, at)
        self.agent = agent
        self.at = at
        self.budgets = CallBudgets(_meters(agent, at, outer), at, agent.name)
        # How much more input the model counted in the last call than was estimated.
        self.ratio = 1.0
        self.listed = listed
        self.thread = f"{at.ctx.run_id}/{thread or f'{at.ctx.node}/{at.path}'}"
        self.messages: list[Message] = []
        self.turn = 0
        self.repairs = 0
        self.malformed = 0
        self.waits = ModelWaits(at)
        self.tools = Toolbox(agent, at, uploads or {}, self._delegate)
        # It ended without an answer because of its own limits, which are recorded, and not because of an
        # outage.
        self.gave_up = False
        # Results of this turn without a record of a call: of sub-agents, refusals, errors.
        self.unrecorded: dict[str, str] = {}
        self.loops = LoopDetector() if agent.detect_loops else None
        self.window = ContextWindow(agent.window or getattr(agent.model, "context_window", None) or 0)

    async def run(self, prompt: str, history: Sequence[Message] = ()) -> ConversationResult:
        await self._open(prompt, history)
        while True:
            if 0 < self.agent.max_turns <= self.turn:
                return self._turn_limit_result()
            await self._fit()
            request = self._request()
            await self.waits.repeat(self.turn + 1)
            bounds = await self.budgets.admit(self._planned(request), self.turn)
            if isinstance(bounds, BudgetStop):
                return self._stopped(bounds)
            self.turn += 1
            self.unrecorded = {}
            try:
                message, finish = await self._ask_model(request, bounds)
            except LongWait as wait:
                self._emit("retry", f"{wait.why} Waiting {wait.seconds:g} s")
                await self.waits.take(wait)
                # Again from the check of the budgets: others may have used them meanwhile.
                self.turn -= 1
                continue
            result = await self._act(message, finish)
            steered = await self._steered()
            # After all tool calls of the turn, so that this checkpoint includes their results.
            await self.at.mark_turn(self.turn, self.unrecorded, listed=self.listed)
            if steered:
                # Only now: it is durable that the conversation has them.
                await self.at.ctx.steering.remove(*steered)
                continue
            if result is not None and (result := await self._released(result)) is not None:
                return result

    # ------------------------------------------------------------------ the beginning
    async def _open(self, prompt: str, history: Sequence[Message]) -> None:
        """The first messages are recorded, so that later changes of the state or the prompt do not affect
        them."""
        instructions = self.agent.instructions
        if not prompt and not history:
            raise InputError(f"agent {self.agent.name!r} has an empty prompt.", hint="Give it a prompt.")

        async def begin() -> dict[str, Any]:
            system = self.at.ctx.render(instructions) if "{{" in instructions else instructions
            preface = self.agent.preface
            before = "" if preface is None else await call_code(preface, self.at.ctx)
            whole = join_texts(before, system, self.lessons)
            first = [Message("system", whole)] if whole else []
            return {
                "agent": self.agent.name,
                "messages": [message_to_plain(message) for message in (*first, *history)],
                "prompt": prompt,
            }

        kept = await self.at.step("prompt", "prompt", begin, effect="pure")
        self.messages = [message_from_plain(plain) for plain in kept["messages"]]
        # A history may end with calls that were never made; providers refuse a call without a result.
        left = unanswered_calls(self.messages)
        if left:
            await self._use(left)
        if kept["prompt"]:
            self.messages.append(Message("user", kept["prompt"]))

    # ------------------------------------------------------------------ the model
    def _request(self) -> ModelRequest:
        agent, schema = self.agent, self._native_schema()
        tools = agent.tool_specs if schema is None else agent.tool_specs[:-1]
        return ModelRequest(
            tuple(self.messages),
            tools,
            agent.max_tokens,
            must_call=agent.returns is not None and schema is None,
            output_schema=schema,
            thread=self.thread,
        )

    def _native_schema(self) -> dict[str, Any] | None:
        """The form of a typed answer if the model guarantees it by itself; else the answer is asked for as
        the arguments of a tool, the last one."""
        takes: Any = getattr(self.agent.model, "takes_schema", None)
        if self.agent.returns is None or takes is None:
            return None
        schema = self.agent.tool_specs[-1].schema
        return schema if takes(schema) else None

    def _planned(self, request: ModelRequest) -> PlannedModelCall:
        if not self.budgets.meters:
            return PlannedModelCall(0, 0, None)
        require_prices(self.agent.model, self.budgets.meters)
        return plan_call(self.agent.model, request, self.agent.max_tokens, self.ratio)

    async def _ask_model(self, request: ModelRequest, bounds: CallBounds) -> tuple[Message, str]:
        ctx, part = self.at.ctx, f"{self.turn}/model"
        limited = msgspec.structs.replace(request, max_tokens=bounds.output or request.max_tokens)

        async def ask() -> dict[str, Any]:
            self._warn_of_window()
            may_wait = self.waits.has_room(self.turn)
            call = ModelCall(self.agent, self.at, self.budgets, self._emit, may_wait=may_wait)
            return await call.make(limited, bounds, self.turn)

        reserved = (
            nullcontext() if bounds.amounts is None else ctx.ledger.reserve(self.at.key(part), bounds.amounts)
        )
        try:
            async with reserved:
                kept = await self.at.step(part, "model", ask, effect="read")
        except StepFailedError as error:
            raise model_error(error.info) from None
        if self.budgets.meters:
            counted = max(1, count_input(self.agent.model, request))
            self.ratio = max(1.0, kept["usage"]["input"] / counted)
        message = message_from_plain(kept["message"])
        usage: dict[str, int] = kept["usage"]
        self.window.count(usage["input"] + usage["output"], len(self.messages) + 1)
        if kept["attempt"] != ctx.attempt and self.at.is_root and message.text:
            # Readers of the stream discard the output of the earlier attempt.
            ctx.emit(message.text)
        self.messages.append(message)
        return message, kept["finish"]

    def _emit(self, kind: str, data: str) -> None:
        if self.at.is_root:
            self.at.ctx.emit(data, kind)
        else:
            self.at.ctx.emit({"agent": self.at.label.rstrip("/"), kind: data}, "agent")

    async def _fit(self) -> None:
        """Near the end of the window old results are shrunk. Which ones is recorded: the window of a model
        may be another when the run resumes."""
        part = f"{self.turn + 1}/shrink"
        if not self.at.has(part) and self.window.share(self.messages) < SHRUNK:
            return

        async def choose() -> list[int]:
            return self.window.to_shrink(self.messages)

        self.window.shrink(self.messages, await self.at.step(part, "shrink", choose, effect="pure"))

    def _warn_of_window(self) -> None:
        share = self.window.share(self.messages)
        if share >= WARNED and not self.window.warned:
            self.window.warned = True
            text = f"the conversation of {self.agent.name} uses about {share:.0%} of its model's context"
            self.at.ctx.emit(text, "log")

    # ------------------------------------------------------------------ its answer
    async def _act(self, message: Message, finish: str) -> ConversationResult | None:
        """The final result; None: another turn follows."""
        final = next((call for call in message.calls if call.name == FINAL), None)
        if final is not None and self.agent.returns is not None:
            return self._final(message, final)
        if message.calls:
            await self._use(message.calls)
            return None
        if self.agent.returns is not None:
            return self._typed(message.text) if self._native_schema() is not None else self._repair(USE_FINAL)
        if not message.text.strip():
            return self._repair(EMPTY)
        return self._result(message.text, stopped="length" if finish == "length" else "")

    def _final(self, message: Message, final: ToolCall) -> ConversationResult | None:
        value, problem = self.agent.read_answer(final.arguments)
        for call in message.calls:
            if call is final:
                text = (
                    f"Error: the answer does not fit: {problem}. Correct it and give it again."
                    if problem
                    else "Taken."
                )
            else:
                text = "Not done: the final answer was given with it."
            self.messages.append(Message("tool", text, call=call.id, failed=bool(problem)))
        if problem:
            self._count_repair(f"its answer does not fit: {problem}")
            return None
        return self._result(value)

    def _typed(self, text: str) -> ConversationResult | None:
        """Checked here too: an answer may have been cut, and not every endpoint keeps its word."""
        value, problem = self.agent.read_answer(text)
        if problem:
            return self._repair(f"Your answer does not fit: {problem}. Give the whole answer again.")
        return self._result(value)

    def _repair(self, text: str) -> None:
        self._count_repair(text)
        self.messages.append(Message("user", text))

    def _count_repair(self, why: str) -> None:
        self.repairs += 1
        self._require_progress(self.repairs, why)

    def _require_progress(self, unusable: int, why: str) -> None:
        if unusable > self.agent.max_repairs:
            self.gave_up = True
            raise ModelReplyError(
                f"{self.agent.model.name!r} gave agent {self.agent.name!r} no usable answer in "
                f"{unusable} turns: {clean_text(why, 500)}",
                hint="Correct the instructions or the schema, or raise max_repairs.",
                agent=self.agent.name,
            )

    async def _released(self, result: ConversationResult) -> ConversationResult | None:
        """The answer that a person approved, with their changes; if rejected, the model gets the reason and
        retries."""
        found = await review_answer(self.at, self.agent, result.value, self.turn)
        if found.refused:
            self.messages.append(Message("user", found.refused))
            return None
        return msgspec.structs.replace(result, value=found.value)

    # ------------------------------------------------------------------ tools
    async def _use(self, calls: Sequence[ToolCall]) -> None:
        results = await self.tools.use(calls, self.turn)
        for call, result in zip(calls, results, strict=True):
            self.messages.append(Message("tool", result.text, call=call.id, failed=result.failed))
        self.unrecorded = {str(index): each.text for index, each in enumerate(results) if not each.recorded}
        self._check_loop(calls)
        # One usable call is progress: only turns in a row without any count, also in a long conversation.
        self.malformed = self.malformed + 1 if all(result.malformed for result in results) else 0
        self._require_progress(self.malformed, results[-1].text)

    async def _steered(self) -> list[str]:
        """The messages of people that arrived meanwhile, by their ids. An answer before one of them is not
        the last one."""
        part, taker = f"{self.turn}/steer", f"{self.at.ctx.scope}{self.at.ctx.node}/{self.at.path}"
        if not self.agent.steerable or not self.at.is_root:
            return []
        box = self.at.ctx.steering
        if not self.at.has(part) and not await box.waiting(taker, place_of(self.at.ctx)):
            return []

        async def take() -> list[dict[str, str]]:
            return [
                {"id": each.id, "text": each.text, "by": each.by}
                for each in await box.take(taker, place_of(self.at.ctx))
            ]

        taken = await self.at.step(part, "steer", take, effect="read")
        self.messages += [Message("user", each["text"]) for each in taken]
        return [each["id"] for each in taken]

    def _check_loop(self, calls: Sequence[ToolCall]) -> None:
        if self.loops is None or not self.loops.add(calls):
            return
        if self.loops.warned:
            self.gave_up = True
            raise AgentLoopError(
                f"agent {self.agent.name!r} repeats the same calls, after a warning too: "
                f"{clean_text(calls[-1].name, 64)} in turn {self.turn}.",
                hint="Make the task smaller or its prompt clearer, and start it again.",
                agent=self.agent.name,
            )
        self.loops.warned = True
        self.unrecorded["warning"] = WARNING
        self.messages.append(Message("user", WARNING))

    async def _delegate(self, at: AgentScope, plan: PlannedCall, arguments: str) -> ToolResult:
        """A sub-agent: a conversation inside this one, with its own records and holds. It draws on the
        budgets of this one, and on its own."""
        tool: Any = plan.tool
        inner = at.below("agent", tool.name)
        talk = Conversation(tool.agent, inner, outer=self.budgets.meters, listed=False)
        try:
            result = await talk.run(tool.task(arguments))
        except (TurnLimitError, AgentLoopError, BudgetError, ModelReplyError) as error:
            # An outage is not recorded as a result: the whole node fails, and a resume tries again.
            if not talk.gave_up:
                raise
            return ToolResult(f"Error: {error.message}", failed=True)
        note = "(It was stopped before it was done.) " if result.stopped else ""
        return ToolResult(note + result_text(result.value))

    # ------------------------------------------------------------------ limits
    def _stopped(self, stop: BudgetStop) -> ConversationResult:
        """The last text of the model, if the agent has no return type."""
        reached = ", ".join(stop.reasons)
        if stop.error:
            raise BudgetError(stop.error, hint="Raise its budget, and resume the run.", halts=True)
        # An unchecked text must not stand in for a typed or approved answer.
        if self.agent.returns is not None or self.agent.approval is not None:
            self.gave_up = True
            raise BudgetError(
                f"agent {self.agent.name!r} was stopped at {reached} and has no answer yet.",
                hint="Give it a larger budget, and resume the run.",
            )
        return self._result(self._last_text(), stopped="budget")

    def _turn_limit_result(self) -> ConversationResult:
        if self.agent.on_max_turns == "return" and self.agent.returns is None and not self.agent.approval:
            return self._result(self._last_text(), stopped="turns")
        self.gave_up = True
        raise TurnLimitError(
            f"agent {self.agent.name!r} took {self.turn} turns and is not done.",
            hint="Raise max_turns and resume the run; completed turns are kept.",
            agent=self.agent.name,
        )

    def _last_text(self) -> str:
        texts = (m.text for m in reversed(self.messages) if m.role == "assistant" and m.text.strip())
        return next(texts, "")

    def _result(self, value: Any, stopped: str = "") -> ConversationResult:
        over = [words for meter in self.budgets.meters for words in meter.overrun()]
        if over:
            self.at.ctx.log.warning("agent %s exceeded its budget: %s", self.agent.name, ", ".join(over))
        files = self.tools.space.written()
        spent = usage_of(self.at.ctx.ledger.used(self.at.path))
        return ConversationResult(value, tuple(self.messages), spent, self.turn, stopped, files)


def _meters(agent: Agent, at: AgentScope, outer: Sequence[BudgetMeter] | None) -> list[BudgetMeter]:
    ledger = at.ctx.ledger
    found: list[BudgetMeter] = []
    if agent.budget is not None:
        found.append(BudgetMeter(agent.budget, ledger, at.path, f"Agent {agent.name!r}"))
    if outer is not None:
        return [*found, *outer]
    if ledger.budget is not None:
        found.append(BudgetMeter(ledger.budget, ledger, "", ledger.budget.run_words(at.ctx.node)))
    return found
