"""Where the runs of a tenant are: in which store, on which engine, with which blob store.

An instance has one place, and every tenant is there. A directory of tenants names several: then each tenant
has its place, and nothing of it is anywhere else. Only this module opens a store for the rest of Holdfast.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

import msgspec

from holdfast.errors import SettingsError, StoreUnavailableError, TenantNotPlacedError
from holdfast.store.blob.objects import Objects
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.types.clock import Clock
from holdfast.types.ids import DEFAULT_CELL

_CELL = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A store with its engine and its blob store, as an instance takes them. `cell`: its name, unique among
    the places; cursors of lists carry it."""

    store: str | Store
    engine: str | None = None
    objects: Objects | str | None = None
    cell: str = DEFAULT_CELL

    def __post_init__(self) -> None:
        if not _CELL.fullmatch(self.cell):
            raise SettingsError(
                f"{self.cell!r} is not the name of a cell.",
                hint="Use 1 to 40 lower-case letters, digits and hyphens, such as `eu-1`.",
            )


class TenantDirectory(Protocol):
    """Knows where each tenant is. Not the directory of people (`holds.directory`)."""

    async def place(self, tenant: str) -> Place:
        """Raises TenantNotPlacedError for a tenant that it does not know: there is no default."""
        ...


class OnePlace:
    """Every tenant is in the one place that is configured."""

    def __init__(self, place: Place) -> None:
        self._place = place

    async def place(self, tenant: str) -> Place:
        del tenant
        return self._place


class TenantsOfCell:
    """The tenants of a directory that are in one cell."""

    def __init__(self, tenants: TenantDirectory, cell: str) -> None:
        self._tenants = tenants
        self._cell = cell

    async def place(self, tenant: str) -> Place:
        """Raises TenantNotPlacedError for those of other cells too."""
        found = await self._tenants.place(tenant)
        if found.cell != self._cell:
            raise TenantNotPlacedError(
                f"tenant {tenant!r} is in another cell than {self._cell!r}.",
                hint="Use the instance of its place: `await hf.at(TENANT)`.",
                tenant=tenant,
            )
        return found


async def open_place(
    place: Place, objects: Objects | None, clock: Clock | None
) -> tuple[Store, Objects | None]:
    """The store of a place, and its blob store: beside the file, if it is one and no other is given."""
    if not isinstance(place.store, str):
        return place.store, objects
    address = place.store
    if address.endswith(".db") and ":" not in address:
        address = f"sqlite:{address}"
    if address.startswith("sqlite:"):
        path = Path(address.removeprefix("sqlite:").partition("?")[0])
        _make_folder(path)
        if objects is None:
            from holdfast.store.blob.local import LocalBlobs, folder_beside

            objects = LocalBlobs(folder_beside(path))
    return await open_store(address, clock=clock), objects


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailableError(
            f"the folder {path.parent} for the database {path.name} cannot be made: {error.strerror}.",
            hint="Check the address of the store, and that this user may write there.",
        ) from error
