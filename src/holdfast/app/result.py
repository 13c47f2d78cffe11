"""The result of a run, or what it waits for."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic

from holdfast.errors import RunError
from holdfast.model.record_bodies import ErrorInfo
from holdfast.model.secrets import Paths, masked
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus, run_label

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # With a default, so that a plain `Flow` or `Result` is one of any state.
    State = TypeVar("State", default=Any)
else:
    from typing import TypeVar

    State = TypeVar("State")


class Result(Generic[State]):
    """`status` distinguishes completed, failed, cancelled and waiting; nothing is inferred from the
    output."""

    def __init__(
        self,
        run_id: RunId,
        status: RunStatus,
        state: State,
        artifacts: dict[str, Any],
        error: ErrorInfo | None,
        holds: list[HoldRow],
        failed_node: str = "",
        totals: dict[str, float] | None = None,
        secrets: Paths = (),
        wakes_at: datetime | None = None,
    ) -> None:
        self.run_id = run_id
        self.status = status
        self.state = state
        self.artifacts = artifacts
        self.error = error
        self.holds = holds
        self.failed_node = failed_node
        # Over all settled steps so far: steps, duration (microseconds), tokens, cost.
        self.totals = totals or {}
        # Until when a run with the status `waiting` sleeps.
        self.wakes_at = wakes_at
        self._secrets = secrets

    def shown(self) -> tuple[Any, Any]:
        """State and artifacts without values that are declared secret: for people, files and other
        programs."""
        return masked(self.state, self._secrets), masked(self.artifacts, self._secrets)

    @property
    def completed(self) -> bool:
        return self.status is RunStatus.completed

    @property
    def waiting(self) -> bool:
        return self.status in (RunStatus.pending_input, RunStatus.waiting)

    @property
    def failed(self) -> bool:
        return self.status is RunStatus.failed

    def __repr__(self) -> str:
        more = f", error={self.error.message!r}" if self.error else ""
        return f"<Result {self.status} run={self.run_id}{more}>"

    def expect(self) -> Result[State]:
        """This result if the run completed; otherwise an error that says why not."""
        if self.completed:
            return self
        why = self.error.message if self.error else f"it is {run_label(self.status)}"
        raise RunError(f"run {self.run_id} did not complete: {why}")
