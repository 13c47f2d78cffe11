"""`client.calendars`."""

# Written by tools/client.py from src/holdfast/client/aio/groups/calendars.py. Do not change it here.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.client import models
from holdfast.client.requests import request_of
from holdfast.client.sync.group import Group, Listing


class Calendars(Group):
    def list(self) -> Listing[models.HoldSetting]:
        """Those that business time is counted by; `default` is that of holds that name none."""
        request = request_of("GET", "/v1/calendars")
        return self._list(request, models.HoldSetting)

    def put(self, name: str, body: Mapping[str, Any]) -> models.HoldSetting:
        """Write it. The deadlines of open holds that it counts are counted again."""
        request = request_of("PUT", "/v1/calendars/{name}", {"name": name}, whole=body)
        return self._json(request, models.HoldSetting)
