"""`graph`: flows and runs, drawn."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Cli, given
from tests.cli.flows import write_news


@pytest.mark.covers("TOOL-CLI-24", "TOOL-DRAW-05")
def test_graph_draws_a_flow_from_its_file(cli: Cli, refund: str) -> None:
    said = cli("graph", refund)

    assert said.code == 0
    for words in (
        "│ assess  │",
        "│ approve ☺ │",
        "│ pay │",
        "amount > 100",
        "otherwise",
        "▼",
        "☺ asks a person",
    ):
        assert words in said.out


@pytest.mark.covers("TOOL-CLI-24")
def test_graph_draws_svg_to_a_file_and_to_stdout(cli: Cli, refund: str, tmp_path: Path) -> None:
    to_file = cli("graph", refund, "--svg", "refund.svg")
    to_stdout = cli("graph", refund, "--svg", "-")

    drawn = (tmp_path / "refund.svg").read_text("utf-8")
    assert (to_file.out, to_file.err) == ("", "Drawn to refund.svg.\n")
    assert to_stdout.out == drawn
    assert ElementTree.fromstring(drawn).tag.endswith("svg")


@pytest.mark.covers("TOOL-CLI-24")
def test_graph_draws_a_run_and_a_stored_flow_without_code(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    Path(refund).unlink()

    of_run, of_flow = cli("graph", run[:8]).out, cli("graph", "refund").out

    assert "✓ assess" in of_run
    assert "⏸ approve ☺" in of_run
    assert "✓" not in of_flow
    assert "approve ☺" in of_flow


@pytest.mark.covers("TOOL-CLI-24", "TOOL-CLI-25")
def test_graph_tells_machines_nodes_edges_and_what_is_inside(cli: Cli, tmp_path: Path) -> None:
    file = write_news(tmp_path, f"news_{abs(hash(str(tmp_path)))}")

    result = cli("graph", f"{file}:news", "--json").json

    nodes = {node["id"]: node for node in result["nodes"]}
    assert (nodes["ask"]["shape"], nodes["each"]["shape"]) == ("hold", "map")
    assert [node["id"] for node in nodes["desked"]["inside"]["nodes"]] == ["__START__", "check"]
    edge = next(e for e in result["edges"] if e["target"] == "publish")
    assert (edge["source"], edge["label"], edge["look"]) == ("ask", "decision == 'yes'", "conditional")


@pytest.mark.covers("TOOL-CLI-24")
def test_graph_says_what_it_takes_when_nothing_has_that_name(cli: Cli, refund: str) -> None:
    nowhere = cli("graph", "nothing_like_it")
    cli("run", refund, "--input", given(80))
    in_store = cli("graph", "nothing_like_it")

    for said in (nowhere, in_store):
        assert said.code == 2
        assert "neither a run nor a flow" in said.err
    assert cli("graph", refund, "--svg", "no/such/folder.svg").code == 2


@pytest.mark.covers("TOOL-CLI-24")
def test_graph_becomes_an_outline_where_there_is_no_room(
    cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "22")

    drawn = cli("graph", refund).out

    assert "╭" not in drawn
    assert "assess  → approve" in drawn
