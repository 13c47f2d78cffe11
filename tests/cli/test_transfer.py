"""`holdfast export` and `holdfast import`: a run as a file, on another store, and files that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.runs.transfer import archive
from tests.cli.conftest import Cli, given
from tests.cli.test_bad_input import complains

THERE = ("--store", "sqlite:there.db")


def waiting(cli: Cli, refund: str) -> str:
    return cli("run", refund, "--input", given(500), "--json").json["id"]


def exported(cli: Cli, refund: str) -> tuple[str, Path]:
    run = waiting(cli, refund)
    assert cli("export", run[:8], "--out", "r.hfrun").code == 0
    return run, Path("r.hfrun")


@pytest.mark.covers("TOOL-CLI-18")
def test_run_is_shown_elsewhere_as_it_is_here(cli: Cli, refund: str) -> None:
    run, file = exported(cli, refund)
    here = cli("show", run, "--json").json
    assert cli("import", str(file), *THERE).code == 0
    there = cli("show", run, "--json", *THERE).json
    for name in ("state", "artifacts", "holds", "records"):
        assert there[name] == here[name]
    assert there["run"]["read_only"] is True
    again = cli("import", str(file), *THERE, "--json").json
    shown = {name: again[name] for name in ("id", "status", "read_only", "known")}
    assert shown == {"id": run, "status": "pending_input", "read_only": True, "known": True}
    assert len(cli("runs", "--json", *THERE).items) == 1, "a second time changes nothing"


@pytest.mark.covers("TOOL-CLI-18")
def test_imported_run_goes_on_as_a_new_one(cli: Cli, refund: str) -> None:
    run, file = exported(cli, refund)
    complains(
        cli("import", str(file), "--as-new-run", *THERE), 2, "location of the code", "--flow path/to/file.py"
    )
    assert not Path("there.db").exists()
    words = ("import", str(file), "--as-new-run", "--resume", "--flow", refund, *THERE)
    said = cli(*words, "--json")
    assert (said.code, said.json["status"]) == (3, "pending_input")
    fresh = said.json["id"]
    assert fresh != run
    assert cli(*words, "--json").json["id"] == fresh, "the same file makes the same run"
    done = cli("answer", fresh, "approve", "--resume", "--json", *THERE)
    assert done.json["state"]["receipt"] == "R-A17"


@pytest.mark.covers("TOOL-CLI-18")
def test_file_is_described_and_nothing_is_made_in_a_dry_run(cli: Cli, refund: str) -> None:
    run, file = exported(cli, refund)
    found = cli("import", str(file), "--dry-run", "--json", *THERE).json
    assert (found["id"], found["flow"], found["encrypted"]) == (run, "refund", "no")
    assert found["written_by"].startswith("holdfast ")
    assert "Nothing was imported" in cli("import", str(file), "--dry-run", *THERE).err
    assert not Path("there.db").exists()


@pytest.mark.covers("TOOL-CLI-18")
def test_run_is_taken_in_for_another_tenant(cli: Cli, refund: str) -> None:
    _, file = exported(cli, refund)
    assert cli("import", str(file), "--tenant", "acme", *THERE).code == 0
    assert [row["tenant"] for row in cli("runs", "--json", *THERE).items] == ["acme"]
    # The id is taken, and whose it is stays untold.
    complains(cli("import", str(file), *THERE), 2, "one of its ids is taken")


@pytest.mark.covers("TOOL-BAD-06", "TOOL-BAD-07")
def test_tampered_byte_anywhere_is_refused_and_nothing_is_changed(cli: Cli, refund: str) -> None:
    _, file = exported(cli, refund)
    whole = file.read_bytes()
    for place in [*range(9, len(whole), 301), len(whole) - 1]:
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        complains(
            cli("import", str(file), *THERE),
            2,
            "r.hfrun: the exported run is damaged",
            "Nothing was imported",
        )
    for end in (len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:end])
        complains(cli("import", str(file), *THERE), 2, "damaged", "Nothing was imported")
    assert not Path("there.db").exists()


@pytest.mark.covers("TOOL-BAD-06")
def test_damage_is_named_by_its_part(cli: Cli, refund: str) -> None:
    _, file = exported(cli, refund)
    whole = file.read_bytes()
    place = whole.index(b"pending_input")
    file.write_bytes(whole[:place] + b"P" + whole[place + 1 :])
    complains(cli("import", str(file), *THERE), 2, "part 2 (run) does not match its digest")
    Path("other.txt").write_text("dear diary")
    complains(cli("import", "other.txt", *THERE), 2, "not an exported run")
    complains(cli("import", "missing.hfrun", *THERE), 2, "cannot be read")


@pytest.mark.covers("TOOL-BAD-05", "TOOL-BAD-07")
def test_file_of_a_newer_version_is_refused_and_says_which(
    cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(archive, "VERSION", 7)
        newer.setattr(archive, "__version__", "3.4")
        _, file = exported(cli, refund)
    complains(cli("import", str(file), *THERE), 2, "format 7 (written by Holdfast 3.4)", "Update Holdfast")
    assert not Path("there.db").exists()


@pytest.mark.covers("TOOL-CLI-18", "TOOL-KEEP-08")
def test_encrypted_run_stays_encrypted_in_its_file_unless_reported_otherwise(
    cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("keys", "new", "--file", "keys.json").code == 0
    monkeypatch.setenv("HOLDFAST_KEYS", "keys.json")
    run = waiting(cli, refund)
    assert cli("export", run, "-o", "closed.hfrun").code == 0
    assert cli("export", run, "-o", "open.hfrun", "--decrypt").code == 0
    assert b"Refund 500?" not in Path("closed.hfrun").read_bytes()
    assert b"Refund 500?" in Path("open.hfrun").read_bytes()
    here = cli("show", run, "--json").json["state"]
    monkeypatch.delenv("HOLDFAST_KEYS")
    complains(cli("import", "closed.hfrun", *THERE), 4, "encrypted under the key", "HOLDFAST_KEYS")
    assert not Path("there.db").exists()
    assert cli("import", "open.hfrun", "--store", "sqlite:plain.db").code == 0
    assert cli("show", run, "--json", "--store", "sqlite:plain.db").json["state"] == here
    monkeypatch.setenv("HOLDFAST_KEYS", "keys.json")
    assert cli("import", "closed.hfrun", *THERE).code == 0
    assert cli("show", run, "--json", *THERE).json["state"] == here
    assert b"Refund 500?" not in Path("there.db").read_bytes()
