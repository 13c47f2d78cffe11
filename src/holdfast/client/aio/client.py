"""The client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from holdfast.client.aio.groups import AsyncGroups
from holdfast.client.aio.run import AsyncRun
from holdfast.client.aio.transport import AsyncTransport
from holdfast.client.options import StartOptions
from holdfast.client.settings import Retries, Token, settings_of


class AsyncClient(AsyncGroups):
    """A Holdfast server over HTTP.

        async with AsyncClient("http://127.0.0.1:8420", token="...") as client:
            run = await client.start("refund", {"order": "A17", "amount": 250})
            result = await run.result()

    The default address and token are HOLDFAST_URL and HOLDFAST_TOKEN. `client.runs`, `client.holds` and so
    on have a method for every operation of the API. Reads and requests with an idempotency key are retried.
    Raises HoldfastError, of the class that the server's problem names.
    """

    def __init__(
        self,
        url: str | None = None,
        token: Token = None,
        *,
        timeout: float = 30.0,
        retries: Retries | None = None,
        patience: float = 300.0,
    ) -> None:
        settings = settings_of(url, token, timeout=timeout, retries=retries, patience=patience)
        self._transport = AsyncTransport(settings)
        super().__init__(self._transport)

    def __repr__(self) -> str:
        return f"AsyncClient({self._transport.settings.shown!r})"

    @property
    def patience(self) -> float:
        """Seconds for which streams and waits try to reconnect to an unavailable server."""
        return self._transport.settings.patience

    async def start(
        self,
        flow: str,
        input: Mapping[str, Any] | None = None,  # noqa: A002
        **options: Unpack[StartOptions],
    ) -> AsyncRun:
        """Start a run; `options` are those of `runs.create`. It is durable when this returns."""
        detail = await self.runs.create(flow, input, **options)
        return AsyncRun(self, detail.id, detail)

    def run(self, id: str) -> AsyncRun:  # noqa: A002
        """An existing run, by its id. Sends no request yet."""
        return AsyncRun(self, id)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()
