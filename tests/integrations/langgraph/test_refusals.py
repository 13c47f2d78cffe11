"""Stores, tenants and releases that a saver does not work with."""

from __future__ import annotations

from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from holdfast.errors import NotAStoreError, ThreadOwnedError
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.integrations.langgraph.versions import TESTED, require_versions
from tests.integrations.langgraph.test_transfer import config_of, content, fill


@pytest.mark.covers("USERS-BAD-SAVER")
def test_a_file_of_another_saver_is_refused_and_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "theirs.db"
    with SqliteSaver.from_conn_string(str(file)) as theirs:
        fill(theirs, ("t",))
    before = file.read_bytes()
    with pytest.raises(NotAStoreError, match="not a Holdfast database"), HoldfastSaver.open(f"sqlite:{file}"):
        pass
    assert file.read_bytes() == before


@pytest.mark.covers("USERS-BAD-SAVER")
def test_a_thread_of_another_tenant_is_neither_read_nor_written_nor_deleted(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path / 'ours.db'}?sync=normal"
    with (
        HoldfastSaver.open(address, tenant="acme") as acme,
        HoldfastSaver.open(address, tenant="other") as other,
    ):
        fill(acme, ("t",))
        kept = content(acme, "t")
        assert other.get_tuple(config_of("t")) is None
        assert list(other.list(None)) == []
        other.delete_thread("t")
        other.delete_for_runs(["run"])
        other.copy_thread("t", "copy")
        assert other.get_tuple(config_of("copy")) is None
        # A thread of the same name is another thread, also for its owner.
        with acme.own("t"):
            fill(other, ("t",))
            with pytest.raises(ThreadOwnedError), HoldfastSaver.open(address, tenant="acme") as second:
                fill(second, ("t",))
        assert content(acme, "t") == kept


@pytest.mark.covers("USERS-BAD-VERSION")
@pytest.mark.parametrize(
    ("name", "number", "ok"),
    [
        ("langgraph", "1.1.9", False),
        ("langgraph", "1.2.0", True),
        ("langgraph", "2.0.0rc1", False),
        ("langgraph-checkpoint", "4.2.0", False),
        ("langgraph-checkpoint", "5.0", False),
    ],
)
def test_a_release_that_is_not_tested_is_refused_with_what_to_install(
    name: str, number: str, ok: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"{name.replace('-', '_')}-{number}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    if ok:
        require_versions()
        return
    least = ".".join(map(str, TESTED[name][0]))
    said = f"works with {name} from {least} to below .* {number} is installed: pip install"
    with pytest.raises(ImportError, match=said):
        require_versions()
