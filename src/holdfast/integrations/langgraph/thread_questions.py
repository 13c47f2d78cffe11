"""Holds for callers of `ainvoke`: each question about an interrupt is a run of its own, and its answer that
run's state."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Interrupt

from holdfast.app.holdfast import Holdfast
from holdfast.errors import ConflictError, InputError, RunNotFoundError, SettingsError
from holdfast.integrations.ask_people_flow import MANNER, ask_people
from holdfast.integrations.langgraph.content import place_of
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
)
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId
from holdfast.types.value import thaw

if TYPE_CHECKING:
    from holdfast.integrations.langgraph.saver import HoldfastSaver


async def ask(
    saver: HoldfastSaver, graph: Any, config: RunnableConfig, hold: HoldOptions | None
) -> list[HoldRow]:
    hf, thread = _instance(saver), place_of(config).thread
    stored = await _open_interrupts(saver, config)
    require_asked_by_graph(thread, stored, (await graph.aget_state(config)).interrupts)
    given = await given_answers(saver, config)
    opened: list[HoldRow] = []
    for interrupt in stored.values():
        for question in await _questions(saver, hf, thread, interrupt, hold, given):
            run_id = _run_id(saver, thread, question)
            result = await ask_people.run(
                _state(question), on=hf, run_id=run_id, idempotency_key=run_id, tenant=saver.tenant
            )
            opened += result.holds
    return opened


async def answers(saver: HoldfastSaver, config: RunnableConfig) -> Command[Any] | None:
    hf, thread = _instance(saver), place_of(config).thread
    found: dict[str, Any] = {}
    before = await given_answers(saver, config)
    for name, interrupt in (await _open_interrupts(saver, config)).items():
        questions = await _questions(saver, hf, thread, interrupt, None, before)
        given = [await _answer(saver, hf, thread, each) for each in questions]
        decided = [each for each in given if each is not None]
        if len(decided) < len(given):
            return None
        found[name] = answer_of(interrupt, [asked for asked, _ in decided], [each for _, each in decided])
    return Command(resume=found) if found else None


async def _open_interrupts(saver: HoldfastSaver, config: RunnableConfig) -> Mapping[str, Interrupt[Any]]:
    found = await saver.aget_tuple(config)
    return {} if found is None else open_interrupts(found.pending_writes)


async def _questions(
    saver: HoldfastSaver,
    hf: Holdfast,
    thread: str,
    interrupt: Interrupt[Any],
    hold: HoldOptions | None,
    given: Mapping[str, GivenAnswers],
) -> list[GraphQuestion]:
    """Those of an interrupt, with the number of answers before it in their keys: releases of LangGraph before
    1.2.13 give all interrupts of a task one id. Raises ConflictError for one whose answer its task has taken:
    given again, it would answer the next question."""
    questions = questions_of(interrupt, hold)
    count, failed = given.get(interrupt.id, GivenAnswers())
    if count and failed:
        service = await hf.service()
        earlier = [_run_id(saver, thread, _numbered(each, count - 1)) for each in questions]
        if any([await service.store.get_run(RunId(run)) is not None for run in earlier]):
            raise ConflictError(
                f"interrupt {interrupt.id} of thread {thread!r} has its answer; its node failed after it.",
                hint="Invoke the graph with None instead of a command: it continues with that answer.",
                thread=thread,
            )
    return [_numbered(each, count) for each in questions]


def _numbered(question: GraphQuestion, count: int) -> GraphQuestion:
    return question._replace(key=f"{question.key}~{count + 1}") if count else question


def _instance(saver: HoldfastSaver) -> Holdfast:
    if not isinstance(saver.holdfast, Holdfast):
        raise SettingsError("this saver asks by its flow.", hint="Use HoldfastSaver(hf) of your own.")
    return saver.holdfast


def _run_id(saver: HoldfastSaver, thread: str, question: GraphQuestion) -> str:
    """The same for the same question: who asks again finds it."""
    digest = sha256("\x00".join(("interrupt", saver.tenant, thread, question.key)).encode()).digest()
    return str(UUID(bytes=digest[:16], version=4))


def _state(question: GraphQuestion) -> dict[str, Any]:
    unknown = sorted(question.manner.keys() - MANNER)
    if unknown:
        raise InputError(
            f"saver.ask cannot ask with {', '.join(unknown)}.",
            hint=f"hold= gives options, form, {', '.join(sorted(MANNER))}; graph_flow takes all terms.",
        )
    return {
        "question": question.prompt,
        "choices": plain(question.options),
        "form": plain(question.form),
        "manner": plain(question.manner),
    }


async def _answer(
    saver: HoldfastSaver, hf: Holdfast, thread: str, question: GraphQuestion
) -> tuple[GraphQuestion, GivenAnswer] | None:
    """With the question as it was asked. Raises the error of one that expired or was withdrawn."""
    service = await hf.service()
    try:
        row = await service.get(_run_id(saver, thread, question), tenant=saver.tenant)
    except RunNotFoundError:
        return None
    result = await ask_people.resume(row.id, on=hf, tenant=saver.tenant)
    if result.waiting:
        return None
    state: Any = result.expect().state
    form, choices = thaw(state.get("form")), thaw(state.get("choices"))
    asked = question._replace(
        options=choices, form=form, wrapped=question.wrapped and form == plain(question.form)
    )
    return asked, GivenAnswer(state["decision"], thaw(state.get("data")), state.get("comment"))
