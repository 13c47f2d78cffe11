"""`holdfast deploy`, and what the other commands do with documents and deployed flows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.api.documents import OTHER, REFUND
from tests.cli.conftest import Cli


@pytest.fixture(autouse=True)
def no_module_of_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module `refund` would be run instead; other tests leave the folder of the examples on the path."""
    monkeypatch.setattr(sys, "path", [each for each in sys.path if not (Path(each) / "refund.py").exists()])
    monkeypatch.delitem(sys.modules, "refund", raising=False)


@pytest.fixture
def refund_yaml(tmp_path: Path) -> str:
    place = tmp_path / "refund.yaml"
    place.write_text(REFUND)
    return str(place)


@pytest.fixture
def other_yaml(tmp_path: Path) -> str:
    place = tmp_path / "other.yaml"
    place.write_text(OTHER)
    return str(place)


@pytest.mark.covers("CV-46", "PLATFORM-DOC-04", "CV-41")
def test_deployed_document_is_run_by_its_name_on_a_worker_without_files(cli: Cli, refund_yaml: str) -> None:
    sent = cli("deploy", refund_yaml, "--json")
    assert sent.code == 0, sent.err
    assert (sent.json["flow"], sent.json["new"], sent.json["current"]) == ("refund", True, True)
    again = cli("deploy", refund_yaml)
    assert again.code == 0
    assert "known already" in again.out

    started = cli("run", "refund", "--detach", "--input", '{"amount": 5}', "--json")
    assert started.code == 0, started.err
    assert started.json["version"] == sent.json["version"]
    assert cli("worker", "--until-idle").code == 0
    assert cli("show", started.json["id"], "--json").json["run"]["status"] == "pending_input"
    # It needs no code: its graph is in the store.
    (code,) = (each for each in cli("doctor", "--json").json["findings"] if each["check"] == "flow code")
    assert code["state"] == "ok"
    assert "code is unknown" not in cli("flows", "list").out
    assert [each["current"] for each in cli("flows", "list", "--json").items] == [True]
    assert [each["current"] for each in cli("flows", "list", "--tenant", "acme", "--json").items] == [False]
    assert "(current)" in cli("flows", "list").out
    assert cli("answer", started.json["id"], "approve").code == 0
    assert cli("worker", "--until-idle").code == 0
    ended = cli("show", started.json["id"], "--json").json["run"]
    assert ended["status"] == "completed"

    here = cli("run", f"refund@{sent.json['version']}", "--input", '{"amount": 5}', "--json")
    assert (here.code, here.json["status"]) == (3, "pending_input")


@pytest.mark.covers("CV-46", "PLATFORM-HOLD-02")
def test_document_with_problems_is_not_deployed_and_each_problem_has_node_field_and_fix(
    cli: Cli, refund_yaml: str
) -> None:
    Path(refund_yaml).write_text(REFUND.replace("timeout: 2d", "tiemout: 2d"))
    said = cli("deploy", refund_yaml, "--json")
    assert said.code == 1
    assert (said.json["valid"], said.json["stored"]) == (False, False)
    [found] = [each for each in said.json["problems"] if each["field"] == "tiemout"]
    assert (found["node"], found["severity"], found["line"]) == ("ask", "error", 10)
    assert "timeout" in found["fix"]
    shown = cli("deploy", refund_yaml)
    assert shown.code == 1
    assert "not deployed" in shown.out
    assert cli("check", refund_yaml).code == 1
    assert cli("run", "refund").code != 0


@pytest.mark.covers("CV-46")
def test_dry_run_and_no_activate_leave_the_current_version_alone(
    cli: Cli, refund_yaml: str, other_yaml: str
) -> None:
    dry = cli("deploy", refund_yaml, "--dry-run", "--json")
    assert (dry.code, dry.json["stored"]) == (0, False)
    assert cli("flows", "document", "refund").code == 2
    first = cli("deploy", refund_yaml, "--json").json["version"]
    second = cli("deploy", other_yaml, "--no-activate", "--json")
    assert second.json["current"] is False
    assert cli("flows", "document", "refund").out == REFUND
    assert cli("flows", "activate", "refund", second.json["version"]).code == 0
    assert cli("flows", "document", "refund").out == OTHER
    shown = cli("flows", "document", "refund", "--version", first, "--format", "json", "--json")
    assert (shown.json["version"], shown.json["format"]) == (first, "json")
    assert cli("flows", "activate", "refund", "canvas-ffffff").code == 2


@pytest.mark.covers("CV-46", "CV-45")
def test_two_files_are_compared_by_node_with_both_values(
    cli: Cli, refund_yaml: str, other_yaml: str, tmp_path: Path
) -> None:
    found = cli("diff", refund_yaml, other_yaml, "--json")
    assert found.code == 0
    [node] = found.json["nodes"]
    assert (node["id"], node["changes"][0]["after"]) == ("ask", "Pay {{amount}} back?")
    shown = cli("diff", refund_yaml, other_yaml).out
    assert "~ ask" in shown
    assert "Refund {{amount}}?" in shown
    assert "one version" in cli("diff", refund_yaml, refund_yaml).out
    broken = tmp_path / "broken.yaml"
    broken.write_text("nodes: [")
    assert cli("diff", refund_yaml, str(broken)).code == 1
    assert cli("diff", refund_yaml, str(broken), "--json").json["valid"] is False
    assert cli("diff", refund_yaml, "3fa9c1").code == 2


@pytest.mark.covers("CV-46")
def test_deploy_checks_the_functions_that_it_is_given(cli: Cli, refund_yaml: str, tmp_path: Path) -> None:
    text = 'type: set, config: {values: {paid: "{{amount}}"}}'
    Path(refund_yaml).write_text(REFUND.replace(text, "type: python, config: {function: pay}"))
    warned = cli("deploy", refund_yaml, "--dry-run", "--json")
    assert (warned.code, [each["rule"] for each in warned.json["problems"]]) == (0, ["function-missing"])
    functions = tmp_path / "deploy_functions.py"
    functions.write_text("def pya():\n    return 1\n")
    refused = cli("deploy", refund_yaml, "--functions", str(functions), "--json")
    assert refused.code == 1
    assert refused.json["problems"][0]["rule"] == "function-unknown"


@pytest.mark.covers("CV-46")
@pytest.mark.parametrize("words", [["deploy"], ["deploy", "flow.py"], ["deploy", "nowhere.yaml"]])
def test_deploy_is_used_wrongly(cli: Cli, words: list[str]) -> None:
    assert cli(*words).code == 2


CODE = """\
from holdfast import Flow

flow = Flow("coded", effect="pure")


@flow.node
async def work(s: dict) -> dict:
    return {}
"""


def test_module_comes_before_a_document_of_its_name_and_the_command_says_so(
    cli: Cli, refund_yaml: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "refund_of_both"
    Path(refund_yaml).write_text(REFUND.replace("name: refund", f"name: {name}"))
    assert cli("deploy", refund_yaml).code == 0
    assert cli("run", name, "--input", '{"amount": 1}').code == 3  # it waits for a person
    (tmp_path / f"{name}.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    said = cli("run", name, "--json")
    assert (said.code, said.json["status"]) == (0, "completed")
    assert f"{name}@current" in said.err
    assert cli("run", f"{name}@current", "--input", '{"amount": 1}').code == 3


@pytest.mark.covers("CV-46")
def test_graph_draws_the_current_version_or_the_one_that_is_named(cli: Cli, refund_yaml: str) -> None:
    assert cli("deploy", refund_yaml).code == 0
    newer = Path(refund_yaml).with_name("newer.yaml")
    newer.write_text(REFUND.replace("done", "finished"))
    sent = cli("deploy", str(newer), "--no-activate", "--json").json
    assert "finished" not in cli("graph", "refund").out
    assert "finished" in cli("graph", f"refund@{sent['version']}").out
    assert cli("graph", "refund@canvas-ffffff").code == 2


@pytest.mark.covers("CV-46")
def test_two_documents_are_drawn_in_one_picture(cli: Cli, refund_yaml: str, tmp_path: Path) -> None:
    changed, place = tmp_path / "changed.yaml", tmp_path / "both.svg"
    changed.write_text(REFUND.replace("id: done", "id: closed").replace("target: done", "target: closed"))
    drawn = cli("diff", refund_yaml, str(changed), "--svg", str(place), "--graph")
    assert drawn.code == 0, drawn.err
    assert "+ closed" in drawn.out
    assert "- done" in drawn.out
    assert "╭" in drawn.out or "+--" in drawn.out
    assert "closed" in place.read_text()
    assert cli("diff", refund_yaml, str(changed), "--svg", "-").out.startswith("<svg")


def test_document_that_was_run_with_functions_has_its_code_in_the_store(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("def twice(n: int) -> int:\n    return 2 * n\n")
    document = tmp_path / "twice.yaml"
    document.write_text(
        'holdfast: "1.0"\nname: twice\nnodes:\n  - {id: a, type: start}\n'
        "  - {id: m, type: python, config: {function: twice, args: {n: 2}, effect: pure}}\n"
        "  - {id: z, type: end}\nedges: [{source: a, target: m}, {source: m, target: z}]\n"
    )
    ran = cli("run", str(document), "--functions", str(tmp_path / "helpers.py"))
    assert ran.code == 0, ran.err
    assert "cannot be loaded" not in cli("flows", "list").out


def test_code_that_ran_once_does_not_take_the_name_of_a_deployed_document(
    cli: Cli, refund_yaml: str, tmp_path: Path
) -> None:
    assert cli("deploy", refund_yaml).code == 0
    (tmp_path / "other_refund.py").write_text(
        "from holdfast import Flow\n\nrefund = Flow('refund')\n\n\n@refund.node(effect='pure')\n"
        "def pay() -> None: ...\n"
    )
    assert cli("run", str(tmp_path / "other_refund.py")).code == 0
    again = cli("deploy", refund_yaml)
    assert (again.code, "known already" in again.out) == (0, True), again.err


def test_wait_for_a_message_is_shown_with_how_to_publish_one(cli: Cli, tmp_path: Path) -> None:
    document = tmp_path / "wait.yaml"
    document.write_text(
        'holdfast: "1.0"\nname: wait\nnodes:\n  - {id: a, type: start}\n'
        "  - {id: m, type: queue_consume, config: {scope: shop, queue: work}}\n"
        "  - {id: z, type: end}\nedges: [{source: a, target: m}, {source: m, target: z}]\n"
    )
    shown = cli("run", str(document)).out
    assert "queue publish shop/work" in shown
    assert "holdfast answer" not in shown
