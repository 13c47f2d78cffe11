"""A worker says once, when it begins, what of its store weakens the promise that nothing is lost."""

from __future__ import annotations

from holdfast.errors import StoreError
from holdfast.store.protocols import Store
from holdfast.telemetry import log


async def caution(store: Store) -> None:
    try:
        facts = await store.durability()
    except StoreError:
        return  # who works hears of that anyway
    for weakness in facts.weak:
        log.warning("%s; `holdfast doctor` says more", weakness)
