"""`holdfast check`, and the commands that check a flow before they use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import REFUND, Cli, given

SLIPS = (
    REFUND.replace('when="amount > 100"', 'when="amuont > 100"')
    .replace("decision == 'approve'", "decision == 'aprove'")
    .replace("{{order}}", "{{ordre}}")
)
WARNED = """
from holdfast import Flow

trip = Flow("trip", effect="pure")
trip.hold("approve", prompt="Travel for {{price}}?", options=["yes", "no"])
"""
PIPELINE = """digraph Build {
    start [shape=Mdiamond]; exit [shape=Msquare]
    work [prompt="Work"]
    start -> work
    work -> exit [condition="context.tests_passed=true"]
    work -> start2 [condition="outcome=sucess"]
    start2 [prompt="Again"]
    start2 -> exit
}
"""


@pytest.fixture
def slips(tmp_path: Path) -> str:
    file = tmp_path / f"slips_{abs(hash(str(tmp_path)))}.py"
    file.write_text(SLIPS)
    return file.name


@pytest.fixture
def warned(tmp_path: Path) -> str:
    file = tmp_path / f"warned_{abs(hash(str(tmp_path)))}.py"
    file.write_text(WARNED)
    return file.name


@pytest.fixture
def pipeline(tmp_path: Path) -> str:
    (tmp_path / "build.dot").write_text(PIPELINE)
    return "build.dot"


@pytest.mark.covers("SAFE-CHECK-01", "SAFE-CHECK-02")
def test_check_says_every_problem_with_its_line_rule_and_fix(cli: Cli, slips: str) -> None:
    said = cli("check", slips)
    assert said.code == 1
    line = SLIPS.splitlines().index('refund.edge(assess, approve, when="amuont > 100")') + 1
    assert (
        f"{slips}:{line}:1: error: edge 'assess->approve': its condition reads 'amuont', which the state "
        "does not have (did you mean 'amount'?) [unknown-field]"
    ) in said.out
    assert "which is not one of its options (did you mean 'approve'?" in said.out
    assert "its idempotency key reads 'ordre'" in said.out
    assert said.out.endswith(f"{slips}: not valid; 3 errors\n")


@pytest.mark.covers("SAFE-CHECK-02")
def test_check_writes_the_same_as_json_and_sarif(cli: Cli, slips: str) -> None:
    as_json = cli("check", slips, "--json")
    assert as_json.code == 1
    (checked,) = as_json.json["files"]
    assert (as_json.json["valid"], checked["name"], checked["nodes"]) == (False, "refund", 3)
    found = {(d["rule"], d["line"]) for d in checked["diagnostics"] if d["severity"] == "error"}
    (run,) = cli("check", slips, "--format", "sarif").json["runs"]
    results = [r for r in run["results"] if r["level"] == "error"]
    places = [r["locations"][0]["physicalLocation"] for r in results]
    assert {p["artifactLocation"]["uri"] for p in places} == {slips}
    lines = [p["region"]["startLine"] for p in places]
    assert set(zip([r["ruleId"] for r in results], lines, strict=True)) == found
    assert {rule for rule, _ in found} == {"unknown-field", "unknown-option"}


@pytest.mark.covers("SAFE-CHECK-01")
def test_check_takes_files_modules_and_pipelines_at_once(
    cli: Cli, refund: str, pipeline: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    said = cli("check", refund, f"{Path(refund).stem}:refund", pipeline)
    assert said.code == 0
    ends = [line for line in said.out.splitlines() if ": valid: " in line]
    assert [line.partition(": valid: ")[2] for line in ends] == [
        "refund, 3 nodes, 3 edges",
        "refund, 3 nodes, 3 edges",
        "Build, 4 stages, 4 edges; 2 warnings",
    ]


@pytest.mark.parametrize("what", ["gone.py", "no_such_module_x", "gone.dot"])
def test_check_names_what_cannot_be_loaded_and_checks_the_rest(cli: Cli, refund: str, what: str) -> None:
    said = cli("check", what, refund)
    assert said.code == 2
    assert f"{what}: not valid; 1 error" in said.out
    assert "valid: refund" in said.out


def test_check_says_what_to_name_when_it_is_given_a_folder(cli: Cli, refund: str, tmp_path: Path) -> None:
    said = cli("check", str(tmp_path))
    assert said.code == 2
    assert f"is a folder (Name its files: holdfast check {refund}" in said.out


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("json:zzz", "json defines no 'zzz', and no flow at all (It defines: JSONDecodeError, JSONDecoder"),
        ("json:dumps", "'dumps' in json is not a flow, and no flow at all"),
    ],
)
def test_check_lists_the_names_of_a_module_when_the_named_flow_is_none(
    cli: Cli, what: str, message: str
) -> None:
    said = cli("check", what)
    assert said.code == 2
    assert message in said.out


def test_pipelines_have_stages_and_flows_have_nodes_as_json(cli: Cli, refund: str, pipeline: str) -> None:
    flow, dot = cli("check", refund, pipeline, "--json").json["files"]
    assert (flow["nodes"], dot["stages"]) == (3, 4)
    assert "stages" not in flow
    assert "nodes" not in dot


def test_text_of_an_error_offers_options_only_and_ends_its_sentences(cli: Cli, slips: str) -> None:
    said = cli("run", slips, "--input", given(250))
    assert (
        "which is not one of its options. Fix: did you mean 'approve'? Use one of 'approve', 'reject' ["
        in said.err
    )


@pytest.mark.covers("SAFE-CHECK-04", "SAFE-CHECK-11")
def test_check_and_validate_say_the_same_of_a_pipeline(cli: Cli, pipeline: str) -> None:
    checked, validated = cli("check", pipeline), cli("validate", pipeline)
    assert checked == validated
    assert checked.code == 0
    assert "warning: the condition reads tests_passed, which nothing in this pipeline" in checked.out
    assert "(did you mean success?) [outcome_words]" in checked.out


@pytest.mark.parametrize(
    "words",
    [
        ("run", "FLOW", "--input", given(250)),
        ("run", "FLOW", "--input", given(250), "--detach"),
        ("worker", "FLOW", "--until-idle"),
        ("serve", "FLOW"),
        ("graph", "FLOW"),
    ],
)
@pytest.mark.covers("SAFE-CHECK-03")
def test_command_refuses_a_flow_with_errors(cli: Cli, slips: str, words: tuple[str, ...]) -> None:
    said = cli(*(slips if word == "FLOW" else word for word in words))
    assert said.code == 2
    assert "flow 'refund' has 3 errors" in said.err
    assert "did you mean 'amount'?" in said.err


@pytest.mark.covers("SAFE-CHECK-03")
def test_graph_refuses_a_pipeline_with_errors(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.dot").write_text("digraph Bad { start [shape=Mdiamond]; a; start -> a }")
    said = cli("graph", "bad.dot")
    assert said.code == 2
    assert "the pipeline has no exit" in said.err


@pytest.mark.covers("SAFE-CHECK-03")
def test_deployment_of_a_stored_flow_with_errors_is_refused(
    cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.model.checks import field_values
    from holdfast.model.checks.value_sets import DECISION, constants

    assert cli("run", refund, "--input", given(7)).code == 0
    assert cli("deployments", "create", "first", "--flow", "refund").code == 0
    # Stored by a version that did not know the rule.
    monkeypatch.setattr(field_values, "answers_of", lambda _hold: constants(["yes"], DECISION, "decision"))
    said = cli("deployments", "create", "second", "--flow", "refund")
    assert said.code == 2
    assert "which is not one of its options" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ("run", "FLOW", "--input", json.dumps({"price": 3})),
        ("graph", "FLOW"),
        ("worker", "FLOW", "FLOW", "--until-idle"),
    ],
)
@pytest.mark.covers("SAFE-CHECK-03")
def test_command_prints_each_warning_once(cli: Cli, warned: str, words: tuple[str, ...]) -> None:
    said = cli(*(warned if word == "FLOW" else word for word in words))
    assert said.code in (0, 3)
    assert said.err.count("its prompt reads 'price': the caller has to give it") == 1
