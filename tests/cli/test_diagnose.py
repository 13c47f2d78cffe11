"""`holdfast diagnose`: where a run is, why, and what to do, in at most ten lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Flow, Holdfast, Retry, Worker
from holdfast.attractor.backends.select import backend_of
from holdfast.attractor.prepare import input_of, prepare_pipeline
from holdfast.attractor.program import PipelineSetup
from holdfast.reports.diagnosis import diagnose
from tests.attractor.run import dot, line
from tests.cli.conftest import Cli

pytestmark = [pytest.mark.anyio, pytest.mark.covers("CP2-X4")]

TOOL = "shape=parallelogram, tool_command"


LINKS = "start -> g; g -> a [label=Yes]; g -> done [label=No]; a -> done"


def started(cli: Cli, source: str, *words: str) -> str:
    Path("x.dot").write_text(source)
    return cli("run", "x.dot", "--simulate", "--json", *words).json["id"]


def diagnosed(cli: Cli, run: str) -> list[str]:
    said = cli("diagnose", run)
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert len(lines) <= 10
    assert all(len(each) <= 160 for each in lines)
    return lines


def test_failed_run_shows_its_stage_its_output_and_how_to_continue(cli: Cli) -> None:
    failing = f"""a; t [{TOOL}="echo one; echo 'expected 3, got 4' >&2; exit 2"];"""
    run = started(cli, line(failing, "a", "t"))
    lines = diagnosed(cli, run)
    assert lines[0] == f"Run {run} of g: failed."
    assert lines[1].startswith("Where   t (failed, ")
    assert lines[2] == "Why     exit code 2: expected 3, got 4"
    assert "Output  expected 3, got 4" in lines
    assert "Before  start success, a success" in lines
    assert f"holdfast resume {run[:8]}" in " ".join(lines)


def test_first_lines_of_a_short_output_are_shown(cli: Cli) -> None:
    """Where a program says its reason first."""
    failing = f"""t [{TOOL}="printf 'a\\nthe reason\\nx\\ny\\nAborting\\n' >&2; exit 1"];"""
    lines = diagnosed(cli, started(cli, line(failing, "t")))
    assert [each[8:] for each in lines if each.startswith("Output")] == ["the reason", "x", "y", "Aborting"]
    assert sum(each.startswith("Do ") for each in lines) == 2


def test_failed_branches_are_named_with_their_reasons(cli: Cli) -> None:
    stages = f"""fan [shape=component]; join [shape=tripleoctagon];
    a [{TOOL}="echo 'no such table' >&2; exit 2"]; b [{TOOL}="exit 7"];"""
    run = started(cli, dot(stages, "start -> fan; fan -> a -> join; fan -> b -> join; join -> done"))
    why = next(each for each in diagnosed(cli, run) if each.startswith("Why"))
    assert "all parallel candidates failed (a: exit code 2: no such table; b: exit code 7" in why


def test_failed_branch_of_a_run_that_ended_well_is_named(cli: Cli) -> None:
    stages = f"""fan [shape=component]; join [shape=tripleoctagon]; t [{TOOL}="test -e ok"];
    fix [{TOOL}="touch ok"];
    a [{TOOL}="exit 2"]; b [{TOOL}="true"];"""
    links = """start -> fan; fan -> a -> join; fan -> b -> join; join -> t;
    t -> done [condition="outcome=success"];
    t -> fix [condition="outcome=fail"]; fix -> t"""
    lines = diagnosed(cli, started(cli, dot(stages, links)))
    assert "Why     it completed, although fan[0]/a failed, and did not run again" in lines


def test_open_question_is_shown_with_its_answers(cli: Cli) -> None:
    gate = dot('g [shape=hexagon, label="Ship it?"]; a;', LINKS)
    run = started(cli, gate)
    lines = diagnosed(cli, run)
    assert lines[0].endswith("waiting for input.")
    assert lines[1].startswith("Where   g (asking, ")
    assert "Ship it?" in lines[2]
    hold = cli("show", run, "--json").json["holds"][0]["id"]
    assert f"Do      holdfast answer {hold[:8]} Yes" in lines
    # As it is written there.
    assert cli("answer", hold[:8], "Yes").code == 0


@pytest.mark.parametrize(
    ("more", "why"), [(["--detach"], "no worker has started it"), ([], "it completed")], ids=["new", "ended"]
)
def test_run_that_waits_for_no_person_says_why(cli: Cli, more: list[str], why: str) -> None:
    lines = diagnosed(cli, started(cli, line("a;", "a"), *more))
    assert any(each.startswith(f"Why     {why}") for each in lines)


def answer(prompt: str) -> str:
    return "well"


async def test_sleeping_runs_and_missing_requirements_say_until_when_and_what() -> None:
    flow = Flow("rests", effect="read")

    @flow.node(retry=Retry(3, delay=3600))
    async def work(s: dict) -> dict:
        raise OSError("the network is away")

    async with Holdfast("memory:") as hf:
        service = await hf.service()
        row, _ = await service.create(flow.program(), {})
        await Worker(flow, on=hf).run_until_idle()
        found = await diagnose(service, row.id)
        assert found.why.startswith("an attempt failed, and the next one begins at 20")
        assert "until 20" in found.status
        setup = PipelineSetup(backend=backend_of(answer))
        ready = prepare_pipeline(line("a;", "a"), setup)
        row, _ = await service.create(ready.program, input_of(ready.pipeline, backend=setup.asks_for))
        async with Worker(on=hf):
            found = await diagnose(service, row.id)
    assert found.why == "no live worker has backend:function:tests.cli.test_diagnose.answer"
    assert "--backend [NAME=]SPEC" in found.todo[0]


def test_failure_that_was_repaired_is_not_shown_as_the_error_of_a_run(cli: Cli) -> None:
    test = (
        f"""t [{TOOL}="test -e ok || {{ echo red; exit 1; }}"]; fix [{TOOL}="touch ok"]; g [shape=hexagon];"""
    )
    links = 'start -> t; t -> g [condition="outcome=success"]; t -> fix [condition="outcome=fail"]; fix -> t;'
    run = started(cli, dot(test, f"{links} g -> done [label=Yes]; g -> fix [label=No]"))
    found = cli("show", run, "--json").json
    assert (found["run"]["status"], found["error"]) == ("pending_input", None)


def test_run_without_a_worker_says_what_it_needs(cli: Cli) -> None:
    Path("x.dot").write_text(dot('g [shape=hexagon, label="Ship it?"]; a;', LINKS))
    run = cli("run", "x.dot", "--backend", "mine=cli:cat", "--detach", "--json").json["id"]
    assert "Why     no worker has started it; it needs backend:mine" in diagnosed(cli, run)
    assert "Do      holdfast worker    # with `--backend [NAME=]SPEC`" in diagnosed(cli, run)
    assert cli("worker", "--until-idle", "--backend", "mine=cli:cat").code == 0
    assert cli("answer", run, "Yes").code == 0
    why = next(each for each in diagnosed(cli, run) if each.startswith("Why"))
    assert why == "Why     its wait has ended, and no worker has resumed it; it needs backend:mine"


def test_cancelled_run_and_json(cli: Cli) -> None:
    run = started(cli, line("a [shape=hexagon];", "a"))
    assert cli("cancel", run, "--reason", "no longer wanted").code == 0
    assert any("its cancellation is requested" in each for each in diagnosed(cli, run))
    assert cli("worker", "--until-idle").code == 0
    found = cli("diagnose", run, "--json").json
    assert (found["run"], found["why"]) == (run, "it was cancelled: no longer wanted")
    assert cli("diagnose", "nothing").code == 2


def test_commands_name_the_store_that_was_named(cli: Cli) -> None:
    Path("x.dot").write_text(dot("g [shape=hexagon]; a;", LINKS))
    run = cli("run", "x.dot", "--simulate", "--json", "--store", "sqlite:other.db").json["id"]
    said = cli("diagnose", run, "--store", "sqlite:other.db").out
    assert "Yes --store sqlite:other.db" in said
    assert said.count("--store sqlite:other.db") == said.count("Do ")
