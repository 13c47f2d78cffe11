"""`interface`: the checkpoint store of the graph document in a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, given

pytestmark = pytest.mark.covers("SAFE-READ-06")


def test_every_method_of_the_store_is_a_command(cli: Cli, refund: str, tmp_path: Path) -> None:
    run = cli("run", refund, "--input", given(80), "--json").json["id"]
    last = cli("interface", "load", run[:8]).json
    assert (last["runId"], last["nodeId"]) == (run, "")
    listed = cli("interface", "list", last["graphId"], "--json").items
    assert [each["id"] for each in listed] == [each["id"] for each in cli("checkpoints", run, "--json").items]
    assert last["id"] in cli("interface", "list", last["graphId"], "--run", run[:8]).out
    assert cli("interface", "get", last["id"], "--json").json == last
    assert cli("interface", "load", run, "--node", "assess").json["nodeId"] == "assess"
    file = tmp_path / "checkpoint.json"
    file.write_text(json.dumps(last))
    assert cli("interface", "save", f"@{file}").code == 0
    file.write_text(json.dumps({**last, "visitedNodes": []}))
    changed = cli("interface", "save", f"@{file}")
    assert changed.code != 0
    assert "fork" in changed.err
    oldest = listed[-1]["id"]
    patch = json.dumps({"scratch": {"amount": 5}})
    forked = cli("interface", "fork", oldest, "--patch", patch, "--json").json["runId"]
    assert cli("interface", "load", forked).json["state"]["scratch"]["amount"] == 5
    assert cli("interface", "delete", oldest).code == 0
    assert cli("interface", "get", oldest).code != 0
    assert cli("interface", "delete", last["id"]).code != 0


@pytest.mark.parametrize(
    "words",
    [
        ("get", "nothing"),
        ("load", "nothing"),
        ("fork", "nothing"),
        ("save", "[]"),
        ("save", "{}"),
        ("save", "{"),
    ],
)
def test_what_is_not_there_is_named(cli: Cli, refund: str, words: tuple[str, str]) -> None:
    cli("run", refund, "--input", given(80))
    refused = cli("interface", *words)
    assert refused.code not in (0, 1)
    assert refused.err


def test_graph_without_checkpoints_has_none(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(80))
    assert cli("interface", "list", "nothing").out == "No checkpoints of this graph.\n"
