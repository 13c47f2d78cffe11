"""`client.admin`."""

# Written by tools/client.py from src/holdfast/client/aio/groups/admin.py. Do not change it here.

from __future__ import annotations

from holdfast.client import models
from holdfast.client.requests import request_of
from holdfast.client.sync.group import Group, Listing


class Admin(Group):
    def figures(self) -> models.Figures:
        """How much there is to do, and how late it is."""
        request = request_of("GET", "/v1/figures")
        return self._json(request, models.Figures)

    def status(self) -> models.Status:
        """How the server and its store are."""
        request = request_of("GET", "/v1/admin/status")
        return self._json(request, models.Status)

    def workers(self) -> Listing[models.Worker]:
        """Who works, by name; also those that have fallen silent within the last day."""
        request = request_of("GET", "/v1/workers")
        return self._list(request, models.Worker)
