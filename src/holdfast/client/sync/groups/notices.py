"""`client.notices`."""

# Written by tools/client.py from src/holdfast/client/aio/groups/notices.py. Do not change it here.

from __future__ import annotations

from holdfast.client import models
from holdfast.client.requests import request_of
from holdfast.client.sync.group import Group, Listing


class Notices(Group):
    def list(self) -> Listing[models.DeadNotice]:
        """Messages to people that were given up, at most 200."""
        request = request_of("GET", "/v1/notices/dead")
        return self._list(request, models.DeadNotice)

    def replay(self, message: str) -> models.DeadNotice:
        """Try it again, once its cause is fixed."""
        request = request_of("POST", "/v1/notices/dead/{message}/replay", {"message": message})
        return self._json(request, models.DeadNotice)
