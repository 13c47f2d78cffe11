"""What LangGraph does when a node is renamed under a paused run.

    .peers/bin/python bench/peers/renamed_node_peer.py

The comparison in README.md cites this. The run pauses in `ask`; the node is renamed to `approve`, as a deploy
would do it; the answer is given.
"""

from __future__ import annotations

from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    answer: str


def ask(state: State) -> State:
    return {"answer": interrupt("approve?")}


def build(name: str, saver: InMemorySaver) -> object:
    graph = StateGraph(State)
    graph.add_node(name, ask)
    graph.add_edge(START, name)
    graph.add_edge(name, END)
    return graph.compile(checkpointer=saver)


def main() -> None:
    saver, where = InMemorySaver(), {"configurable": {"thread_id": "1"}}
    build("ask", saver).invoke({}, where)
    result = build("approve", saver).invoke(Command(resume="yes"), where)
    print(f"after the answer 'yes' the state is {result!r}: the answer was {'kept' if result else 'dropped'}")


if __name__ == "__main__":
    main()
