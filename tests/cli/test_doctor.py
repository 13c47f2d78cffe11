"""`doctor`: each thing that can be wrong is found, told with what to do, and counted in the exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from tests.cli.conftest import Cli, given

STORE = ".holdfast/holdfast.db"


def findings(cli: Cli, *words: str) -> dict[str, Any]:
    said = cli("doctor", "--json", *words).json
    return {finding["check"]: finding for finding in said["findings"]}


def change(sql: str, *args: Any) -> None:
    raw = apsw.Connection(STORE)
    raw.execute(sql, args)
    raw.close()


@pytest.fixture
def waiting(cli: Cli, refund: str) -> str:
    return cli("run", refund, "--input", given(250), "--json").json["id"]


@pytest.mark.covers("TOOL-CLI-19")
@pytest.mark.parametrize("words", [(), ("--deep",)])
def test_doctor_finds_nothing_when_everything_is_well(cli: Cli, waiting: str, words: tuple[str, ...]) -> None:
    said = cli("doctor", *words)
    assert said.code == 0
    assert "All checks passed." in said.out
    found = findings(cli, *words)
    assert set(found) >= {
        "versions", "settings", "disk", "store", "schema", "integrity", "keys", "blobs", "leases", "journals",
        "flow code", "answers", "timers",
    }  # fmt: skip
    assert {finding["state"] for finding in found.values()} == {"ok"}


@pytest.mark.covers("TOOL-CLI-19")
def test_doctor_says_that_there_is_no_store_and_that_a_file_is_none(cli: Cli, tmp_path: Path) -> None:
    missing = cli("doctor")
    assert (missing.code, "there is no store" in missing.out) == (1, True)
    (tmp_path / "not.db").write_text("hello")
    foreign = cli("doctor", "--store", "sqlite:not.db")
    assert (foreign.code, "is not a Holdfast database" in foreign.out) == (1, True)
    assert (tmp_path / "not.db").read_text() == "hello"


@pytest.mark.covers("TOOL-CLI-19")
def test_doctor_finds_a_damaged_record_of_a_live_run(cli: Cli, waiting: str) -> None:
    change("UPDATE journal SET payload = x'00' WHERE kind = 4")
    found = findings(cli)["journals"]
    assert found["state"] == "fail"
    assert found["about"][0].startswith(waiting[:8])
    assert found["todo"]
    assert cli("doctor").code == 1


@pytest.mark.covers("TOOL-CLI-19")
def test_doctor_finds_damage_in_the_past_when_it_looks_deep(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(80))
    change("UPDATE journal SET digest = x'00' WHERE key & 0xffffffff = 1")
    assert findings(cli)["journals"]["state"] == "ok"
    assert findings(cli, "--deep")["journals"]["state"] == "fail"
    change("DELETE FROM journal WHERE key & 0xffffffff = 1")
    assert "record 1 is missing" in findings(cli, "--deep")["journals"]["about"][0]


@pytest.mark.covers("TOOL-CLI-19")
def test_doctor_finds_values_that_are_gone(cli: Cli, waiting: str) -> None:
    change("INSERT INTO blob_refs (run_key, digest) VALUES (1, ?)", b"\x07" * 32)
    found = findings(cli)["blobs"]
    assert (found["state"], found["about"]) == ("fail", ["07" * 32])
    change("DELETE FROM blob_refs")
    change("INSERT INTO blobs (digest, size, put_at, place) VALUES (?, 9, 0, 'elsewhere')", b"\x08" * 32)
    found = findings(cli)["blobs"]
    assert (found["state"], "1 belong to no run" in found["said"]) == ("ok", True)
    change("UPDATE blobs SET condemned = 1")
    assert "(1 of them condemned)" in findings(cli)["blobs"]["said"]
    change("UPDATE blobs SET condemned = 0")
    assert findings(cli, "--deep")["blobs"]["about"] == ["08" * 32]


@pytest.mark.covers("TOOL-CLI-19")
def test_doctor_names_runs_that_a_dead_worker_left(cli: Cli, waiting: str) -> None:
    change("UPDATE runs SET status = 'running', worker = 'gone', lease_until = 1")
    found = findings(cli)["leases"]
    assert (found["state"], found["about"]) == ("warn", [waiting[:8]])
    assert cli("doctor").code == 0


@pytest.mark.covers("TOOL-CLI-19", "D-34")
def test_doctor_names_runs_that_nobody_here_can_serve(cli: Cli, refund: str, waiting: str) -> None:
    file = Path(refund)
    file.write_text(file.read_text().replace('"approve", prompt', '"confirm", prompt'))
    sys.modules.pop(file.stem, None)
    found = findings(cli)["flow code"]
    assert found["state"] == "warn"
    assert "1 of refund g1-" in found["about"][0]
    assert "has another version now" in found["about"][0]
    Path(f"{STORE}-flows.json").unlink()
    assert "location of its code is unknown" in findings(cli)["flow code"]["about"][0]


@pytest.mark.covers("TOOL-CLI-19", "RM-5")
def test_doctor_finds_answers_that_nobody_applies_and_timers_that_nobody_fires(
    cli: Cli, waiting: str
) -> None:
    cli("answer", waiting, "approve")
    assert findings(cli)["answers"]["state"] == "ok"
    change("UPDATE runs SET ready_at = 1")
    found = findings(cli)["answers"]
    assert (found["state"], found["about"]) == ("warn", [waiting[:8]])
    change("INSERT INTO timers (run_key, token, fire_at) VALUES (1, 't', 1)")
    assert findings(cli)["timers"]["state"] == "warn"


@pytest.mark.covers("TOOL-CLI-19")
def test_doctor_looks_at_settings_and_room(cli: Cli, waiting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_STOR", "x")
    found = findings(cli)["settings"]
    assert (found["state"], found["todo"]) == ("warn", "did you mean HOLDFAST_STORE?")
    monkeypatch.setenv("HOLDFAST_LEASE", "soon")
    assert findings(cli)["settings"]["state"] == "fail"
    monkeypatch.delenv("HOLDFAST_LEASE")
    for free, state in ((10 << 20, "fail"), (500 << 20, "warn")):
        usage = SimpleNamespace(free=free)
        monkeypatch.setattr("shutil.disk_usage", lambda _path, usage=usage: usage)
        assert findings(cli)["disk"]["state"] == state


@pytest.mark.covers("TOOL-CLI-19")
def test_doctor_finds_a_torn_file_when_it_looks_deep(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(80))
    change("PRAGMA wal_checkpoint(TRUNCATE)")
    file = Path(STORE)
    raw = apsw.Connection(STORE)
    (root,) = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'holds_by_age'").fetchone()
    (size,) = raw.execute("PRAGMA page_size").fetchone()
    raw.close()
    data = bytearray(file.read_bytes())
    data[(root - 1) * size : root * size] = b"\xff" * size
    file.write_bytes(data)
    found = findings(cli, "--deep")
    assert found["integrity"]["state"] == "fail"
    assert found["integrity"]["about"]


@pytest.mark.covers("TOOL-CLI-19", "D-38")
def test_doctor_names_keys_that_are_not_here(cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("keys", "new", "--file", "keys.json")
    monkeypatch.setenv("HOLDFAST_KEYS", "keys.json")
    cli("run", refund, "--input", given(250))
    assert findings(cli)["keys"]["state"] == "ok"
    monkeypatch.delenv("HOLDFAST_KEYS")
    found = findings(cli)
    assert (found["keys"]["state"], found["journals"]["state"]) == ("fail", "ok")
    assert found["keys"]["about"][0].startswith("k")


@pytest.mark.covers("TOOL-CLI-19")
def test_doctor_reads_the_files_of_settings_and_reaches_their_brokers(
    cli: Cli, waiting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"queues", "connections", "brokers"}.isdisjoint(findings(cli))
    monkeypatch.setenv("HOLDFAST_QUEUES", "/nonexist.toml")
    wrong = tmp_path / "connections.toml"
    wrong.write_text("[connections.bank]\nkind = 'htp'\n")
    monkeypatch.setenv("HOLDFAST_CONNECTIONS", str(wrong))
    found = findings(cli)
    assert (found["queues"]["state"], found["connections"]["state"]) == ("fail", "fail")
    assert "HOLDFAST_QUEUES: " in found["queues"]["said"]
    assert all(found[each]["todo"] for each in ("queues", "connections"))

    file = tmp_path / "queues.toml"
    file.write_text(
        "[queues.'support/work']\nbackend = 'nats'\n"
        "[backends.nats]\nservers = ['nats://127.0.0.1:9']\ntimeout = '1s'\n"
    )
    monkeypatch.setenv("HOLDFAST_QUEUES", str(file))
    wrong.write_text("[connections.bank]\nkind = 'http'\nbase_url = 'https://bank.example'\n")
    found = findings(cli)
    assert [found[each]["state"] for each in ("queues", "connections", "brokers")] == ["ok", "ok", "fail"]
    assert "no NATS server can be reached" in found["brokers"]["about"][0]
