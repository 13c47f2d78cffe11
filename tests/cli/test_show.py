"""`show`: the graph, the timeline, what is asked and what it cost, of runs of every kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.cli.conftest import Cli
from tests.cli.flows import write_news
from tests.cli.terminal import in_terminal


@pytest.fixture
def news(cli: Cli, tmp_path: Path) -> str:
    """A run that waits for a person; the code of its flow is gone."""
    file = write_news(tmp_path, f"news_{abs(hash(str(tmp_path)))}")
    run = cli("run", f"{file}:news", "--json").json["id"]
    file.unlink()
    return run


def visits(cli: Cli, run: str) -> dict[str, dict[str, Any]]:
    return {visit["label"]: visit for visit in cli("show", run, "--json").json["timeline"]}


@pytest.mark.covers("TOOL-CLI-04", "TOOL-DRAW-05")
def test_show_draws_the_graph_with_the_state_of_each_node(cli: Cli, news: str) -> None:
    drawn = cli("show", news, "--graph").out

    for words in ("✓ gather", "✓ each ≡", "✓ desked ⊞", "⏸ ask ☺", "\u2013 apologise", "3 of 3", "1 retry"):
        assert words in drawn
    assert "│ publish │" in drawn
    assert "╭" in drawn
    assert "✓ done" in drawn
    assert "⏸ waiting for input" in drawn


@pytest.mark.covers("TOOL-CLI-04")
def test_show_draws_what_is_inside_when_expanded(cli: Cli, news: str) -> None:
    assert "✓ check" not in cli("show", news, "--graph").out

    drawn = cli("show", news, "--graph", "--expand").out

    assert "✓ shorten" in drawn
    assert "3 visits" in drawn
    assert "✓ check" in drawn


@pytest.mark.covers("TOOL-CLI-05")
def test_show_has_a_timeline_with_durations_retries_and_waits(cli: Cli, news: str) -> None:
    lines = cli("show", news, "--timeline").out.splitlines()

    assert lines[0].split()[:7] == ["node", "visit", "state", "start", "took", "attempts", "steps"]
    gather = next(line for line in lines if line.startswith("gather"))
    assert gather.split()[:4] == ["gather", "1", "done", "+0"]
    assert "a retry" in gather
    assert "ValueError: the wire was cut" in gather
    assert "a person" in next(line for line in lines if line.startswith("ask"))
    assert [line.split()[0] for line in lines if "[" in line] == ["each[0]", "each[1]", "each[2]"]


@pytest.mark.covers("WB-33-logs")
def test_show_has_the_lines_that_nodes_logged_also_in_attempts_that_failed(cli: Cli, news: str) -> None:
    lines = cli("show", news, "--logs").out.splitlines()
    assert [line.split(maxsplit=2)[1:] for line in lines if "asks" in line] == [
        ["info", "gather  asks 3 wires"],
        ["info", "gather (attempt 2)  asks 3 wires"],
    ]
    found = cli("show", news, "--logs", "--json").json
    assert [(each["level"], each["node"], each["attempt"], each["text"]) for each in found] == [
        ("info", "gather", 1, "asks 3 wires"),
        ("info", "gather", 2, "asks 3 wires"),
    ]
    assert found[0]["at"] <= found[1]["at"]


@pytest.mark.covers("TOOL-CLI-05", "TOOL-CLI-25")
def test_show_tells_machines_every_visit(cli: Cli, news: str) -> None:
    found = visits(cli, news)

    gather, ask = found["gather"], found["ask"]
    assert (gather["attempts"], len(gather["retries"]), gather["state"]) == (2, 1, "done")
    assert gather["waits"][0]["kind"] == "retry"
    assert gather["ended_at"] >= gather["started_at"]
    assert (ask["state"], ask["ended_at"]) == ("asking", None)
    assert (ask["waits"][0]["kind"], ask["waits"][0]["until"], ask["waits"][0]["about"]) == (
        "person",
        None,
        "Publish?",
    )


@pytest.mark.covers("TOOL-CLI-05")
def test_show_tells_who_answered_and_how_long_that_took(cli: Cli, tmp_path: Path) -> None:
    file = write_news(tmp_path, f"news_{abs(hash(str(tmp_path)))}")
    run = cli("run", f"{file}:news", "--json").json["id"]
    cli("answer", run, "yes", "--by", "user:ada", "--resume")

    ask = visits(cli, run)["ask"]
    text = cli("show", run).out

    (wait,) = ask["waits"]
    assert (ask["state"], wait["by"], wait["decision"]) == ("done", "user:ada", "yes")
    assert wait["until"] > wait["since"]
    assert "(user:ada)" in text
    assert "✓ publish" in text
    assert "resumed  1" in text


@pytest.mark.covers("TOOL-CLI-06")
def test_show_lists_open_holds_with_the_commands_that_answer_them(cli: Cli, news: str) -> None:
    said = cli("show", news).out

    assert "Publish?" in said
    assert "for group:editors" in said
    assert f"holdfast answer {news[:8]} yes" in said


MANY = """
from holdfast import Flow
many = Flow("many", effect="pure")

async def each(item, ctx):
    return (await ctx.ask(f"Question {item}?", options=["yes", "no"])).decision

asked = many.map("asked", over="items", body=each, into="out")
many.start(asked)
"""


@pytest.mark.covers("TOOL-CLI-06")
def test_each_of_many_questions_is_answered_by_its_own_id(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "many_one.py").write_text(MANY)
    said = cli("run", "many_one.py", "--input", json.dumps({"items": list(range(12))}))
    run = said.out.split()[1]

    shown = cli("show", run)

    for seen in (said, shown):
        commands = [line.split() for line in seen.out.splitlines() if line.startswith("  holdfast answer")]
        assert len({words[2] for words in commands}) == 10
        assert "2 more holds are open" in seen.err
    assert cli(*commands[0][1:]).code == 0
    assert len(cli("show", run, "--json").json["holds"]) == 12


@pytest.mark.covers("TOOL-CLI-06")
def test_show_adds_up_costs_also_of_what_is_inside(cli: Cli, news: str) -> None:
    costs = cli("show", news, "--json").json["costs"]

    assert (costs["tokens"], costs["cost"]) == (105, 0.75)
    assert costs["nodes"]["gather"]["tokens"] == 100
    assert costs["nodes"]["desked/check"]["cost"] == 0.25
    assert "105 tokens, 0.75" in cli("show", news).out


@pytest.mark.covers("TOOL-CLI-04", "TOOL-CLI-05")
def test_show_tells_what_failed_and_what_to_do(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", '{"order": "A", "amount": -1}', "--json").json["id"]

    said = cli("show", run)

    assert "✗ assess" in said.out
    assert "node assess: ValueError: a refund is positive" in said.out
    assert f"holdfast resume {run[:8]}" in said.err


@pytest.mark.covers("TOOL-CLI-04", "TOOL-CLI-05")
def test_show_tells_what_a_fork_brought_along(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", '{"order": "A", "amount": 80}', "--json").json["id"]
    fork = cli("fork", f"{run}@1", "--json").json["id"]

    found = visits(cli, fork)

    assert (found["assess"]["run"], found["assess"]["state"]) == (run, "done")
    assert found["pay"]["ended_at"] is None
    assert "✓ assess" in cli("show", fork).out


@pytest.mark.covers("TOOL-CLI-04", "TOOL-CLI-05")
def test_show_tells_the_whole_story_of_a_pruned_run(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", '{"order": "A", "amount": 80}', "--json").json["id"]
    whole = visits(cli, run)
    assert cli("prune", run, "--keep", "1", "--yes").code == 0

    said = cli("show", run).out

    assert "older records are pruned" in said
    assert visits(cli, run).keys() == whole.keys()
    assert "✓ pay" in said


@pytest.mark.covers("TOOL-CLI-04")
def test_show_tells_of_imported_history(cli: Cli, refund: str, tmp_path: Path) -> None:
    run = cli("run", refund, "--input", '{"order": "A", "amount": 80}', "--json").json["id"]
    cli("export", run, "--out", "run.hf")
    cli("import", "run.hf", "--store", "sqlite:other.db")

    said = cli("show", run, "--store", "sqlite:other.db").out

    assert "imported history" in said
    assert "✓ pay" in said


LONG = """
from holdfast import Flow
long = Flow("long", effect="pure")

@long.node
async def tick(s):
    return {"n": s.get("n", 0) + 1}

long.start(tick)
long.loop(tick, tick, when="n < 400", max=1000)
"""


@pytest.mark.covers("TOOL-CLI-05")
def test_show_of_a_long_run_says_how_much_it_leaves_out(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "long_one.py").write_text(LONG)
    run = cli("run", "long_one.py", "--json").json["id"]

    short, whole = cli("show", run, "--timeline"), cli("show", run, "--timeline", "--all")
    records = cli("show", run, "--records")

    assert (len(short.out.splitlines()), len(whole.out.splitlines())) == (61, 401)
    assert short.err == "340 earlier visits are left out; --all shows them, --json has everything.\n"
    assert len(records.out.splitlines()) == 201
    assert "earlier records are left out" in records.err
    assert "400 visits" in cli("show", run, "--graph").out
    assert len(cli("show", run, "--json").json["timeline"]) == 400


@pytest.mark.covers("TOOL-CLI-26")
def test_show_in_a_terminal_has_colours_and_bars(cli: Cli, news: str, tmp_path: Path) -> None:
    seen = in_terminal(tmp_path, "show", news)
    plain = in_terminal(tmp_path, "show", news, NO_COLOR="1")

    assert "\x1b[32m" in seen.raw
    assert "█" in seen.text
    assert "✓ gather" in seen.text
    assert "\x1b[32m" not in plain.raw
    assert "\x1b[33m" not in plain.raw
    assert all(len(line) <= 100 for line in seen.text.splitlines())


@pytest.mark.covers("TOOL-CLI-26", "TOOL-DRAW-04")
def test_show_keeps_to_ascii_where_stdout_knows_no_more(cli: Cli, news: str, tmp_path: Path) -> None:
    seen = in_terminal(tmp_path, "show", news, "--graph", PYTHONIOENCODING="ascii")

    assert seen.code == 0
    assert seen.text.isascii()
    assert "| v gather |" in " ".join(seen.text.split())


HUSH = """
from dataclasses import dataclass
from typing import Annotated
from holdfast import Flow, Secret

@dataclass
class Login:
    token: Annotated[str, Secret] = "canary-4711"

hush = Flow("hush", state=Login, effect="read")

@hush.node
async def enter(s, ctx):
    ctx.emit(f"with {s.token}")
    raise ValueError(f"{s.token} was refused")

hush.start(enter)
"""


@pytest.mark.covers("TOOL-CLI-04", "TOOL-CLI-05")
def test_show_and_watch_do_not_tell_what_is_secret(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "hush_one.py").write_text(HUSH)
    watched = in_terminal(tmp_path, "run", "hush_one.py", "--watch")
    run = cli("runs", "--json").items[0]["id"]

    seen = [cli("show", run).out, cli("show", run, "--json").out, cli("graph", run, "--svg", "-").out]

    assert "was refused" in watched.text
    assert "was refused" in seen[0]
    assert not any("canary-4711" in text for text in [watched.text, *seen])


@pytest.mark.covers("TOOL-CLI-04", "TOOL-CLI-05")
def test_show_tells_what_it_can_of_a_damaged_run(cli: Cli, refund: str, tmp_path: Path) -> None:
    run = cli("run", refund, "--input", '{"order": "A", "amount": 80}', "--json").json["id"]
    with apsw.Connection(str(tmp_path / ".holdfast" / "holdfast.db")) as db:
        db.execute("UPDATE journal SET payload = ? WHERE node = 'assess'", (b"garbage",))

    said = cli("show", run)

    assert said.code == 4
    assert "record 1" in next(line for line in said.out.splitlines() if line.startswith("damaged"))
    assert "✓ pay" in said.out
    assert "✓ assess" in said.out
    assert "state " not in said.out.partition("●")[0]
    assert "record 1" in cli("show", run, "--json").json["damaged"]


def test_show_refuses_a_form_that_there_is_not(cli: Cli, news: str) -> None:
    assert cli("show", news, "--json=yaml").code == 2


def test_the_json_of_show_is_one_document_with_what_the_page_names(cli: Cli, news: str) -> None:
    reply = json.loads(cli("show", news, "--json").out)

    assert list(reply) == [
        "run", "stored", "state", "artifacts", "error", "damaged", "holds", "children", "engine", "costs",
        "graph", "timeline", "records",
    ]  # fmt: skip
    assert {node["id"] for node in reply["graph"]["nodes"]} >= {"gather", "each", "desked", "ask", "publish"}


@pytest.mark.covers("USERS-CHILD-LINEAGE")
def test_show_names_the_parent_and_the_children_of_a_run(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / f"family_{abs(hash(str(tmp_path)))}.py"
    file.write_text(
        """
from holdfast import Context, Flow
child = Flow("child", effect="read")
child.node(id="work")(lambda: None)
family = Flow("family", effect="read")
@family.script
async def parent(ctx: Context):
    await ctx.call(child, {})
"""
    )
    run = cli("run", f"{file}:family", "--json").json["id"]
    (child,) = cli("show", run, "--json").json["children"]
    assert (child["flow"], child["status"], child["parent_run"]) == ("child", "completed", run)
    assert f"{child['id']} (child, completed)" in cli("show", run).out
    assert run in next(
        line for line in cli("show", child["id"]).out.splitlines() if line.startswith("parent")
    )
    assert "a message" in cli("show", run, "--timeline").out
