"""Examples run as they are, and the reference names what there is."""

from __future__ import annotations

import asyncio
import importlib
import re
import runpy
import sys
from pathlib import Path

import pytest

from holdfast.cli.main import Exit
from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize(
    ("name", "code", "part"),
    [
        ("refund", 0, "paid 80"),
        ("research", 0, "LIBRARY"),
        ("draft", 0, "More about harbours, …"),
        ("approvals", 3, "Is a desk for 480.00 EUR an expense of ours?"),
        ("onboarding", 3, "What is the mail address of Ada?"),
        ("agent", 3, "The agent wants to run refund: order A17, amount 250. Allow it?"),
    ],
)
def test_example_runs_from_the_command_line(cli: Cli, name: str, code: int, part: str) -> None:
    given = ["--input", '{"order_id": "A", "customer": "c", "amount": 80}'] if name == "refund" else []

    said = cli("run", str(EXAMPLES / f"{name}.py"), *given)

    assert said.code == code, said.err
    assert part in said.out


def test_onboarding_asks_once_and_opens_one_account(cli: Cli) -> None:
    started = cli("run", str(EXAMPLES / "onboarding.py"))
    run = next(line.split()[1] for line in started.out.splitlines() if line.startswith("run "))

    done = cli("answer", run, "ada@example.org", "--resume")

    assert done.code == 0
    assert (started.out + done.out).count("(opening an account for Ada)") == 1
    assert "(mail to ada@example.org)" in done.out


@pytest.mark.covers("TOOL-AGENT-07")
def test_agent_tells_machines_what_is_to_be_approved(cli: Cli) -> None:
    (hold,) = cli("run", str(EXAMPLES / "agent.py"), "--json").json["holds"]

    assert hold["context"]["entity_id"] == "call_2_1"
    assert hold["context"]["arguments"] == {"order_id": "A17", "amount": 250}
    assert hold["schema"]["properties"]["arguments"]["required"] == ["order_id", "amount"]


def test_agent_goes_on_with_what_was_approved(cli: Cli) -> None:
    started = cli("run", str(EXAMPLES / "agent.py"))
    run = next(line.split()[1] for line in started.out.splitlines() if line.startswith("run "))

    less = '{"modifications": {"arguments": {"amount": 80}}}'
    done = cli("answer", run, "approve", "--data", less, "--resume")

    assert done.code == 0
    assert "refunded 80 for A17" in done.out
    listed = " ".join(cli("checkpoints", run).out.split())
    assert all(f"turn {number}" in listed for number in (1, 2, 3))


def test_background_example_completes_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    background = importlib.import_module("background")

    asyncio.run(background.main(f"sqlite:{tmp_path / 'b.db'}"))

    assert "run.completed" in capsys.readouterr().out


def test_approvals_example_is_signed_by_three_people(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    approvals = importlib.import_module("approvals")

    asyncio.run(approvals.main())

    assert capsys.readouterr().out == "450.00 EUR for a desk\n"


def test_every_example_is_listed() -> None:
    listed = set(re.findall(r"\((\w+\.py)\)", (EXAMPLES / "README.md").read_text()))
    assert listed == {file.name for file in EXAMPLES.glob("*.py")}


@pytest.mark.covers("TOOL-CLI-28")
def test_reference_names_every_command_option_and_exit_code(cli: Cli) -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()
    commands = re.findall(r"^  ([\w-]+)  ", cli("--help").out.partition("Runs:")[2], re.MULTILINE)

    assert len(commands) >= 50
    assert [
        name for name in commands if f"`holdfast {name} " not in page and f"`holdfast {name}`" not in page
    ] == []
    assert [code for code in Exit if f"| {int(code)} |" not in page] == []


@pytest.mark.covers("USERS-EFFECT")
def test_one_effect_happens_once_after_its_approval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["one_effect.py"])
    runpy.run_path(str(EXAMPLES / "one_effect.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert said.count("the bank pays 250") == 1
    assert said.count("receipt of ") == 2
