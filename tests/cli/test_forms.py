"""A form at the command line: shown, answered, refused."""

from __future__ import annotations

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
