"""A form at the command line: shown, answered, refused."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

FLOW = """
from holdfast import Flow

pay = Flow("pay", effect="pure")
pay.start(pay.hold("review", prompt="Pay?", into="payment", sections=[
    {"type": "context", "title": "Customer", "content": "{{customer}}"},
    {"type": "input", "field": "amount", "kind": "currency", "currency": "EUR", "default": "{{amount}}",
     "extras": {"confidence": "87%"}},
    {"type": "input", "field": "note", "label": "Why", "required": True},
    {"type": "input", "field": "way", "kind": "radio", "options": ["card", "bank"]},
    {"type": "decision", "options": ["approve", "reject"]},
]))
"""


@pytest.fixture
def pay(tmp_path: Path) -> str:
    file = tmp_path / "pay.py"
    file.write_text(FLOW)
    return str(file)


@pytest.mark.covers("HOLD-FORM-01", "RS-4", "FM-8")
def test_form_is_shown_and_its_answer_checked_and_bound(cli: Cli, pay: str) -> None:
    said = cli("run", pay, "--input", '{"customer": "Ada", "amount": 100}').out
    assert "Customer: Ada" in said
    assert "  amount (currency, EUR, 87% sure) = 100" in said
    assert "note: Why (text, required)" in said
    assert "way (radio of card | bank)" in said
    commands = [shlex.split(line)[1:] for line in said.splitlines() if line.startswith("  holdfast")]
    run = commands[0][1]
    assert commands[0][2:5] == ["approve", "--data", '{"note":"..."}']

    refused = cli("answer", run, "approve", "--data", '{"amount": "x", "notes": "y"}')
    assert refused.code == 2
    for line in (
        "amount: is not an amount of money",
        "note: is missing",
        "notes: is not a field of this form",
    ):
        assert line in refused.err

    (hold,) = cli("show", run, "--json").json["holds"]
    assert (hold["status"], len(hold["schema"]["x-form"]["sections"])) == ("pending", 5)
    assert hold["schema"]["properties"]["amount"]["default"] == 100
    assert "x-form" in hold["schema"]

    done = cli(
        "answer", run, "approve", "--data", '{"amount": "99.50", "note": "ok"}', "--resume", "--json"
    ).json
    assert done["state"]["payment"] == {"amount": "99.50", "note": "ok", "way": None, "decision": "approve"}
    result = done["state"]["decision_result"]
    assert result["edited_fields"] == [{"field": "amount", "original": "100", "final": "99.50"}]
    assert result["request_hash"] == hold["request_hash"]


@pytest.mark.covers("SAFE-READ-10", "WB-13")
def test_decided_form_is_shown_with_its_values_and_edits(cli: Cli, pay: str) -> None:
    run = cli("run", pay, "--input", '{"customer": "Ada", "amount": 100}', "--json").json["id"]
    hold = cli("holds", "list", "--json").items[0]["id"]
    assert cli("holds", "resolve", hold, "approve", "--data", '{"amount": "90"}').code == 2
    data = '{"amount": "90", "note": "agreed", "way": "bank"}'
    assert cli("holds", "resolve", hold, "approve", "--data", data).code == 0
    shown = cli("holds", "show", hold).out
    assert "Why = agreed" in shown
    assert "Way = bank" in shown
    assert "changed; proposed was" in next(line for line in shown.splitlines() if "Amount" in line)
    assert "(text, required)" not in shown, "it asks for nothing any more"
    values = {each["field"]: each for each in cli("holds", "show", hold, "--json").json["values"]}
    assert (values["amount"]["edited"], values["note"]["value"]) == (True, "agreed")
    told = cli("holds", "history", hold).out
    assert "sent an answer that did not fit: a field was missing or wrong" in told
    assert "not accepted" not in told
    assert re.search(r"approved with .*[Aa]mount 90 \(proposed 100\).*, on the command line", told), told
    assert cli("show", run).code == 0
