"""A graph as a flow: its interrupts are holds, and the run waits for their answers without a process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, cast

from langgraph.types import Command, Interrupt

from holdfast.app.flow import Flow
from holdfast.errors import FlowInvalidError, SettingsError, StepFailedError
from holdfast.integrations.langgraph.given_answers import GivenAnswers, given_answers
from holdfast.integrations.langgraph.interrupts import (
    GivenAnswer,
    GraphQuestion,
    HoldOptions,
    answer_of,
    open_interrupts,
    plain,
    questions_of,
    require_asked_by_graph,
    response_schema,
)
from holdfast.integrations.langgraph.saver import HoldfastSaver
from holdfast.runs.context.context import Context
from holdfast.store.blob.objects import Objects
from holdfast.store.protocols import Store
from holdfast.types.value import thaw

_PATIENCE = 10.0
"""Seconds beyond the lease of a claim that a run waits for the claim of a process that died."""


def graph_flow(name: str, graph: Any, *, hold: HoldOptions | None = None) -> Flow[Any]:
    """A flow of one node that runs a compiled graph of LangGraph; its thread has the id of the run.

    Each interrupt opens a hold, and the run waits, without a process, until all are decided. `hold` gives the
    options of `ctx.ask` for an interrupt: `assignee`, `timeout`, `options`. The graph has a `HoldfastSaver`,
    or none: then its threads are in the store of the run. Raises FlowInvalidError.
    """
    saver = getattr(graph, "checkpointer", None)
    if not hasattr(graph, "ainvoke") or not hasattr(graph, "aget_state"):
        raise FlowInvalidError(
            f"graph_flow({name!r}): a {type(graph).__name__} is not a compiled graph.",
            hint="Pass what `builder.compile()` returns.",
        )
    if saver is not None and not isinstance(saver, HoldfastSaver):
        raise FlowInvalidError(
            f"graph_flow({name!r}): the graph has a {type(saver).__name__}, which does not keep a second "
            "process off its threads.",
            hint="Compile it without a checkpointer, or with a HoldfastSaver.",
        )
    flow: Flow[Any] = Flow(name)
    runner = GraphRunner(graph, saver, hold)

    async def run_graph(state: Any, ctx: Context) -> dict[str, Any]:
        return await runner.run(thaw(dict(state)), ctx)

    # Whom the function names, the program names.
    run_graph.written_in = () if hold is None else (hold,)  # type: ignore[attr-defined]
    # What the graph is made of is LangGraph's to compare; the steps of this node stay the same.
    flow.script(id="graph", version="1")(run_graph)
    return flow


class GraphRunner:
    """With slots: the texts inside a graph are not those of the program that asks."""

    __slots__ = ("_graph", "_hold", "_saver")

    def __init__(self, graph: Any, saver: HoldfastSaver | None, hold: HoldOptions | None) -> None:
        self._graph, self._saver, self._hold = graph, saver, hold

    async def run(self, given: dict[str, Any], ctx: Context) -> dict[str, Any]:
        found = await _step(ctx, "invoke", self._first, given)
        rounds, seen = 0, Counter[str]()
        while found["interrupts"]:
            answers: dict[str, _Answer] = {}
            asked = [_interrupt(each) for each in found["interrupts"]]
            # None: recorded by an earlier release.
            before: list[int | None] = [each.get("given") for each in found["interrupts"]]
            seen.update(each.id for each in asked)
            replies = await asyncio.gather(*(self._ask(ctx, each, seen[each.id]) for each in asked))
            for each, answer, count in zip(asked, replies, before, strict=True):
                answers[each.id] = _Answer(answer, count)
            rounds += 1
            found = await _step(ctx, f"answer {rounds}", self._resume, answers)
        values: Any = found["values"]
        return cast("dict[str, Any]", values) if isinstance(values, dict) else {"output": values}

    async def _ask(self, ctx: Context, interrupt: Interrupt[Any], times: int) -> Any:
        # Releases of LangGraph before 1.2.13 give all interrupts of a task one id.
        again = "" if times == 1 else f"~{times}"
        questions = questions_of(interrupt, self._hold)
        replies = await asyncio.gather(*(_asked(ctx, each, each.key + again) for each in questions))
        return answer_of(interrupt, questions, replies)

    # ------------------------------------------------------------------ invocations, each a step
    async def _first(self, given: dict[str, Any], ctx: Context) -> dict[str, Any]:
        async with self._thread(ctx) as (graph, saver, config):
            state = await graph.aget_state(config)
            if state.created_at is None:
                return await _invoked(graph, saver, config, given)
            return await _continued(graph, saver, config, state)

    async def _resume(self, answers: Mapping[str, _Answer], ctx: Context) -> dict[str, Any]:
        async with self._thread(ctx) as (graph, saver, config):
            state = await graph.aget_state(config)
            await _require_known(saver, config, state)
            counts = await given_answers(saver, config)
            shown = [each.id for each in state.interrupts if each.id in answers]
            taken = {each for each in shown if answers[each].is_taken(counts.get(each))}
            left = {each: thaw(answers[each].value) for each in shown if each not in taken}
            if left or taken:
                # A task that failed after it took its answer has it still.
                return await _invoked(graph, saver, config, Command(resume=left) if left else None)
            # A process that died had given all of them to the graph.
            return await _continued(graph, saver, config, state)

    @asynccontextmanager
    async def _thread(self, ctx: Context) -> AsyncGenerator[tuple[Any, HoldfastSaver, Any]]:
        """The graph with its saver; the thread is claimed for the block."""
        own = self._saver is None
        saver = HoldfastSaver(_GivenStore(ctx.store, ctx.objects), tenant=ctx.tenant) if own else self._saver
        assert saver is not None
        if saver.tenant != ctx.tenant:
            raise SettingsError(
                f"run {ctx.run_id} is of tenant {ctx.tenant!r}, the graph's saver of {saver.tenant!r}.",
                hint="Compile the graph without a checkpointer: its threads then belong to the run's tenant.",
            )
        graph = self._graph.copy(update={"checkpointer": saver}) if own else self._graph
        thread = str(ctx.run_id)
        try:
            # The driver of this run has the right to its thread; a claim of a process that died may be left.
            await saver.owners.own(thread, patience=saver.owners.lease_seconds + _PATIENCE)
            try:
                yield graph, saver, {"configurable": {"thread_id": thread}}
            finally:
                await saver.owners.disown(thread)
        finally:
            if own:
                await saver.aclose()


class _Answer(NamedTuple):
    """`before`: how many answers its task had when the question was asked."""

    value: Any
    before: int | None

    def is_taken(self, given: GivenAnswers | None) -> bool:
        return given is not None and self.before is not None and given.number > self.before


class _GivenStore:
    def __init__(self, store: Store, objects: Objects | None) -> None:
        self._store = store
        self.objects = objects

    async def open(self) -> Store:
        return self._store


async def _step(
    ctx: Context, name: str, fn: Callable[[Any, Context], Awaitable[dict[str, Any]]], given: Any
) -> dict[str, Any]:
    """May be repeated: the thread says how far the graph has come. An error of the graph stays what it is."""
    raised: list[Exception] = []

    async def call() -> dict[str, Any]:
        try:
            return await fn(given, ctx)
        except Exception as error:
            raised.append(error)
            raise

    try:
        return await ctx.step(name, call, effect="write", idempotent=True)
    except StepFailedError:
        if raised:
            raise raised[-1] from None
        raise


async def _asked(ctx: Context, question: GraphQuestion, key: str) -> GivenAnswer:
    reply: Any = await ctx.ask(
        question.prompt, options=question.options, form=question.form, key=key, **question.manner
    )
    return GivenAnswer(reply.decision, reply.data, reply.comment)


async def _invoked(graph: Any, saver: HoldfastSaver, config: Any, given: Any) -> dict[str, Any]:
    # Each step of the graph is durable before the next one starts.
    values: Any = await graph.ainvoke(given, config, durability="sync")
    return await _settled(graph, saver, config, values)


async def _continued(graph: Any, saver: HoldfastSaver, config: Any, state: Any) -> dict[str, Any]:
    """After a crash: the graph resumes behind its last step, unless it had ended or asked."""
    # Not `next`: it lacks tasks whose writes are stored, but whose step has not ended.
    if state.tasks and not state.interrupts:
        return await _invoked(graph, saver, config, None)
    return await _settled(graph, saver, config, state.values)


async def _settled(graph: Any, saver: HoldfastSaver, config: Any, values: Any) -> dict[str, Any]:
    state = await graph.aget_state(config)
    await _require_known(saver, config, state)
    counts = await given_answers(saver, config) if state.interrupts else {}
    interrupts = [
        {
            "id": each.id,
            "value": plain(each.value),
            "schema": plain(response_schema(each)),
            "given": counts.get(each.id, GivenAnswers()).number,
        }
        for each in state.interrupts
    ]
    return {"interrupts": interrupts, "values": None if interrupts else plain(values)}


async def _require_known(saver: HoldfastSaver, config: Any, state: Any) -> None:
    found = await saver.aget_tuple(config)
    stored = {} if found is None else open_interrupts(found.pending_writes)
    require_asked_by_graph(config["configurable"]["thread_id"], stored, state.interrupts)


def _interrupt(stored: Mapping[str, Any]) -> Interrupt[Any]:
    schema = stored["schema"]
    form: dict[str, Any] = {} if schema is None else {"response_schema": thaw(schema)}
    return Interrupt(value=thaw(stored["value"]), id=stored["id"], **form)
