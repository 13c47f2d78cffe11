"""`client.limits`."""

# Written by tools/client.py from src/holdfast/client/aio/groups/limits.py. Do not change it here.

from __future__ import annotations

from holdfast.client import models
from holdfast.client.requests import request_of
from holdfast.client.sync.group import Group, Listing


class Limits(Group):
    def clear(self, name: str) -> None:
        """What the flow declares holds again."""
        request = request_of("DELETE", "/v1/limits/{name}", {"name": name})
        self._none(request)

    def list(self, *, prefix: str | None = None, keys: bool | None = None) -> Listing[models.Limit]:
        """Limits as they hold, with how many runs are inside and how many wait."""
        request = request_of("GET", "/v1/limits", query={"prefix": prefix, "keys": keys})
        return self._list(request, models.Limit)

    def set(self, name: str, *, concurrency: int | None = None, rate: str | None = None) -> models.Limit:
        """Set a limit in place of what the flow declares: `flow:refund`, `flow:refund/*`,
        `flow:refund/acme`."""
        request = request_of(
            "PUT", "/v1/limits/{name}", {"name": name}, maybe={"concurrency": concurrency, "rate": rate}
        )
        return self._json(request, models.Limit)
