"""Observers of what the drivers of this process do: traces, metrics, live views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.runs.driver.driver import Driver
    from holdfast.types.lease import Lease
    from holdfast.types.record import Record
    from holdfast.types.status import RunStatus


class RunObserver(Protocol):
    """Calls are made on the event loop, must return at once and must not raise: the run does not wait."""

    def began(self, driver: Driver) -> None:
        """A run was claimed and loaded; nothing of it has run yet."""
        ...

    def committed(self, lease: Lease, records: list[Record]) -> None:
        """These records are durable."""
        ...

    def left(self, driver: Driver, status: RunStatus | None, error: BaseException | None) -> None:
        """The run has ended, was parked or released (`status`), or was lost (`error`)."""
        ...

    async def close(self) -> None:
        """Send what is still unsent: the runtime closes."""
        ...


class RunObservers:
    """Several observers, called in the order in which they were added."""

    def __init__(self, *watches: RunObserver) -> None:
        self._watches = watches

    def began(self, driver: Driver) -> None:
        for watch in self._watches:
            watch.began(driver)

    def committed(self, lease: Lease, records: list[Record]) -> None:
        for watch in self._watches:
            watch.committed(lease, records)

    def left(self, driver: Driver, status: RunStatus | None, error: BaseException | None) -> None:
        for watch in self._watches:
            watch.left(driver, status, error)

    async def close(self) -> None:
        for watch in self._watches:
            await watch.close()


def combine_observers(first: RunObserver | None, second: RunObserver) -> RunObserver:
    return second if first is None else RunObservers(first, second)
