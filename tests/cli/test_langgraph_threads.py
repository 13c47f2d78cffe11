"""`holdfast import langgraph` and `holdfast export langgraph`."""

from __future__ import annotations

import sqlite3  # noqa: TID251 (a file that is no store)
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import ormsgpack
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.cli.conftest import Cli
from tests.integrations.langgraph.test_transfer import fill


@pytest.mark.covers("IN-40", "IN-41")
def test_the_commands_import_and_export_threads_and_refuse_what_they_do_not_know(cli: Cli) -> None:
    with SqliteSaver.from_conn_string("theirs.db") as theirs:
        theirs.setup()
        fill(theirs)
    before = Path("theirs.db").read_bytes()
    tried = cli("import", "langgraph", "theirs.db", "--dry-run", "--json").json
    assert [each["added"] for each in tried["threads"]] == [3, 3]
    done = cli("import", "langgraph", "theirs.db", "--thread", "t-1", "--json").json
    assert [(each["thread"], each["added"], each["equal"]) for each in done["threads"]] == [("t-1", 3, True)]
    assert Path("theirs.db").read_bytes() == before
    shown = cli("import", "langgraph", "theirs.db")
    assert shown.code == 0
    assert "t-1: 3 checkpoints" in shown.out
    assert "0 new" in shown.out
    assert cli("export", "langgraph", "mine.db", "--json").json["threads"][1]["thread"] == "t-2"

    connection = sqlite3.connect("other.db")
    connection.execute("CREATE TABLE checkpoints (thread_id TEXT)")
    connection.close()
    refused = cli("import", "langgraph", "other.db")
    assert refused.code == 2
    assert "the table checkpoints has no column checkpoint_ns" in refused.err
    for arguments, words in (
        (("import", "langgraph", "absent.db"), "is no file"),
        (("import", "langgraph", "theirs.db", "--thread", "t-9"), "no thread 't-9'"),
        (("import", "langgraph", "theirs.db", "--serde", "nowhere:x"), "--serde nowhere:x"),
        (("import", "some.hfrun", "more"), "for threads of LangGraph"),
        (("export", "langgraph", "mine.db"), "exists already"),
        (("export", "3fa9c1", "mine.db"), "for threads of LangGraph"),
    ):
        refused = cli(*arguments)
        assert refused.code == 2, arguments
        assert words in refused.err, arguments


@pytest.mark.covers("IN-40")
@pytest.mark.parametrize("table", ["checkpoints", "writes"])
def test_a_file_cannot_name_code_that_is_run_when_it_is_imported(cli: Cli, table: str) -> None:
    with SqliteSaver.from_conn_string("theirs.db") as theirs:
        theirs.setup()
        place = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        first = {**empty_checkpoint(), "channel_values": {"x": "MARKER"}, "channel_versions": {"x": "1"}}
        made = theirs.put(cast("Any", place), first, {"source": "input", "step": -1}, {"x": "1"})
        theirs.put_writes(made, [("x", "MARKER")], "task")
    # LangGraph reads it as: call os.mkdir with this text.
    evil = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("os", "mkdir", "called"))))
    column = "checkpoint" if table == "checkpoints" else "value"
    with closing(sqlite3.connect("theirs.db")) as connection:
        for rowid, data in connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
            changed = data.replace(ormsgpack.packb("MARKER"), evil)
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, rowid))
        connection.commit()
    refused = cli("import", "langgraph", "theirs.db")
    assert not Path("called").exists()
    assert refused.code == 4
    assert "a value of the type os.mkdir" in refused.err
    assert "Traceback" not in refused.err
    assert cli("export", "langgraph", "mine.db", "--json").json["threads"] == []
