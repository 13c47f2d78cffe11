"""A graph of LangGraph whose thread is in a Holdfast store. Of two people who resume it, one does."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import Command, interrupt

from holdfast.errors import ThreadOwnedError
from holdfast.integrations.langgraph import HoldfastSaver


class Refund(TypedDict):
    steps: Annotated[list[str], operator.add]


def look_up(_state: Refund) -> dict[str, list[str]]:
    return {"steps": ["looked up"]}


def pay(_state: Refund) -> dict[str, list[str]]:
    answer = str(interrupt("Refund 900?"))
    print("paying once, because of:", answer)
    return {"steps": [answer]}


def refund(saver: HoldfastSaver) -> Any:
    builder: Any = StateGraph(Refund)
    builder.add_node("look_up", look_up)
    builder.add_node("pay", pay)
    builder.add_edge(START, "look_up")
    builder.add_edge("look_up", "pay")
    return builder.compile(checkpointer=saver)


async def main(address: str = "sqlite:.holdfast/langgraph.db", thread: str = "order-7") -> list[Any]:
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    async with HoldfastSaver.open(address) as saver:
        await refund(saver).ainvoke({"steps": []}, config)
    # Later, in any process.
    async with HoldfastSaver.open(address) as saver:
        resumes = (refund(saver).ainvoke(Command(resume=name), config) for name in ("Ana", "Ben"))
        both = await asyncio.gather(*resumes, return_exceptions=True)
    for each in both:
        print("refused:" if isinstance(each, ThreadOwnedError) else "done:", each)
    return both


if __name__ == "__main__":
    asyncio.run(main())
