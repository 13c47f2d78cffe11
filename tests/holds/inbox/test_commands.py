"""`holdfast holds`: everything that can be done with a hold, typed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_completion import _asked as asked

FLOW = """
from holdfast import Flow

refund = Flow("refund", effect="pure")
refund.hold(
    "approve",
    prompt="Refund {{amount}} to {{customer}}?",
    options=["approve", {"id": "reject", "label": "No", "requires_comment": True}],
    assignee="group:finance",
    priority="high",
    timeout="2d",
    tags=["money"],
)
paper = Flow("paper", effect="pure")
paper.hold(
    "check", prompt="Is it signed?",
    sections=[
        {"type": "input", "field": "contract", "kind": "file", "required": True,
         "accept": ["application/pdf"]},
        {"type": "decision", "field": "decision", "options": ["approve", "reject"]},
    ],
)
signed = Flow("signed", effect="pure")
signed.hold(
    "sign", prompt="Sign?", options=["yes", "no"],
    approval={"mode": "quorum", "need": 2, "of": ["user:dana@acme", "user:sam@acme", "user:kim@acme"]},
)
"""
pytestmark = pytest.mark.covers("HOLD-HAND-02")


class HoldsCli:
    """The command line on a store with some holds."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self.cli = cli
        self.file = folder / f"refunds_{abs(hash(str(folder)))}.py"
        self.file.write_text(FLOW)

    def asks(self, amount: int = 250, flow: str = "refund", **more: Any) -> str:
        """The id of a new hold."""
        given = json.dumps({"amount": amount, "customer": "c-9", **more})
        said = self.cli("run", f"{self.file}:{flow}", "--input", given, "--by", "user:ian@acme", "--json")
        return said.json["holds"][0]["id"]

    def __call__(self, *words: str) -> Any:
        """What a command of `holds` answers in JSON; it must work."""
        said = self.cli("holds", *words, "--json")
        assert said.code == 0, said.err
        return said.json

    def refused(self, *words: str, code: int = 2) -> str:
        said = self.cli("holds", *words)
        assert said.code == code, said.out
        return said.err


@pytest.fixture
def holds_cli(cli: Cli, tmp_path: Path) -> HoldsCli:
    return HoldsCli(cli, tmp_path)


def test_list_shows_what_waits_by_its_words(holds_cli: HoldsCli) -> None:
    hold = holds_cli.asks(250)
    holds_cli.asks(90, "signed")

    said = holds_cli.cli("holds", "list", "flow:refund", "priority>=high")

    head, row = said.out.splitlines()
    assert head.split() == ["id", "priority", "title", "flow", "for", "age", "due"]
    assert row.startswith(f"{hold[:8]}  high      Refund 250 to c-9?  refund  group:finance")
    assert re.search(r"due in 2 days$", row)
    assert len(holds_cli("list")["items"]) == 2
    assert holds_cli("list", "nothing like it")["items"] == []
    assert "unknown priority 'urgent'" in holds_cli.refused("list", "priority:urgent")


def test_list_goes_on_where_a_page_ended(holds_cli: HoldsCli) -> None:
    ids = [holds_cli.asks(amount) for amount in (1, 2, 3)]

    said = holds_cli.cli("holds", "list", "--limit", "2")
    words = said.err.partition("More: holdfast ")[2].split()

    assert holds_cli.cli(*words).out.split()[7] == ids[2][:8]


def test_show_says_all_and_how_to_decide_and_what_is_typed_then_works(holds_cli: HoldsCli) -> None:
    hold = holds_cli.asks()

    said = holds_cli.cli("holds", "show", hold[:6])

    assert said.out.startswith("Refund 250 to c-9?")
    assert "why       flow refund asks group:finance" in said.out
    commands = [line.split() for line in said.out.splitlines() if line.startswith("  holdfast holds resolve")]
    assert commands[1][3:] == [hold[:8], "reject", "-m", "'WHY'"]
    assert holds_cli.cli(*commands[0][1:]).code == 0
    assert "resolved by user:local" in holds_cli.cli("holds", "show", hold).out


def test_resolve_is_made_once_and_names_the_winner_to_the_second(holds_cli: HoldsCli) -> None:
    hold = holds_cli.asks()

    done = holds_cli("resolve", hold[:8], "approve", "--as", "user:dana@acme", "-m", "Within limits.")

    assert (done["status"], done["resolved_by"]) == ("resolved", "user:dana@acme")
    assert done["resolution"]["comment"] == "Within limits."
    again = holds_cli("resolve", hold, "approve", "--as", "dana@acme", "-m", "Within limits.")
    assert again["idempotent_replay"] is True
    assert "'approve' by user:dana@acme" in holds_cli.refused("resolve", hold, "reject", "-m", "no")


def test_resolve_is_refused_and_the_hold_stays_open_when_it_does_not_fit(holds_cli: HoldsCli) -> None:
    hold = holds_cli.asks()

    assert "approve, reject" in holds_cli.refused("resolve", hold, "perhaps")
    assert "requires a comment" in holds_cli.refused("resolve", hold, "reject")
    assert "version" in holds_cli.refused("resolve", hold, "approve", "--if-version", "7")
    assert holds_cli("show", hold)["status"] == "pending"
    assert holds_cli("draft", hold)["decision"] == "approve"


def test_resolve_can_be_taken_back_when_it_was_placed(holds_cli: HoldsCli) -> None:
    hold = holds_cli.asks()

    placed = holds_cli("resolve", hold, "approve", "--undo")
    taken = holds_cli("undo", hold)

    assert (placed["status"], placed["placed_by"]) == ("pending", "user:local")
    assert (taken["status"], taken["placed_by"]) == ("pending", None)


@pytest.mark.covers("RS-10")
def test_vote_counts_for_each_person(holds_cli: HoldsCli) -> None:
    hold = holds_cli.asks(flow="signed")

    said = holds_cli.cli("holds", "vote", hold, "yes", "--as", "user:dana@acme")

    assert "Your vote is counted" in said.out
    assert "2 of user:dana@acme" in said.out
    assert "voted" in holds_cli.refused("vote", hold, "no", "--as", "user:dana@acme")
    assert holds_cli("show", hold)["votes"] == ["user:dana@acme: yes"]
    assert "voted     user:dana@acme: yes" in holds_cli.cli("holds", "show", hold).out
    assert holds_cli("vote", hold, "yes", "--as", "user:sam@acme")["status"] == "resolved"


@pytest.mark.covers("HOLD-AUTH-01")
def test_as_has_the_rights_of_that_person_only_when_there_is_a_directory(
    holds_cli: HoldsCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = holds_cli.asks()
    (tmp_path / "people.json").write_text(
        json.dumps(
            {
                "people": [{"id": "dana", "email": "dana@acme"}, {"id": "eve", "email": "eve@acme"}],
                "groups": {"finance": ["dana"]},
            }
        )
    )
    monkeypatch.setenv("HOLDFAST_DIRECTORY", str(tmp_path / "people.json"))

    assert "not to user:eve@acme" in holds_cli.refused("resolve", hold, "approve", "--as", "user:eve@acme")
    assert holds_cli("list", "--as", "user:eve@acme")["items"] == []
    assert "not to user:eve@acme" in holds_cli.refused("evidence", hold, "--as", "user:eve@acme")
    assert len(holds_cli("list", "--view", "groups", "--as", "user:dana@acme")["items"]) == 1
    assert (
        holds_cli("resolve", hold, "approve", "--as", "user:dana@acme")["resolution"]["authority"]
        == "assignee"
    )
    assert "not one person" in holds_cli.refused("show", hold, "--as", "group:finance")
    assert "cannot be used with --as" in holds_cli.refused("show", hold, "--as", "system:expiry")


def test_a_hold_is_handed_on_claimed_and_freed(holds_cli: HoldsCli) -> None:
    hold = holds_cli.asks()

    assert holds_cli("reassign", hold, "user:sam@acme", "--due", "5d")["assignee"] == "user:sam@acme"
    assert "is unassigned now" in holds_cli.cli("holds", "reassign", hold, "").out
    holds_cli("reassign", hold, "user:sam@acme")
    assert holds_cli("claim", hold, "--for", "1h", "--as", "user:sam@acme")["claimed_by"] == "user:sam@acme"
    assert "working on this hold" in holds_cli.refused("resolve", hold, "approve", "--as", "user:eve@acme")
    assert holds_cli("release", hold)["claimed_by"] is None
    later = holds_cli("extend", hold, "2090-01-31T17:00Z")
    assert later["expires_at"] == "2090-01-31T17:00:00Z"
    assert "is not a time" in holds_cli.refused("extend", hold, "tomorrow")


def test_people_talk_about_a_hold(holds_cli: HoldsCli) -> None:
    hold = holds_cli.asks()

    holds_cli("comment", hold, "The invoice is in the post.", "--as", "user:dana@acme")
    assert holds_cli("ask-back", hold, "Which invoice?", "--as", "user:dana@acme")["paused_at"]
    assert holds_cli("reply", hold, "Number 42.", "--as", "user:ian@acme")["paused_at"] is None

    holds_cli("ask-back", hold, "Sure?", "--as", "user:dana@acme")
    assert holds_cli("ask-back", hold, "--withdraw", "--as", "user:dana@acme")["paused_at"] is None
    assert "--withdraw" in holds_cli.refused("ask-back", hold)

    said = holds_cli.cli("holds", "show", hold).out
    assert "user:dana@acme says, " in said
    assert "user:dana@acme asks user:ian@acme, " in said
    assert "user:ian@acme replies, " in said
    assert len(holds_cli("list", "has:comment")["items"]) == 1
    lines = [each["action"] for each in holds_cli("history", hold)["items"]]
    assert lines[:4] == ["created", "commented", "asked_back", "replied"]


def test_has_comment_finds_it_behind_those_that_have_none(holds_cli: HoldsCli) -> None:
    ids = [holds_cli.asks(amount) for amount in (1, 2, 3)]
    holds_cli("comment", ids[2], "Here.")

    found = holds_cli("list", "has:comment", "--limit", "1")

    assert [each["id"] for each in found["items"]] == [ids[2]]


def test_what_is_ones_own_is_in_ones_own_lists(holds_cli: HoldsCli) -> None:
    hold = holds_cli.asks()
    holds_cli("reassign", hold, "user:local")

    assert len(holds_cli("list", "--view", "mine")["items"]) == 1
    holds_cli("snooze", hold, "4h")
    assert holds_cli("list", "--view", "mine")["items"] == []
    assert len(holds_cli("list", "--view", "snoozed")["items"]) == 1
    holds_cli("snooze", hold, "--off")
    holds_cli("watch", hold)
    assert len(holds_cli("list", "--view", "watching")["items"]) == 1
    holds_cli("watch", hold, "--off")
    assert holds_cli("list", "--view", "watching")["items"] == []
    assert holds_cli("draft", hold, "approve", "-m", "so far")["comment"] == "so far"
    assert holds_cli("draft", hold, "--delete") is None
    assert "give a time" in holds_cli.refused("snooze", hold)


@pytest.mark.covers("HOLD-LIFE-09")
def test_bulk_says_what_would_be_and_then_does_it(holds_cli: HoldsCli) -> None:
    ids = [holds_cli.asks(amount) for amount in (1, 2)]
    other = holds_cli.asks(flow="signed")

    preview = holds_cli.cli("holds", "bulk", "approve", *ids, other)
    assert preview.code == 0
    assert preview.out.startswith("2 would be decided 'approve'; 1 left out")
    assert holds_cli("show", ids[0])["status"] == "pending"

    said = holds_cli.cli("holds", "bulk", "approve", "--query", "tag:money", "--yes")
    assert (said.code, said.out) == (0, "2 decided 'approve'.\n")
    assert holds_cli("show", ids[1])["status"] == "resolved"
    assert "one of the two" in holds_cli.refused("bulk", "approve")


def test_cancel_evidence_and_figures(holds_cli: HoldsCli, tmp_path: Path) -> None:
    hold, other = holds_cli.asks(), holds_cli.asks()

    gone = holds_cli("cancel", hold, "--reason", "ordered twice")
    holds_cli("resolve", other, "approve")
    holds_cli("evidence", other, "-o", "pack.json")

    assert (gone["status"], gone["cancel_reason"]) == ("cancelled", "ordered twice")
    assert json.loads((tmp_path / "pack.json").read_text())["digest"]
    assert holds_cli("metrics")["holds"] == 2
    assert "half within" in holds_cli.cli("holds", "metrics", "flow:refund").out


def test_a_hold_is_not_found_or_ambiguous_in_words(holds_cli: HoldsCli) -> None:
    holds_cli.asks()

    assert "neither a hold nor a run" in holds_cli.refused("show", "ffff0000")
    assert "there is no view 'yours'" in holds_cli.refused("list", "--view", "yours")


def test_a_prompt_cannot_move_the_terminal(holds_cli: HoldsCli) -> None:
    holds_cli.asks(customer="\x1b[2Jeve‮")

    said = holds_cli.cli("holds", "list").out

    assert "\x1b" not in said
    assert "‮" not in said


@pytest.mark.covers("TOOL-CLI-27")
def test_holds_and_views_are_completed(holds_cli: HoldsCli, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = holds_cli.asks()

    assert asked(holds_cli.cli, monkeypatch, "holdfast holds show ") == [hold]
    assert asked(holds_cli.cli, monkeypatch, f"holdfast holds resolve {hold[:5]}") == [hold]
    assert asked(holds_cli.cli, monkeypatch, "holdfast holds list --view un") == ["unassigned"]


@pytest.mark.covers("HOLD-FORM-03")
def test_a_file_is_attached_and_decided_with(holds_cli: HoldsCli, tmp_path: Path) -> None:
    hold = holds_cli.asks(flow="paper")
    (tmp_path / "contract.pdf").write_bytes(b"%PDF-1.7 signed")
    (tmp_path / "note.txt").write_text("hello")

    assert "text/plain" in holds_cli.refused("attach", hold, "contract", "note.txt")
    kept = holds_cli("attach", hold, "contract", "contract.pdf")
    assert "the form has errors" in holds_cli.refused("resolve", hold, "approve")
    done = holds_cli("resolve", hold, "approve", "--draft")

    assert done["resolution"]["response_data"]["contract"] == kept
    assert [each["name"] for each in holds_cli("files", hold, "--save", "papers")["items"]] == [
        "contract.pdf"
    ]
    assert (tmp_path / "papers" / "contract.pdf").read_bytes() == b"%PDF-1.7 signed"
    assert "cannot be written" in holds_cli.refused("files", hold, "--save", "papers")
