"""`holdfast migrate` on a file, and slips; on a server it is tried in tests/upgrade and tests/fleet."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli, given
from tests.cli.test_bad_input import complains

pytestmark = pytest.mark.covers("FLEET-PG-11")


def test_file_has_nothing_to_migrate_and_the_command_says_why(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(5))
    said = cli("migrate")
    assert said.code == 0
    assert "a local file" in said.out
    result = cli("migrate", "--dry-run", "--json").json
    assert (result["before"]["shared"], result["before"]["to_begin"]) == (False, [])


@pytest.mark.parametrize(
    ("words", "code", "about"),
    [
        (("--finish",), 2, "two halves"),
        (("--anyway",), 2, "--anyway needs --finish"),
        (("--store", "sqlite:nowhere.db"), 4, "there is no store"),
        (("--store", "postgresql://h/d?pool=0"), 2, "pool"),
    ],
)
def test_slip_is_reported_in_one_sentence(
    cli: Cli, refund: str, words: tuple[str, ...], code: int, about: str
) -> None:
    cli("run", refund, "--input", given(5))
    complains(cli("migrate", *words), code, about)


@pytest.mark.covers("FLEET-PG-10")
def test_feed_is_trimmed_by_hand_and_a_strange_age_is_refused(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(5))
    assert "of the feed" in cli("prune", "--feed", "0s").out
    assert cli("prune", "--feed", "0s", "--json").json["done"]["feed"] == 0
    complains(cli("prune", "--feed", "a while"), 2, "--feed")
