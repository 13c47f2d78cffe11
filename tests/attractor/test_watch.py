"""Watching a pipeline: its graph drawn live in a terminal, lines in a pipe, and the picture of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.attractor.picture import picture_of_run
from holdfast.attractor.stored_source import pipeline_of
from holdfast.drawing import Highlight, State
from holdfast.runs.history.timeline import make_timeline
from tests.attractor.run import dot, line, run
from tests.cli.conftest import Cli, cli, logs
from tests.cli.terminal import in_terminal

__all__ = ["cli", "logs"]

BRANCHES = dot(
    'fan [shape=component]; a [label="Left"]; b [label="Right"]; join [shape=tripleoctagon];'
    'gate [shape=hexagon, label="Ship?"]; fix [label="Mend"];',
    "start -> fan; fan -> a -> join; fan -> b -> join; join -> gate;"
    'gate -> done [label="[A] Approve"]; gate -> fix [label="[F] Fix"]; fix -> done',
)


@pytest.mark.covers("ATTRACTOR-CLI-05")
def test_the_graph_is_drawn_live_with_the_state_of_each_stage(tmp_path: Path) -> None:
    (tmp_path / "x.dot").write_text(BRANCHES)
    # High enough for stages that took long: those have a line more.
    seen = in_terminal(tmp_path, "run", "x.dot", "--simulate", "--watch", rows=80)
    assert seen.code == 3
    last = "\n".join(seen.screen)
    for words in ("✓ start", "✓ Left", "✓ Right", "✓ join", "⏸ Ship?", "Mend", "[F] Fix", "╭", "▼"):
        assert words in last, (words, last)
    assert last.count("Ship? ☺") == 1, "the drawing is drawn anew in its place"
    assert "✓ Mend" not in seen.text
    assert "\x1b[32m" in seen.raw, "what is done is green"
    assert "waiting for input" in last
    assert "holdfast answer" in last


@pytest.mark.covers("ATTRACTOR-CLI-05")
def test_a_graph_that_does_not_fit_is_reported_as_a_list(tmp_path: Path) -> None:
    names = [f"stage{number:02}" for number in range(60)]
    stages = "".join(f'{name} [label="Stage {name}"]; ' for name in names)
    (tmp_path / "x.dot").write_text(line(stages, *names))
    seen = in_terminal(tmp_path, "run", "x.dot", "--simulate", "--watch")
    assert seen.code == 0
    assert "╭" not in seen.text
    assert "✓ stage59" in "\n".join(seen.screen)


@pytest.mark.covers("ATTRACTOR-CLI-05")
def test_a_pipe_gets_plain_lines_and_a_machine_json(cli: Cli) -> None:
    Path("x.dot").write_text(line("a;", "a"))
    said = cli("run", "x.dot", "--simulate", "--watch")
    assert said.code == 0
    assert "\x1b" not in said.out
    assert "╭" not in said.out
    assert any("a" in each.split() for each in said.out.splitlines())
    result = cli("run", "x.dot", "--simulate", "--watch", "--json")
    events = [json.loads(each) for each in result.out.splitlines() if each.startswith('{"')]
    assert {"node.started", "run.completed"} <= {each.get("type") for each in events}


@pytest.mark.anyio
@pytest.mark.covers("ATTRACTOR-HTTP-03")
async def test_a_picture_has_states_and_the_way_that_was_taken(hf: Holdfast, tmp_path: Path) -> None:
    found = await run(hf, BRANCHES, tmp_path)
    service = await hf.service()
    result = await make_timeline(service, await service.get(found.run_id))
    picture = picture_of_run(pipeline_of(result.graph.spec), result.visits)
    states = {node.id: node.state for node in picture.nodes}
    assert states == {
        "start": State.done, "done": State.idle, "fan": State.done, "a": State.done, "b": State.done,
        "join": State.done, "gate": State.asking, "fix": State.idle,
    }  # fmt: skip
    taken = {(edge.source, edge.target) for edge in picture.edges if edge.mark is Highlight.taken}
    assert taken == {
        ("start", "fan"), ("fan", "a"), ("fan", "b"), ("a", "join"), ("b", "join"), ("join", "gate"),
    }  # fmt: skip
