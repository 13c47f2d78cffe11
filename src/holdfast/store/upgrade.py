"""Upgrades of a store that several processes share: their state, and the second half.

A file belongs to one machine: it is migrated completely when it is opened, and there is nothing to finish.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from holdfast._version import __version__
from holdfast.errors import OlderWorkerError, SettingsError
from holdfast.store.open import FORMS, open_store

if TYPE_CHECKING:
    from holdfast.types.fleet import WorkerRow

_NUMBERS = re.compile(r"\d+")
_SHOWN = 5


class UpgradeStep(msgspec.Struct, frozen=True):
    """One migration of the schema. `does`: the statements of the half that has not run."""

    number: int
    name: str
    does: str


class Upgrade(msgspec.Struct, frozen=True):
    """`to_begin`: what opening the store with this version adds; `to_finish`: what was added and can be
    finished when no process of an older version is left (`older`)."""

    shared: bool
    number: int
    to_begin: list[UpgradeStep] = []
    to_finish: list[UpgradeStep] = []
    older: list[str] = []


def is_shared(address: str) -> bool:
    return address.startswith(("postgresql://", "postgres://"))


async def read_upgrade(address: str) -> Upgrade:
    """Changes nothing."""
    if not is_shared(address):
        store = await open_store(address)
        try:
            return Upgrade(shared=False, number=(await store.examine(deep=False)).schema)
        finally:
            await store.close()
    from holdfast.store.sql.postgres import settings_for
    from holdfast.store.sql.postgres.upgrade import read_upgrade

    return await read_upgrade(settings_for(address, {}, FORMS))


async def begin_upgrade(address: str) -> Upgrade:
    """Opening a store adds what this version needs."""
    await (await open_store(address)).close()
    return await read_upgrade(address)


async def finish_upgrade(address: str, *, anyway: bool = False) -> Upgrade:
    """Finish what was begun: from then on older versions are refused. `anyway`: although a process of an
    older version seems to be running. Raises OlderWorkerError, and SettingsError for a store without two
    halves."""
    if not is_shared(address):
        raise SettingsError(
            "only a store on PostgreSQL is upgraded in two halves.",
            hint="A file is migrated completely when it is opened; there is nothing to finish.",
        )
    store = await open_store(address)
    try:
        now = store.now()
        outdated = [row for row in await store.workers() if row.is_alive(now) and is_older(row)]
    finally:
        await store.close()
    upgrade = await read_upgrade(address)
    older = [f"worker {row.name} ({row.release})" for row in outdated] + upgrade.older
    if older and not anyway:
        raise OlderWorkerError(_refusal(older), hint="Stop or update them, then try again.")
    from holdfast.store.sql.postgres import settings_for
    from holdfast.store.sql.postgres.upgrade import finish_upgrade

    return await finish_upgrade(settings_for(address, {}, FORMS))


def is_older(row: WorkerRow, than: str = __version__) -> bool:
    return _numbers(row.release) < _numbers(than)


def _numbers(release: str) -> list[int]:
    """The first three numbers of 1.2.3 or 1.2.3.dev4. Unreleased versions are distinguished by their
    sessions."""
    return [int(number) for number in _NUMBERS.findall(release)[:3]]


def _refusal(older: list[str]) -> str:
    more = f" and {len(older) - _SHOWN} more" if len(older) > _SHOWN else ""
    return f"code of an older version may be using this store: {', '.join(older[:_SHOWN])}{more}."
