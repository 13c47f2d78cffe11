"""How many answers the tasks of a thread have got. LangGraph appends what it is given to the answers of a
task, so an answer that is given twice would be that of the next question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from holdfast.integrations.langgraph.saver import HoldfastSaver


class GivenAnswers(NamedTuple):
    """Of the task of an interrupt. `failed`: it has raised an error, now or before."""

    number: int = 0
    failed: bool = False


async def given_answers(saver: HoldfastSaver, config: RunnableConfig) -> dict[str, GivenAnswers]:
    """By the id of each interrupt that the thread waits at, or waited at when its task failed."""
    present = await saver.aget_tuple(config)
    if present is None or not any(channel == INTERRUPT for _, channel, _ in present.pending_writes or ()):
        return {}
    found: dict[str, GivenAnswers] = {}
    own = _place(present.config)
    seen: set[str] = set()
    # Subgraphs keep the answers of their tasks in checkpoints of their own, which are newer than this one.
    async for each in saver.alist({"configurable": {"thread_id": own["thread_id"]}}):
        place = _place(each.config)
        if place["checkpoint_ns"] not in seen:
            seen.add(place["checkpoint_ns"])
            _add(found, each.pending_writes or ())
        if place["checkpoint_id"] == own["checkpoint_id"]:
            break
    return found


def _place(config: RunnableConfig) -> dict[str, Any]:
    return config.get("configurable") or {}


def _add(found: dict[str, GivenAnswers], writes: Iterable[tuple[str, str, Any]]) -> None:
    asked: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    failed: set[str] = set()
    for task, channel, value in writes:
        values = list(cast("Iterable[Any]", value)) if isinstance(value, (list, tuple)) else [value]
        if channel == INTERRUPT:
            asked[task] = [each.id for each in values]
        elif channel == RESUME:
            counts[task] = len(values)
        elif channel == ERROR:
            failed.add(task)
    for task, ids in asked.items():
        for name in ids:
            known = found.get(name, GivenAnswers())
            count = max(known.number, counts.get(task, 0))
            found[name] = GivenAnswers(count, known.failed or task in failed)
