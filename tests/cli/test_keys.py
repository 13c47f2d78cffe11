"""`holdfast keys`: the key file, and a store brought under its current keys."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, given
from tests.cli.test_bad_input import complains


@pytest.mark.covers("TOOL-KEEP-06")
def test_keys_are_made_listed_and_rotated_without_showing_a_secret(cli: Cli) -> None:
    assert "export HOLDFAST_KEYS=" in cli("keys", "new", "--file", "k.json").err
    assert stat.S_IMODE(Path("k.json").stat().st_mode) == 0o600
    complains(cli("keys", "new", "--file", "k.json"), 2, "already", "keys rotate")
    assert cli("keys", "new", "--file", "k.json", "--tenant", "acme").code == 0
    assert cli("keys", "rotate", "--file", "k.json", "--tenant", "acme").code == 0
    complains(cli("keys", "rotate", "--file", "k.json", "--tenant", "nobody"), 2, "no key for tenant nobody")
    listed = cli("keys", "list", "--file", "k.json", "--json").items
    assert [(row["tenant"], row["state"]) for row in listed] == [
        ("*", "current"), ("acme", "current"), ("acme", "older"),
    ]  # fmt: skip
    secrets = [key["secret"] for scope in json.loads(Path("k.json").read_text())["scopes"].values()
               for key in scope["keys"]]  # fmt: skip
    shown = cli("keys", "list", "--file", "k.json").out
    assert not any(secret in shown for secret in secrets)


@pytest.mark.covers("TOOL-KEEP-06", "TOOL-KEEP-08")
def test_store_is_brought_under_the_new_key(cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_KEYS", "k.json")
    cli("keys", "new")
    run = cli("run", refund, "--input", given(500), "--json").json["id"]
    old = Path("k.json").read_text()
    cli("keys", "rotate")
    first = json.loads(old)["scopes"]["*"]["current"]
    assert cli("show", run, "--json").json["state"]["amount"] == 500
    said = cli("keys", "reencrypt")
    assert (said.code, "Re-encrypted:" in said.out) == (0, True)
    kept = json.loads(Path("k.json").read_text())
    kept["scopes"]["*"]["keys"] = [k for k in kept["scopes"]["*"]["keys"] if k["id"] != first]
    Path("k.json").write_text(json.dumps(kept))
    assert cli("show", run, "--json").json["state"]["amount"] == 500
    assert cli("keys", "reencrypt", "--json").json["rows"] == 0
    Path("k.json").write_text(old)
    complains(cli("show", run), 4, kept["scopes"]["*"]["current"], "Nothing is lost")
    complains(cli("answer", run, "approve"), 4, kept["scopes"]["*"]["current"])
    assert [row["status"] for row in cli("runs", "--json").items] == ["pending_input"]
    assert f"encrypted under key {kept['scopes']['*']['current']}" in cli("runs").out
    assert cli("keys", "reencrypt").code == 4
    Path("k.json").write_text(json.dumps(kept))
    assert cli("answer", run, "approve", "--resume", "--json").json["status"] == "completed"


def test_key_file_that_is_none_is_named(cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch) -> None:
    complains(cli("keys", "list"), 2, "no key file is named", "--file")
    monkeypatch.setenv("HOLDFAST_KEYS", "missing.json")
    complains(cli("run", refund, "--input", given(5)), 2, "missing.json", "cannot be read")
    Path("missing.json").write_text("[]")
    complains(cli("run", refund, "--input", given(5)), 2, "missing.json is not a key file")
    Path("missing.json").write_text('{"form": 9, "scopes": {}}')
    complains(cli("keys", "list"), 2, "form 9", "Update Holdfast")


def test_run_whose_key_is_missing_is_not_pruned_and_says_so(
    cli: Cli, refund: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_KEYS", "k.json")
    key = cli("keys", "new", "--json").json["current"]
    run = cli("run", refund, "--input", given(5), "--json").json["id"]
    monkeypatch.delenv("HOLDFAST_KEYS")
    complains(cli("prune", "--keep", "1"), 4, "1 run could not be read", key)
    monkeypatch.setenv("HOLDFAST_KEYS", "k.json")
    assert cli("show", run, "--json").json["state"]["amount"] == 5
    assert cli("prune", "--keep", "1").code == 0
