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


class Hands:
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
def hands(cli: Cli, tmp_path: Path) -> Hands:
    return Hands(cli, tmp_path)


def test_list_shows_what_waits_by_its_words(hands: Hands) -> None:
    hold = hands.asks(250)
    hands.asks(90, "signed")

    said = hands.cli("holds", "list", "flow:refund", "priority>=high")

    head, row = said.out.splitlines()
    assert head.split() == ["id", "priority", "title", "flow", "for", "age", "due"]
    assert row.startswith(f"{hold[:8]}  high      Refund 250 to c-9?  refund  group:finance")
    assert re.search(r"due in 2 days$", row)
    assert len(hands("list")["items"]) == 2
    assert hands("list", "nothing like it")["items"] == []
    assert "unknown priority 'urgent'" in hands.refused("list", "priority:urgent")


def test_list_goes_on_where_a_page_ended(hands: Hands) -> None:
    ids = [hands.asks(amount) for amount in (1, 2, 3)]

    said = hands.cli("holds", "list", "--limit", "2")
    words = said.err.partition("More: holdfast ")[2].split()

    assert hands.cli(*words).out.split()[7] == ids[2][:8]


def test_show_says_all_and_how_to_decide_and_what_is_typed_then_works(hands: Hands) -> None:
    hold = hands.asks()

    said = hands.cli("holds", "show", hold[:6])

    assert said.out.startswith("Refund 250 to c-9?")
    assert "why       flow refund asks group:finance" in said.out
    commands = [line.split() for line in said.out.splitlines() if line.startswith("  holdfast holds resolve")]
    assert commands[1][3:] == [hold[:8], "reject", "-m", "'WHY'"]
    assert hands.cli(*commands[0][1:]).code == 0
    assert "resolved by user:local" in hands.cli("holds", "show", hold).out


def test_resolve_is_made_once_and_names_the_winner_to_the_second(hands: Hands) -> None:
    hold = hands.asks()

    done = hands("resolve", hold[:8], "approve", "--as", "user:dana@acme", "-m", "Within limits.")

    assert (done["status"], done["resolved_by"]) == ("resolved", "user:dana@acme")
    assert done["resolution"]["comment"] == "Within limits."
    again = hands("resolve", hold, "approve", "--as", "dana@acme", "-m", "Within limits.")
    assert again["idempotent_replay"] is True
    assert "'approve' by user:dana@acme" in hands.refused("resolve", hold, "reject", "-m", "no")


def test_resolve_is_refused_and_the_hold_stays_open_when_it_does_not_fit(hands: Hands) -> None:
    hold = hands.asks()

    assert "approve, reject" in hands.refused("resolve", hold, "perhaps")
    assert "requires a comment" in hands.refused("resolve", hold, "reject")
    assert "version" in hands.refused("resolve", hold, "approve", "--if-version", "7")
    assert hands("show", hold)["status"] == "pending"
    assert hands("draft", hold)["decision"] == "approve"


def test_resolve_can_be_taken_back_when_it_was_placed(hands: Hands) -> None:
    hold = hands.asks()

    placed = hands("resolve", hold, "approve", "--undo")
    taken = hands("undo", hold)

    assert (placed["status"], placed["placed_by"]) == ("pending", "user:local")
    assert (taken["status"], taken["placed_by"]) == ("pending", None)


@pytest.mark.covers("RS-10")
def test_vote_counts_for_each_person(hands: Hands) -> None:
    hold = hands.asks(flow="signed")

    said = hands.cli("holds", "vote", hold, "yes", "--as", "user:dana@acme")

    assert "Your vote is counted" in said.out
    assert "2 of user:dana@acme" in said.out
    assert "voted" in hands.refused("vote", hold, "no", "--as", "user:dana@acme")
    assert hands("show", hold)["votes"] == ["user:dana@acme: yes"]
    assert "voted     user:dana@acme: yes" in hands.cli("holds", "show", hold).out
    assert hands("vote", hold, "yes", "--as", "user:sam@acme")["status"] == "resolved"


@pytest.mark.covers("HOLD-AUTH-01")
def test_as_has_the_rights_of_that_person_only_when_there_is_a_directory(
    hands: Hands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = hands.asks()
    (tmp_path / "people.json").write_text(
        json.dumps(
            {
                "people": [{"id": "dana", "email": "dana@acme"}, {"id": "eve", "email": "eve@acme"}],
                "groups": {"finance": ["dana"]},
            }
        )
    )
    monkeypatch.setenv("HOLDFAST_DIRECTORY", str(tmp_path / "people.json"))

    assert "not to user:eve@acme" in hands.refused("resolve", hold, "approve", "--as", "user:eve@acme")
    assert hands("list", "--as", "user:eve@acme")["items"] == []
    assert "not to user:eve@acme" in hands.refused("evidence", hold, "--as", "user:eve@acme")
    assert len(hands("list", "--view", "groups", "--as", "user:dana@acme")["items"]) == 1
    assert (
        hands("resolve", hold, "approve", "--as", "user:dana@acme")["resolution"]["authority"] == "assignee"
    )
    assert "not one person" in hands.refused("show", hold, "--as", "group:finance")
    assert "cannot be used with --as" in hands.refused("show", hold, "--as", "system:expiry")


def test_a_hold_is_handed_on_claimed_and_freed(hands: Hands) -> None:
    hold = hands.asks()

    assert hands("reassign", hold, "user:sam@acme", "--due", "5d")["assignee"] == "user:sam@acme"
    assert "is unassigned now" in hands.cli("holds", "reassign", hold, "").out
    hands("reassign", hold, "user:sam@acme")
    assert hands("claim", hold, "--for", "1h", "--as", "user:sam@acme")["claimed_by"] == "user:sam@acme"
    assert "working on this hold" in hands.refused("resolve", hold, "approve", "--as", "user:eve@acme")
    assert hands("release", hold)["claimed_by"] is None
    later = hands("extend", hold, "2090-01-31T17:00Z")
    assert later["expires_at"] == "2090-01-31T17:00:00Z"
    assert "is not a time" in hands.refused("extend", hold, "tomorrow")


def test_people_talk_about_a_hold(hands: Hands) -> None:
    hold = hands.asks()

    hands("comment", hold, "The invoice is in the post.", "--as", "user:dana@acme")
    assert hands("ask-back", hold, "Which invoice?", "--as", "user:dana@acme")["paused_at"]
    assert hands("reply", hold, "Number 42.", "--as", "user:ian@acme")["paused_at"] is None

    hands("ask-back", hold, "Sure?", "--as", "user:dana@acme")
    assert hands("ask-back", hold, "--withdraw", "--as", "user:dana@acme")["paused_at"] is None
    assert "--withdraw" in hands.refused("ask-back", hold)

    said = hands.cli("holds", "show", hold).out
    assert "user:dana@acme says, " in said
    assert "user:dana@acme asks user:ian@acme, " in said
    assert "user:ian@acme replies, " in said
    assert len(hands("list", "has:comment")["items"]) == 1
    lines = [each["action"] for each in hands("history", hold)["items"]]
    assert lines[:4] == ["created", "commented", "asked_back", "replied"]


def test_has_comment_finds_it_behind_those_that_have_none(hands: Hands) -> None:
    ids = [hands.asks(amount) for amount in (1, 2, 3)]
    hands("comment", ids[2], "Here.")

    found = hands("list", "has:comment", "--limit", "1")

    assert [each["id"] for each in found["items"]] == [ids[2]]


def test_what_is_ones_own_is_in_ones_own_lists(hands: Hands) -> None:
    hold = hands.asks()
    hands("reassign", hold, "user:local")

    assert len(hands("list", "--view", "mine")["items"]) == 1
    hands("snooze", hold, "4h")
    assert hands("list", "--view", "mine")["items"] == []
    assert len(hands("list", "--view", "snoozed")["items"]) == 1
    hands("snooze", hold, "--off")
    hands("watch", hold)
    assert len(hands("list", "--view", "watching")["items"]) == 1
    hands("watch", hold, "--off")
    assert hands("list", "--view", "watching")["items"] == []
    assert hands("draft", hold, "approve", "-m", "so far")["comment"] == "so far"
    assert hands("draft", hold, "--delete") is None
    assert "give a time" in hands.refused("snooze", hold)


@pytest.mark.covers("HOLD-LIFE-09")
def test_bulk_says_what_would_be_and_then_does_it(hands: Hands) -> None:
    ids = [hands.asks(amount) for amount in (1, 2)]
    other = hands.asks(flow="signed")

    preview = hands.cli("holds", "bulk", "approve", *ids, other)
    assert preview.code == 0
    assert preview.out.startswith("2 would be decided 'approve'; 1 left out")
    assert hands("show", ids[0])["status"] == "pending"

    said = hands.cli("holds", "bulk", "approve", "--query", "tag:money", "--yes")
    assert (said.code, said.out) == (0, "2 decided 'approve'.\n")
    assert hands("show", ids[1])["status"] == "resolved"
    assert "one of the two" in hands.refused("bulk", "approve")


def test_cancel_evidence_and_figures(hands: Hands, tmp_path: Path) -> None:
    hold, other = hands.asks(), hands.asks()

    gone = hands("cancel", hold, "--reason", "ordered twice")
    hands("resolve", other, "approve")
    hands("evidence", other, "-o", "pack.json")

    assert (gone["status"], gone["cancel_reason"]) == ("cancelled", "ordered twice")
    assert json.loads((tmp_path / "pack.json").read_text())["digest"]
    assert hands("metrics")["holds"] == 2
    assert "half within" in hands.cli("holds", "metrics", "flow:refund").out


def test_a_hold_is_not_found_or_ambiguous_in_words(hands: Hands) -> None:
    hands.asks()

    assert "neither a hold nor a run" in hands.refused("show", "ffff0000")
    assert "there is no view 'yours'" in hands.refused("list", "--view", "yours")


def test_a_prompt_cannot_move_the_terminal(hands: Hands) -> None:
    hands.asks(customer="\x1b[2Jeve‮")

    said = hands.cli("holds", "list").out

    assert "\x1b" not in said
    assert "‮" not in said


@pytest.mark.covers("TOOL-CLI-27")
def test_holds_and_views_are_completed(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = hands.asks()

    assert asked(hands.cli, monkeypatch, "holdfast holds show ") == [hold]
    assert asked(hands.cli, monkeypatch, f"holdfast holds resolve {hold[:5]}") == [hold]
    assert asked(hands.cli, monkeypatch, "holdfast holds list --view un") == ["unassigned"]


@pytest.mark.covers("HOLD-FORM-03")
def test_a_file_is_attached_and_decided_with(hands: Hands, tmp_path: Path) -> None:
    hold = hands.asks(flow="paper")
    (tmp_path / "contract.pdf").write_bytes(b"%PDF-1.7 signed")
    (tmp_path / "note.txt").write_text("hello")

    assert "text/plain" in hands.refused("attach", hold, "contract", "note.txt")
    kept = hands("attach", hold, "contract", "contract.pdf")
    assert "the form has errors" in hands.refused("resolve", hold, "approve")
    done = hands("resolve", hold, "approve", "--draft")

    assert done["resolution"]["response_data"]["contract"] == kept
    assert [each["name"] for each in hands("files", hold, "--save", "papers")["items"]] == ["contract.pdf"]
    assert (tmp_path / "papers" / "contract.pdf").read_bytes() == b"%PDF-1.7 signed"
    assert "cannot be written" in hands.refused("files", hold, "--save", "papers")
