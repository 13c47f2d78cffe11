"""The client."""

# Written by tools/client.py from src/holdfast/client/aio/client.py. Do not change it here.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from holdfast.client.options import StartOptions
from holdfast.client.settings import Retries, Token, settings_of
from holdfast.client.sync.groups import Groups
from holdfast.client.sync.run import Run
from holdfast.client.sync.transport import Transport


class Client(Groups):
    """A Holdfast server over HTTP.

        with Client("http://127.0.0.1:8420", token="...") as client:
            run = client.start("refund", {"order": "A17", "amount": 250})
            result = run.result()

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
        self._transport = Transport(settings)
        super().__init__(self._transport)

    def __repr__(self) -> str:
        return f"Client({self._transport.settings.shown!r})"

    @property
    def patience(self) -> float:
        """Seconds for which streams and waits try to reconnect to an unavailable server."""
        return self._transport.settings.patience

    def start(
        self,
        flow: str,
        input: Mapping[str, Any] | None = None,  # noqa: A002
        **options: Unpack[StartOptions],
    ) -> Run:
        """Start a run; `options` are those of `runs.create`. It is durable when this returns."""
        detail = self.runs.create(flow, input, **options)
        return Run(self, detail.id, detail)

    def run(self, id: str) -> Run:  # noqa: A002
        """An existing run, by its id. Sends no request yet."""
        return Run(self, id)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
