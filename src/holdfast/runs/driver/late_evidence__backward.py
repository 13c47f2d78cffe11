"""A run that we lost: another worker has it, or the store lost what it had acknowledged to us.

A settle that is refused because the stored head is lower than the one we know is never tried again: the
records that are missing may have had effects, and those that follow would hide it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import StoreError
from holdfast.telemetry import log
from holdfast.types.acknowledged import Acknowledged

if TYPE_CHECKING:
    from holdfast.runs.driver.driver import Driver


async def look_back(driver: Driver) -> None:
    """Hold what was acknowledged to us against the store. Where it is away, who comes back to it looks."""
    store, run = driver.runtime.store, driver.run
    try:
        known = await _acknowledged(driver)
        row = None if known is None else await store.lost_history(known)
    except StoreError as error:
        said = "run %s: whether its history is whole could not be asked: %s"
        log.warning(said, run, error, extra={"run": run})
        return
    if row is not None:
        log.error("run %s stops. %s", run, row.error, extra={"run": run, "seq": row.head})


async def _acknowledged(driver: Driver) -> Acknowledged | None:
    queue, lease = driver.queue, driver.lease
    last = queue.last
    if last is not None:
        return Acknowledged(run=lease.run, head=last.seq, term=last.term, at=last.at, worker=lease.worker)
    # Nothing was written here yet: what we loaded is all that we know.
    row = await driver.runtime.store.get_run(lease.run)
    if row is None or row.head >= queue.committed:
        return None
    loaded_at = driver.row.updated_at
    return Acknowledged(
        run=lease.run, head=queue.committed, term=lease.term, at=loaded_at, worker=lease.worker
    )
