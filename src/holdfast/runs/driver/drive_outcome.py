"""What the caller of a driver waits for."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from holdfast.model.user_code.tasks import OwnedTask
from holdfast.runs.driver.handler_call import Disowned
from holdfast.types.status import RunStatus


class DrivenRun(Protocol):
    """A driver."""

    def stop(self) -> bool: ...


class DriveOutcome(asyncio.Future[RunStatus]):
    """What the caller of a driver waits for. A caller that is cancelled stops the driver and waits for its
    end, as if it waited for the driver's task: but that task may be replaced."""

    def __init__(self, driven: DrivenRun) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self._driven = driven

    def cancel(self, msg: Any | None = None) -> bool:
        return self._driven.stop()

    def reach(self, status: RunStatus) -> None:
        """The end of the task itself, in its last step: the caller continues a turn of the loop earlier than
        with `settle`."""
        if not self.done():
            self.set_result(status)

    def settle(self, task: asyncio.Task[RunStatus]) -> None:
        """The task has ended; one that was disowned changes nothing."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Disowned) or (isinstance(task, OwnedTask) and task.disowned) or self.done():
            return
        if task.cancelled():
            super().cancel()
        elif error is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result())
