"""Stores, tenants and releases that a saver does not work with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from holdfast.errors import (
    InputError,
    NotAStoreError,
    SettingsError,
    StoreUnavailableError,
    ThreadOwnedError,
)
from holdfast.integrations.langgraph import HoldfastSaver
from tests.integrations.langgraph.test_transfer import config_of, content, fill


@pytest.mark.covers("USERS-BAD-SAVER")
def test_a_file_of_another_saver_is_refused_and_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "theirs.db"
    with SqliteSaver.from_conn_string(str(file)) as theirs:
        fill(theirs, ("t",))
    before = file.read_bytes()
    why = "not a Holdfast database.*`holdfast import langgraph"
    with pytest.raises(NotAStoreError, match=why), HoldfastSaver.open(f"sqlite:{file}"):
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


@pytest.mark.covers("USERS-BAD-SAVER")
@pytest.mark.parametrize("tenant", ["", "\ud800", 7])
def test_a_name_that_no_tenant_can_have_is_refused(tenant: Any) -> None:
    with pytest.raises(InputError, match="tenant"), HoldfastSaver.open("memory:", tenant=tenant):
        pass


@pytest.mark.covers("USERS-BAD-SAVER")
def test_an_address_instead_of_an_instance_is_refused_with_what_to_write() -> None:
    given: Any = "sqlite:agent.db"
    with pytest.raises(SettingsError, match=r"HoldfastSaver\.open"):
        HoldfastSaver(given)


@pytest.mark.covers("USERS-BAD-SAVER")
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"lease": "soon"}, "lease: 'soon' is not a duration"),
        ({"on_conflict": "wait:soon"}, "on_conflict: 'soon' is not a duration"),
        ({"retention": "30d"}, "retention is '30d'.*Retention"),
    ],
)
def test_a_setting_of_another_kind_is_refused_by_its_name(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError, match=why), HoldfastSaver.open("memory:", **settings):
        pass


@pytest.mark.covers("USERS-BAD-SAVER")
def test_a_graph_is_not_invoked_with_a_saver_that_is_closed(tmp_path: Path) -> None:
    """Its claim would be neither renewed nor released: the thread would be in use until it expires."""
    address, config = f"sqlite:{tmp_path / 'ours.db'}?sync=normal", config_of("t")
    builder = StateGraph(dict)
    builder.add_node("a", lambda state: {})
    builder.add_edge(START, "a")
    with HoldfastSaver.open(address) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"n": 1}, config)
    with pytest.raises(StoreUnavailableError, match="saver is closed"):
        graph.invoke({"n": 2}, config)
    with HoldfastSaver.open(address) as saver:
        builder.compile(checkpointer=saver).invoke({"n": 3}, config)
