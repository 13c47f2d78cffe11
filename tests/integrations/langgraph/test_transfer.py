"""Threads from LangGraph's own savers, and back to them."""

from __future__ import annotations

import operator
import sqlite3  # noqa: TID251 (LangGraph's own saver; no file of a store)
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.integrations.langgraph.transfer import export_threads, import_threads
from tests.services import postgres

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


class Steps(TypedDict):
    steps: Annotated[list[str], operator.add]
    number: int


def builder() -> Any:
    made: Any = StateGraph(Steps)
    made.add_node("first", lambda _state: {"steps": ["a" * 300], "number": 7})
    made.add_node("ask", lambda _state: {"steps": [interrupt("Refund?")]})
    made.add_node("last", lambda _state: {"steps": ["z"]})
    for before, name in ((START, "first"), ("first", "ask"), ("ask", "last")):
        made.add_edge(before, name)
    return made


def config_of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def content(saver: Any, thread: str) -> list[Any]:
    """All that a saver gives of a thread."""
    found = []
    for each in saver.list(config_of(thread)):
        checkpoint = {
            **each.checkpoint,
            "channel_values": dict(sorted(each.checkpoint["channel_values"].items())),
        }
        checkpoint.pop("pending_sends", None)
        found.append((each.config, checkpoint, each.metadata, each.parent_config, each.pending_writes))
    return found


def fill(saver: Any, threads: tuple[str, ...] = ("t-1", "t-2")) -> None:
    graph = builder().compile(checkpointer=saver)
    for thread in threads:
        graph.invoke({"steps": [], "number": 1}, config_of(thread))


@pytest.mark.covers("IN-40")
@pytest.mark.parametrize("kind", ["file", "server"])
def test_threads_of_another_saver_are_imported_and_go_on(kind: str, tmp_path: Path) -> None:
    if kind == "file":
        source = str(tmp_path / "theirs.db")
        opened: Any = SqliteSaver.from_conn_string(source)
    else:
        source = postgres.with_path(postgres.database(), postgres.database().rpartition("/")[2])
        opened = PostgresSaver.from_conn_string(source)
    with opened as theirs, HoldfastSaver.open(f"sqlite:{tmp_path / 'ours.db'}?sync=normal") as ours:
        theirs.setup()
        fill(theirs)
        reports = ours.run_sync(import_threads(ours, source))
        assert [
            (each.thread, each.checkpoints, each.added, each.equal, each.changed) for each in reports
        ] == [
            ("t-1", 3, 3, True, False),
            ("t-2", 3, 3, True, False),
        ]
        assert content(ours, "t-1") == content(theirs, "t-1")
        # The other saver goes on; only what is new is brought.
        builder().compile(checkpointer=theirs).invoke(Command(resume="yes"), config_of("t-2"))
        (again,) = ours.run_sync(import_threads(ours, source, threads=["t-2"]))
        assert (again.added, again.checkpoints, again.equal) == (2, 5, True)
        assert content(ours, "t-2") == content(theirs, "t-2")
        assert ours.run_sync(import_threads(ours, source, threads=["t-2"]))[0].added == 0
        # And a thread goes on here.
        result = builder().compile(checkpointer=ours).invoke(Command(resume="no"), config_of("t-1"))
        assert result["steps"] == ["a" * 300, "no", "z"]


@pytest.mark.covers("IN-40")
def test_files_from_before_task_paths_and_sends_of_old_checkpoints_are_read(tmp_path: Path) -> None:
    source = str(tmp_path / "old.db")
    with SqliteSaver.from_conn_string(source) as theirs:
        theirs.setup()
        old: Any = {**empty_checkpoint(), "v": 1, "id": "1", "channel_versions": {"a": "1"}}
        at = theirs.put(
            {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, old, {"step": 0}, {"a": "1"}
        )
        theirs.put_writes(at, [("__pregel_tasks", Send("node", {"n": 1}))], "task-1")
        theirs.put(at, {**old, "id": "2"}, {"step": 1}, {})
    connection = sqlite3.connect(source)
    connection.execute("ALTER TABLE writes DROP COLUMN task_path")
    connection.commit()
    connection.close()
    with HoldfastSaver.open(f"sqlite:{tmp_path / 'ours.db'}?sync=normal") as ours:
        assert ours.run_sync(import_threads(ours, source))[0].equal
        newest = ours.get_tuple(config_of("t"))
        assert newest is not None
        assert newest.checkpoint["channel_values"]["__pregel_tasks"] == [Send("node", {"n": 1})]


@pytest.mark.covers("IN-41")
def test_an_exported_file_is_opened_by_langgraphs_saver_and_goes_on_there(tmp_path: Path) -> None:
    file = tmp_path / "leave.db"
    with HoldfastSaver.open(f"sqlite:{tmp_path / 'ours.db'}?sync=normal") as ours:
        fill(ours)
        assert ours.run_sync(export_threads(ours, file)) == [("t-1", 3), ("t-2", 3)]
        with SqliteSaver.from_conn_string(str(file)) as theirs:
            assert content(theirs, "t-1") == content(ours, "t-1")
            result = builder().compile(checkpointer=theirs).invoke(Command(resume="yes"), config_of("t-1"))
    assert result["steps"] == ["a" * 300, "yes", "z"]
