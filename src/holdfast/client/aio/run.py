"""One run, by its id: read it, follow it, answer it, wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from anyio import sleep

from holdfast.client import models
from holdfast.client.aio.pages import AsyncPages
from holdfast.client.aio.streams import AsyncEventStream
from holdfast.client.problems import StillRunningError
from holdfast.client.retries import is_transient
from holdfast.errors import HoldfastError
from holdfast.types.backoff import Backoff
from holdfast.types.status import ENDED, RunStatus, run_label

if TYPE_CHECKING:
    from holdfast.client.aio.client import AsyncClient

AT_ONCE = 20.0
"""Seconds that one request asks the server to wait."""
POLL_BACKOFF = Backoff(first=0.25, longest=2.0)
"""Seconds between two reads of a run that waits for a person, for which no request can wait."""
RETRY_SECONDS = 0.5
"""Seconds until the next request to an unavailable server."""


class AsyncRun:
    """`id` and `status` are those of the last read."""

    def __init__(self, client: AsyncClient, id: str, detail: models.RunDetail | None = None) -> None:  # noqa: A002
        self.id = id
        self.detail = detail
        self._client = client
        self._status: str | None = None

    def __repr__(self) -> str:
        return f"AsyncRun({self.id!r}, status={self.status!r})"

    @property
    def status(self) -> str | None:
        return self._status or (None if self.detail is None else self.detail.status)

    def _update(self, detail: models.RunDetail) -> models.RunDetail:
        self.detail, self._status = detail, None
        return detail

    async def refresh(self) -> models.RunDetail:
        return self._update(await self._client.runs.get(self.id))

    def follow(self, *, after: int = 0) -> AsyncEventStream:
        """Its events from the first, or after number `after`, until it has ended. The stream stays open
        while the run waits for input."""
        return self._client.runs.stream(self.id, after=after)

    async def result(self, timeout: float | None = None) -> models.RunResult:
        """Its result, as soon as it has ended or waits for a person: see `status`.
        Raises StillRunningError after `timeout` seconds."""
        return await self._until(timeout, people=False)

    async def end(self, timeout: float | None = None) -> models.RunResult:
        """Its result when it has ended; also waits while it waits for people.
        Raises StillRunningError after `timeout` seconds."""
        return await self._until(timeout, people=True)

    async def _until(self, timeout: float | None, *, people: bool) -> models.RunResult:
        until = None if timeout is None else monotonic() + timeout
        pauses, away = POLL_BACKOFF.pauses(), None
        while True:
            left = AT_ONCE if until is None else max(0.0, min(AT_ONCE, until - monotonic()))
            asked = monotonic()
            try:
                found = await self._client.runs.result(self.id, wait=left)
            except HoldfastError as error:
                away = away or asked
                await self._wait_for_server(error, away, until)
                continue
            self._status, away = found.status, None
            # The questions are answered, but no worker has resumed the run yet: let the server wait for it.
            waits = found.status == "pending_input" and monotonic() - asked < max(left, POLL_BACKOFF.first)
            if found.status in ENDED or (waits and not people):
                return found
            if until is not None and monotonic() >= until:
                raise self._still_running_error(found.status, timeout)
            if waits:
                pause = next(pauses)
                await sleep(pause if until is None else max(0.0, min(pause, until - monotonic())))

    async def _wait_for_server(self, error: HoldfastError, away: float, until: float | None) -> None:
        """Waits for a server that restarts, as streams do. Raises the error if that does not help."""
        now = monotonic()
        if (
            not is_transient(error)
            or now - away > self._client.patience
            or (until is not None and now >= until)
        ):
            raise error
        await sleep(RETRY_SECONDS)

    def _still_running_error(self, status: str, timeout: float | None) -> StillRunningError:
        return StillRunningError(
            f"run {self.id} is {run_label(RunStatus(status))} after {timeout or 0:g} seconds.",
            hint="It keeps running. Wait longer, or follow it.",
            run=self.id,
        )

    def holds(self) -> AsyncPages[models.Hold]:
        """Its open holds that you may see."""
        return self._client.holds.list(run=[self.id], status=["pending"])

    async def answer(
        self, content: str | Mapping[str, Any], *, hold: str | None = None, idempotency_key: str | None = None
    ) -> models.InputTaken:
        """Answer its question: an option's id or label, a text, or `{decision, response_data, comment}`.
        `hold`, if several questions are open."""
        return await self._client.runs.input(
            self.id, content, checkpoint_id=hold, idempotency_key=idempotency_key
        )

    async def cancel(self, reason: str | None = None) -> models.RunDetail:
        return self._update(await self._client.runs.cancel(self.id, reason=reason))

    async def resume(self) -> models.RunDetail:
        """Resume it from its latest checkpoint."""
        return self._update(await self._client.runs.resume(self.id))
