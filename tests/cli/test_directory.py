"""`directory`: who works here, from a terminal."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli


@pytest.fixture
def firm(cli: Cli) -> Cli:
    assert cli("directory", "add-person", "dana", "--email", "Dana@acme", "--name", "Dana D.").code == 0
    assert cli("directory", "add-person", "sam", "--email", "sam@acme").code == 0
    assert cli("directory", "add-group", "finance", "dana@acme", "sam").code == 0
    assert cli("directory", "add-role", "cfo", "sam").code == 0
    return cli


@pytest.mark.covers("HOLD-AUTH-02")
def test_people_groups_and_roles_are_listed_and_shown(firm: Cli) -> None:
    said = firm("directory", "list").out
    assert "dana@acme" in said
    assert "group:finance, role:cfo" in said
    assert firm("directory", "list", "--json").json["groups"] == [
        {"key": "finance", "name": "", "members": ["dana", "sam"]}
    ]
    shown = firm("directory", "show", "SAM@acme", "--json").json
    assert (shown["id"], shown["groups"], shown["roles"]) == ("sam", ["finance"], ["cfo"])
    assert "dana, sam" in firm("directory", "show", "group:finance").out


@pytest.mark.covers("HOLD-AUTH-02")
def test_somebody_leaves_a_group_joins_a_role_and_goes(firm: Cli) -> None:
    assert "Members of group:finance: sam." in firm("directory", "leave", "group:finance", "dana").out
    assert "Members of role:cfo: sam, dana." in firm("directory", "join", "role:cfo", "dana").out
    assert firm("directory", "delete-person", "sam").code == 0
    assert firm("directory", "list", "--json").json["roles"][0]["members"] == ["dana"]
    assert "group:finance: no members" in firm("directory", "list").err
    assert firm("directory", "delete-person", "sam").code != 0
    assert firm("directory", "delete-group", "group:finance").code == 0
    assert firm("directory", "list", "--json").json["groups"] == []
    assert firm("directory", "delete-group", "group:finance").code != 0


@pytest.mark.covers("HOLD-AUTH-09")
def test_a_person_is_away_and_back(firm: Cli) -> None:
    said = firm("directory", "away", "dana", "--substitute", "sam", "--until", "14d")
    assert "substitute: sam" in said.out
    assert firm("directory", "show", "sam", "--json").json["stands_in_for"] == ["dana"]
    assert "substitute: sam" in firm("directory", "show", "dana").out
    assert "is back" in firm("directory", "back", "dana").out
    assert "was not away" in firm("directory", "back", "dana").out
    later = firm(
        "directory", "away", "dana", "--substitute", "sam", "--from", "2999-01-01T00:00:00Z", "--json"
    ).json
    assert later["away"]["substitute"] == "sam"
    assert firm("directory", "show", "sam", "--json").json["stands_in_for"] == []


def test_what_makes_no_sense_is_said_and_changes_nothing(firm: Cli) -> None:
    before = firm("directory", "list", "--json").json
    for words, says in SLIPS.items():
        said = firm("directory", *words.split())
        assert (said.code, says in said.err) == (2, True), (words, said.err)
    assert firm("directory", "list", "--json").json == before


SLIPS = {
    "away dana --substitute dana": "cannot be their own substitute",
    "away dana --substitute sam --until soon": "is not a time",
    "away dana --substitute sam --until 2026-01-01T00:00:00": "with its zone",
    "add-group ops nobody": "'nobody' is not in the directory",
    "add-person eve --email dana@ACME": "dana has the name dana@acme already",
    "join finance dana": "group:finance",
    "show role:king": "role:king is not in the directory",
    "show king": "'king' is not in the directory",
}


def test_empty_directory_says_how_to_begin(cli: Cli) -> None:
    cli("directory", "add-group", "nobody")
    said = cli("directory", "list")
    assert "The directory is empty." in said.out
    assert "add-person" in said.err
