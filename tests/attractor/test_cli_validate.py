"""`holdfast validate` and `holdfast graph` of pipelines, as they are typed."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Cli

GOOD = """digraph Build {
    graph [goal="Ship it"]
    start [shape=Mdiamond]; exit [shape=Msquare]
    plan [label="Plan it", prompt="Plan $goal"]
    fan [shape=component]; join [shape=tripleoctagon]
    api [label="API"]; ui [label="UI"]
    test [shape=parallelogram, label="Tests", tool_command="make test"]
    check [shape=diamond, label="Passing?"]
    ask [shape=hexagon, label="Ship?"]
    boss [shape=house, label="Roll out", stack.child_dotfile="child.dot"]
    start -> plan -> fan
    fan -> api -> join
    fan -> ui -> join
    join -> test -> check
    check -> ask [label="Yes", condition="outcome=success"]
    check -> plan [label="No", condition="outcome!=success"]
    ask -> boss [label="[S] Ship"]
    ask -> plan [label="[C] Change"]
    boss -> exit
}
"""
BAD = """digraph Bad {
    start [shape=Mdiamond]; exit [shape=Msquare]
    a [prompt="x" fidelity=odd]
    start -> a
    a -> exit [condition="outcome=a || outcome=b"]
    a -> start
}
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    (tmp_path / "good.dot").write_text(GOOD)
    (tmp_path / "child.dot").write_text("digraph Child { start -> exit; start; exit }")
    (tmp_path / "bad.dot").write_text(BAD)


@pytest.mark.covers("ATTRACTOR-CLI-03")
def test_a_good_pipeline_is_valid(cli: Cli) -> None:
    said = cli("validate", "good.dot")
    assert said.code == 0
    assert said.out == "good.dot: valid: Build, 11 stages, 13 edges\n"


@pytest.mark.covers("ATTRACTOR-CLI-03", "ATTRACTOR-LANG-02")
def test_every_problem_is_a_line_with_its_place_and_the_exit_code_says_so(cli: Cli) -> None:
    said = cli("validate", "bad.dot")
    assert said.code == 1
    *lines, last = said.out.splitlines()
    assert all(re.match(r"bad\.dot:\d+:\d+: (error|warning|info): .+ \[\w+\]$", line) for line in lines)
    assert [line.split(":")[1] for line in lines] == ["3", "3", "5", "6"]
    assert last == "bad.dot: not valid; 2 errors, 2 warnings"
    assert said.err == ""


@pytest.mark.covers("ATTRACTOR-CLI-03", "ATTRACTOR-LANG-01")
def test_strict_refuses_what_is_else_a_warning(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "loose.dot").write_text(GOOD.replace('label="Tests", ', 'label="Tests" '))
    assert cli("validate", "loose.dot").code == 0
    said = cli("validate", "loose.dot", "--strict")
    assert said.code == 1
    assert "loose.dot:7:" in said.out
    (tmp_path / "ghost.dot").write_text(
        GOOD.replace("ask -> boss", "ask -> ghost; ghost -> boss; ask -> boss")
    )
    assert cli("validate", "ghost.dot").code == 0
    assert cli("validate", "ghost.dot", "--strict").code == 1


@pytest.mark.covers("ATTRACTOR-CLI-03")
@pytest.mark.parametrize("words", [("--format", "json"), ("--json",)])
def test_as_json_every_file_has_its_diagnostics(cli: Cli, words: tuple[str, ...]) -> None:
    said = cli("validate", "good.dot", "bad.dot", "gone.dot", *words)
    assert said.code == 2
    good, bad, gone = said.json["files"]
    assert said.json["valid"] is False
    assert (good["valid"], good["name"], good["diagnostics"]) == (True, "Build", [])
    (found,) = [each for each in bad["diagnostics"] if each["rule"] == "condition_syntax"]
    assert found["severity"] == "error"
    assert found["edge"] == ["a", "exit"]
    assert (found["line"], found["column"], found["file"]) == (5, 16, "bad.dot")
    assert "||" in found["message"]
    assert "extended" in found["fix"]
    assert [each["rule"] for each in gone["diagnostics"]] == ["file"]
    assert "No such file" in gone["diagnostics"][0]["message"]


@pytest.mark.covers("ATTRACTOR-CLI-03")
def test_as_sarif_a_code_scanner_finds_rules_levels_and_regions(cli: Cli) -> None:
    log = cli("validate", "bad.dot", "--format", "sarif").json
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert run["tool"]["driver"]["name"] == "holdfast"
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == "bad.dot"
        assert location["physicalLocation"]["region"]["startLine"] >= 1
        assert location["physicalLocation"]["region"]["startColumn"] >= 1
    assert {result["ruleId"] for result in run["results"]} == {rule["id"] for rule in rules}
    assert cli("validate", "good.dot", "--format", "sarif").json["runs"][0]["results"] == []


@pytest.mark.covers("ATTRACTOR-CLI-03")
def test_a_pipeline_comes_from_stdin(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    said = cli("validate", "-")
    assert said.code == 1
    assert said.out.startswith("-:3:")


@pytest.mark.covers("AT-55")
def test_a_pipeline_with_an_error_is_not_run_and_one_with_warnings_is(cli: Cli, tmp_path: Path) -> None:
    said = cli("run", "bad.dot", "--simulate")
    assert said.code == 2
    assert "bad.dot:5:16: error" in said.err
    assert "bad.dot:6:5: error" in said.err
    assert not (tmp_path / ".holdfast").exists()
    (tmp_path / "odd.dot").write_text("digraph Odd { start; exit; start -> ghost -> exit }")
    assert cli("validate", "odd.dot").out.endswith("1 warning\n")
    assert cli("run", "odd.dot", "--simulate").code == 0


@pytest.mark.covers("AT-219")
def test_an_included_pipeline_runs_in_the_place_of_its_stage(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "child.dot").write_text(
        'digraph C { graph [goal="inner"]; start; end; start -> deep -> end; deep [prompt="Reach $goal"] }'
    )
    (tmp_path / "outer.dot").write_text(
        """digraph O { start; exit; sub [subgraph_file="child.dot"]; lost [label="Lost"]; start -> sub
        sub -> exit [condition="outcome=success"]
        sub -> lost [condition="outcome!=success"]; lost -> exit }"""
    )
    assert cli("run", "outer.dot", "--simulate", "--logs", "logs").code == 0
    assert (tmp_path / "logs" / "sub__deep" / "prompt.md").read_text() == "Reach inner"
    assert not (tmp_path / "logs" / "lost").exists()


@pytest.mark.covers("AT-219")
def test_a_failure_at_the_end_of_an_included_pipeline_leaves_by_its_stages_edges(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "child.dot").write_text(
        'digraph C { start; end; start -> t -> end; t [shape=parallelogram, tool_command="exit 1"] }'
    )
    (tmp_path / "outer.dot").write_text(
        """digraph O { start; exit; sub [subgraph_file="child.dot"]; mend [label="Mend"]; start -> sub
        sub -> exit [condition="outcome=success"]
        sub -> mend [condition="outcome=fail"]; mend -> exit }"""
    )
    assert cli("run", "outer.dot", "--simulate", "--logs", "logs").code == 0
    assert (tmp_path / "logs" / "mend").exists()


@pytest.mark.parametrize("content", [b"\x00\xff\xfe\x01" * 50, b"", b"digraph {", b"hello"])
def test_what_is_no_pipeline_is_reported_without_a_traceback(
    cli: Cli, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "odd.dot").write_bytes(content)
    for form in ("text", "json", "sarif"):
        said = cli("validate", "odd.dot", "--format", form)
        assert said.code == 1
        assert "odd.dot" in said.out
        assert "Traceback" not in said.out + said.err
    drawn = cli("graph", "odd.dot")
    assert drawn.code == 2
    assert drawn.err.startswith("holdfast: ")


def test_what_validate_cannot_do_it_says(cli: Cli, tmp_path: Path) -> None:
    assert "text, json, sarif" in cli("validate", "good.dot", "--format", "xml").err
    (tmp_path / "flow.py").write_text("")
    said = cli("validate", "flow.py")
    assert said.code == 2
    assert "not a pipeline" in said.out
    assert cli("validate", ".").code == 2
    assert cli("validate").code == 2


def test_types_of_own_handlers_can_be_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.dot").write_text(GOOD.replace('label="API"', 'label="API", type="my.own"'))
    assert "type_known" in cli("validate", "own.dot").out
    assert "type_known" not in cli("validate", "own.dot", "--type", "my.own").out


@pytest.mark.covers("ATTRACTOR-CLI-04")
def test_a_pipeline_is_drawn_in_the_terminal(cli: Cli) -> None:
    said = cli("graph", "good.dot")
    assert said.code == 0
    for text in (
        "Plan it",
        "Passing? ◇",
        "Ship? ☺",
        "Tests $",
        "Roll out ◉",
        "start ▷",
        "[S] Ship",
        "make test",
    ):
        assert text in said.out
    assert "Yes (outcome=success)" in said.out
    assert "chooses an edge" in said.out


@pytest.mark.covers("ATTRACTOR-CLI-04")
def test_a_pipeline_is_drawn_as_svg_with_shapes_by_handler(cli: Cli, tmp_path: Path) -> None:
    said = cli("graph", "good.dot", "-o", "out.svg")
    assert said.code == 0
    assert said.out == ""
    root = ElementTree.fromstring((tmp_path / "out.svg").read_text())
    groups = {
        (group[0].text or "").partition(".")[0]: (group.get("class") or "").split()
        for group in root.iter("{http://www.w3.org/2000/svg}g")
        if "node" in (group.get("class") or "").split()
    }
    shapes = {"start": "entry", "exit": "exit", "Plan it": "task", "fan": "fork", "join": "meet",
              "Tests": "tool", "Passing?": "choice", "Ship?": "hold", "Roll out": "manager"}  # fmt: skip
    assert {name: groups[name][1] for name in shapes} == shapes
    words = " ".join(root.itertext())
    assert "No (outcome!=success)" in words
    assert "[C] Change" in words


@pytest.mark.covers("ATTRACTOR-CLI-04")
def test_included_pipelines_are_drawn_inside_on_demand(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "child.dot").write_text(
        'digraph C { start -> deep -> exit; start; exit; deep [label="Deep"] }'
    )
    (tmp_path / "outer.dot").write_text(
        'digraph O { start; exit; sub [label="Sub", subgraph_file="child.dot"]; start -> sub -> exit }'
    )
    folded, unfolded = cli("graph", "outer.dot").out, cli("graph", "outer.dot", "--expand").out
    assert "Sub ⊞" in folded
    assert "Deep" not in folded
    assert "Deep" in unfolded


@pytest.mark.covers("ATTRACTOR-CLI-04")
def test_a_pipeline_that_cannot_run_is_not_drawn(cli: Cli) -> None:
    said = cli("graph", "bad.dot", "--json")
    assert said.code == 2
    assert "2 errors" in said.err
    assert said.out == ""


def test_a_drawing_is_svg_and_nothing_else(cli: Cli, tmp_path: Path) -> None:
    said = cli("graph", "good.dot", "-o", "out.png")
    assert said.code == 2
    assert "SVG" in said.err
    assert not (tmp_path / "out.png").exists()
    assert cli("graph", "gone.dot").code == 2
