"""`holdfast audit`: a chain that somebody was at is found; a signed head finds the rest."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

from tests.cli.conftest import Cli, given

TRIGGERS = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'audit'"


@pytest.fixture
def decided(cli: Cli, refund: str) -> Cli:
    run = cli("run", refund, "--input", given(250), "--json").json["id"]
    assert cli("answer", run, "approve", "--resume").code == 0
    assert cli("holds", "comment", run, "Well done.").code == 0
    return cli


def tamper(statement: str) -> None:
    """As whoever can write the file can: what guards the table is taken away first."""
    file = apsw.Connection(str(Path(".holdfast/holdfast.db").resolve()))
    for (name,) in list(file.execute(TRIGGERS)):
        file.execute(f"DROP TRIGGER {name}")
    file.execute(statement)
    file.close()


@pytest.mark.covers("HI-5", "HOLD-AUDIT-02")
@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("UPDATE audit SET actor = 'user:eve' WHERE seq = 2", "record 2 was changed"),
        ("DELETE FROM audit WHERE seq = 2", "record 2 is missing"),
        ("DELETE FROM audit WHERE seq >= 2", "from 2 on are missing"),
    ],
    ids=["edited", "removed", "truncated"],
)
def test_verify_names_the_record_that_somebody_was_at(decided: Cli, statement: str, why: str) -> None:
    assert decided("audit", "verify").code == 0
    tamper(statement)
    said = decided("audit", "verify")
    assert (said.code, why in said.out) == (4, True)
    assert decided("audit", "verify", "--json").items[0]["seq"] == 2


@pytest.mark.covers("HOLD-SEC-13", "HOLD-AUDIT-02")
def test_a_signed_head_is_checked_and_checks(decided: Cli, tmp_path: Path) -> None:
    key, head = tmp_path / "audit.key", tmp_path / "head.json"
    key.write_bytes(b"k" * 32)
    assert decided("audit", "head", "--key", str(key), "-o", str(head)).code == 0
    assert decided("audit", "verify", "--against", str(head), "--key", str(key)).code == 0
    assert decided("audit", "verify", "--against", str(head)).code == 2
    other = tmp_path / "other.key"
    other.write_bytes(b"o" * 32)
    said = decided("audit", "verify", "--against", str(head), "--key", str(other))
    assert (said.code, "not signed" in said.err) == (2, True)
    tamper("DELETE FROM audit WHERE seq >= 2")
    tamper("UPDATE audit_heads SET seq = 1, hash = (SELECT hash FROM audit WHERE seq = 1)")
    assert decided("audit", "verify").code == 0
    assert decided("audit", "verify", "--against", str(head), "--key", str(key)).code == 4


def test_list_shows_the_records_in_their_order(decided: Cli) -> None:
    records = decided("audit", "list", "--json").items
    assert [each["seq"] for each in records] == list(range(1, len(records) + 1))
    assert [each["action"] for each in records][:2] == ["created", "resolved"]
    hold = records[0]["hold"]
    later = decided("audit", "list", "--hold", hold, "--after", "1", "--json").items
    assert later[0]["seq"] == 2
    said = decided("audit", "list", "--limit", "1")
    assert said.out.splitlines()[0].split() == ["seq", "when", "who", "what", "happened", "hold", "hash"]
    for text in (decided("audit", "list").out, records[1]["text"]):
        assert re.search(r"approved, .* \(“.+”\)", text)
    assert "--after 1" in said.err
    assert decided("audit", "list", "--tenant", "nobody").out == "No matching records.\n"
