"""Tenants in places of their own: two files, and a directory that says which tenant is where."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import Flow, Holdfast, Worker
from holdfast.app.places import OnePlace, Place
from holdfast.errors import (
    HoldNotFoundError,
    OtherCellError,
    RunNotFoundError,
    SettingsError,
    TenantNotPlacedError,
)
from holdfast.store.rows import RunFilter
from holdfast.types.terms import Actor

pytestmark = pytest.mark.anyio

greet = Flow[Any]("greet", effect="pure")


@greet.node
async def hello() -> dict[str, Any]:
    return {"said": "hello"}


greet.hold("ask", prompt="Go on?", options=["yes", "no"], assignee="user:ada@x")
greet.chain(hello, "ask")


class TwoPlaces:
    """A directory of tenants as an application would write it."""

    def __init__(self, folder: Path) -> None:
        self.places = {
            tenant: Place(store=f"sqlite:{folder}/{cell}.db", cell=cell)
            for tenant, cell in (("acme", "one"), ("apex", "one"), ("globex", "two"))
        }

    async def place(self, tenant: str) -> Place:
        if tenant not in self.places:
            raise TenantNotPlacedError(f"tenant {tenant!r} has no place.", tenant=tenant)
        return self.places[tenant]


@pytest.fixture
async def hf(tmp_path: Path) -> AsyncIterator[Holdfast]:
    async with Holdfast(tenants=TwoPlaces(tmp_path)) as instance:
        yield instance


def tenants_in(file: Path) -> set[str]:
    db = apsw.Connection(str(file))
    rows = db.execute("SELECT tenant FROM runs UNION SELECT tenant FROM holds")
    found = {str(tenant) for (tenant,) in rows}
    db.close()
    return found


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


@pytest.mark.covers("SC2-3", "SC2-2")
async def test_runs_are_in_the_file_of_their_tenant(hf: Holdfast, tmp_path: Path) -> None:
    for tenant in ("acme", "globex", "apex"):
        await greet.run({}, on=hf, tenant=tenant)
    await greet.submit({}, on=hf, tenant="globex")
    assert tenants_in(tmp_path / "one.db") == {"acme", "apex"}
    assert tenants_in(tmp_path / "two.db") == {"globex"}
    assert await hf.at("acme") is await hf.at("apex")
    assert await hf.at("acme") is not await hf.at("globex")


@pytest.mark.covers("SC2-3", "SC2-8")
async def test_run_is_resumed_in_the_place_of_its_tenant(hf: Holdfast) -> None:
    paused = await greet.run({}, on=hf, tenant="globex")
    service = await (await hf.at("globex")).service()
    await service.answer(paused.holds[0].id, "yes")
    with pytest.raises(TenantNotPlacedError):
        await greet.resume(paused.run_id, on=hf)  # it names no tenant, and no place is the default
    assert (await greet.resume(paused.run_id, on=hf, tenant="globex")).completed


@pytest.mark.covers("SC2-3")
async def test_worker_serves_the_place_of_one_tenant(hf: Holdfast) -> None:
    runs = {tenant: await greet.submit({}, on=hf, tenant=tenant) for tenant in ("acme", "globex")}
    worker = Worker(greet, on=await hf.at("acme"))
    await worker.run_until_idle()
    await worker.close()
    statuses: dict[str, str] = {}
    for tenant, run in runs.items():
        service = await (await hf.at(tenant)).service()
        statuses[tenant] = (await service.get(run)).status
    assert statuses == {"acme": "pending_input", "globex": "pending"}


@pytest.mark.covers("SC2-8")
@pytest.mark.parametrize("tenant", ["nobody", "default", "", "acme "])
async def test_unknown_tenant_is_refused_and_nothing_is_written(
    hf: Holdfast, tmp_path: Path, tenant: str
) -> None:
    with pytest.raises(TenantNotPlacedError):
        await greet.run({}, on=hf, tenant=tenant)
    with pytest.raises(TenantNotPlacedError):
        await greet.submit({}, on=hf, tenant=tenant)
    assert files_in(tmp_path) == []


@pytest.mark.covers("SC2-8", "SC2-2")
async def test_instance_of_a_place_takes_no_run_of_a_tenant_elsewhere(hf: Holdfast) -> None:
    one = await hf.at("acme")
    service = await one.service()
    for tenant in ("globex", "nobody"):
        with pytest.raises(TenantNotPlacedError):
            await greet.run({}, on=one, tenant=tenant)
        with pytest.raises(TenantNotPlacedError):
            await service.create(greet.program(), {}, tenant=tenant)
    assert await service.list(RunFilter()) == []


@pytest.mark.covers("SC2-8")
async def test_nothing_is_opened_where_no_tenant_is_named(hf: Holdfast, tmp_path: Path) -> None:
    with pytest.raises(TenantNotPlacedError, match="none was named"):
        await hf.open()
    with pytest.raises(TenantNotPlacedError, match="none was named"):
        await hf.schedules()
    with pytest.raises(TenantNotPlacedError, match="none was named"):
        await Worker(greet, on=hf).run_until_idle()
    assert files_in(tmp_path) == []


@pytest.mark.covers("SC2-9")
async def test_tenant_with_a_place_of_its_own_is_alone_there_and_the_others_see_nothing_of_it(
    hf: Holdfast, tmp_path: Path
) -> None:
    """A tenant that is too large for a cell: its runs, holds, limits, audit and workers are its own."""
    own, shared = await hf.at("globex"), await hf.at("acme")
    large = [await greet.run({}, on=hf, tenant="globex") for _ in range(3)]
    small = [await greet.run({}, on=hf, tenant=tenant) for tenant in ("acme", "apex")]
    await (await own.limits()).set("flow:greet", concurrency=0)
    # None of it is split: all of its runs are in the one place, and nothing else is.
    assert tenants_in(tmp_path / "two.db") == {"globex"}
    assert {row.id for row in await (await own.service()).list(RunFilter())} == {
        each.run_id for each in large
    }
    service = await shared.service()
    assert {row.id for row in await service.list(RunFilter())} == {each.run_id for each in small}
    for each in large:
        with pytest.raises(RunNotFoundError):
            await service.get(each.run_id)
    with pytest.raises(HoldNotFoundError):
        await service.answer(large[0].holds[0].id, "yes")
    assert [hold.tenant for hold in await service.holds()] == ["acme", "apex"]
    assert await service.store.audit_tenants() == ["acme", "apex"]
    # That its cell is stopped stops no other.
    for each in small:
        await service.answer(each.holds[0].id, "yes")
    worker = Worker(greet, on=shared)
    await worker.run_until_idle()
    await worker.close()
    assert {row.status for row in await service.list(RunFilter())} == {"completed"}
    assert {row.status for row in await (await own.service()).list(RunFilter())} == {"pending_input"}


@pytest.mark.covers("SC2-3")
async def test_every_tenant_is_in_the_one_configured_place(tmp_path: Path) -> None:
    async with Holdfast(f"sqlite:{tmp_path}/h.db") as hf:
        for tenant in ("acme", "globex"):
            assert await hf.at(tenant) is hf
            await greet.run({}, on=hf, tenant=tenant)
        assert hf.cell == "main"
    assert tenants_in(tmp_path / "h.db") == {"acme", "globex"}
    one = OnePlace(Place(store="memory:"))
    assert await one.place("acme") is await one.place("globex")


async def test_directory_and_a_store_are_not_given_together(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="either"):
        Holdfast("memory:", tenants=TwoPlaces(tmp_path))


@pytest.mark.parametrize("cell", ["", "Main", "a b", "-x", "x" * 41, 'a"'])
async def test_name_of_a_cell_is_refused_that_is_no_plain_word(cell: str) -> None:
    with pytest.raises(SettingsError, match="name of a cell"):
        Place(store="memory:", cell=cell)


@pytest.mark.covers("SC2-4")
async def test_cursor_of_a_list_of_holds_is_refused_in_another_cell(hf: Holdfast) -> None:
    pages: dict[str, Any] = {}
    for tenant in ("acme", "globex"):
        for _ in range(3):
            await greet.run({}, on=hf, tenant=tenant)
        people = await (await hf.at(tenant)).holds()
        pages[tenant] = await people.list(Actor(id="user:ada@x", tenant=tenant), limit=2)
    ada, people = Actor(id="user:ada@x", tenant="acme"), await (await hf.at("acme")).holds()
    assert len((await people.list(ada, limit=2, cursor=pages["acme"].cursor)).rows) == 1
    with pytest.raises(OtherCellError):
        await people.list(ada, limit=2, cursor=pages["globex"].cursor)
