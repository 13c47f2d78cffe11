"""The documents in `examples` run as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

EXAMPLES = Path(__file__).parents[2] / "examples"
FUNCTIONS = ("--functions", str(EXAMPLES / "bank_functions.py"))


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_example_has_no_problem(cli: Cli, name: str) -> None:
    said = cli("check", str(EXAMPLES / name), *FUNCTIONS, "--json")
    assert said.code == 0
    [found] = said.json["files"]
    assert found["diagnostics"] == []
    assert found["version"].startswith("canvas-")


def test_refund_asks_above_its_limit_and_pays_what_was_approved(cli: Cli) -> None:
    waiting = cli(
        "run",
        str(EXAMPLES / "refund.yaml"),
        *FUNCTIONS,
        "--input",
        '{"order": "A17", "amount": 250}',
        "--json",
    )
    assert waiting.code == 3
    assert cli("answer", waiting.json["id"], "approve", "--data", '{"paid": 200}').code == 0
    ended = cli("resume", waiting.json["id"], "--json")
    assert ended.json["status"] == "completed"
    assert ended.json["artifacts"] == {"receipt": "R-A17"}
    assert ended.json["state"]["pay"]["amount"] == 200


def test_orders_map_and_loop_until_they_ship(cli: Cli) -> None:
    given = '{"items": [{"price": 10}, {"price": 5}]}'
    run = cli("run", str(EXAMPLES / "orders.yaml"), *FUNCTIONS, "--input", given, "--json")
    for decision in ("again", "ship"):
        assert cli("answer", run.json["id"], decision).code == 0
        run = cli("resume", run.json["id"], "--json")
    assert run.json["artifacts"] == {"prices": [{"cost": 12.0}, {"cost": 6.0}], "tries": ["again", "ship"]}
