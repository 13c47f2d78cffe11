"""`client.directory`."""

# Written by tools/client.py from src/holdfast/client/aio/groups/directory.py. Do not change it here.

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from holdfast.client import models
from holdfast.client.requests import request_of
from holdfast.client.sync.group import Group, Listing


class Directory(Group):
    def drop_group(self, key: str) -> None:
        """Nobody is in it any more."""
        request = request_of("DELETE", "/v1/directory/groups/{key}", {"key": key})
        self._none(request)

    def drop_person(self, person: str) -> None:
        """Gone from the directory, and from every group and role."""
        request = request_of("DELETE", "/v1/directory/people/{person}", {"person": person})
        self._none(request)

    def drop_role(self, key: str) -> None:
        """Nobody has it any more."""
        request = request_of("DELETE", "/v1/directory/roles/{key}", {"key": key})
        self._none(request)

    def end_away(self, person: str) -> None:
        """Back again."""
        request = request_of("DELETE", "/v1/directory/people/{person}/away", {"person": person})
        self._none(request)

    def groups(self) -> Listing[models.Circle]:
        """All groups."""
        request = request_of("GET", "/v1/directory/groups")
        return self._list(request, models.Circle)

    def people(self) -> Listing[models.Person]:
        """Everybody in the directory of the store."""
        request = request_of("GET", "/v1/directory/people")
        return self._list(request, models.Person)

    def person(self, person: str) -> models.Person:
        """By id or address."""
        request = request_of("GET", "/v1/directory/people/{person}", {"person": person})
        return self._json(request, models.Person)

    def put_away(
        self,
        person: str,
        substitute: str,
        *,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
    ) -> None:
        """Out of office; a substitute acts for them."""
        request = request_of(
            "PUT",
            "/v1/directory/people/{person}/away",
            {"person": person},
            sent={"substitute": substitute},
            maybe={"since": since, "until": until},
        )
        self._none(request)

    def put_group(self, key: str, members: Sequence[str], *, name: str | None = None) -> models.Circle:
        """With exactly these members."""
        request = request_of(
            "PUT", "/v1/directory/groups/{key}", {"key": key}, sent={"members": members}, maybe={"name": name}
        )
        return self._json(request, models.Circle)

    def put_person(
        self,
        person: str,
        *,
        email: str | None = None,
        name: str | None = None,
        active: bool | None = None,
        language: str | None = None,
        zone: str | None = None,
    ) -> models.Person:
        """New, or changed. Who is not `active` may do nothing."""
        request = request_of(
            "PUT",
            "/v1/directory/people/{person}",
            {"person": person},
            maybe={"email": email, "name": name, "active": active, "language": language, "zone": zone},
        )
        return self._json(request, models.Person)

    def put_role(self, key: str, members: Sequence[str], *, name: str | None = None) -> models.Circle:
        """With exactly these members."""
        request = request_of(
            "PUT", "/v1/directory/roles/{key}", {"key": key}, sent={"members": members}, maybe={"name": name}
        )
        return self._json(request, models.Circle)

    def roles(self) -> Listing[models.Circle]:
        """All roles that holds can wait for."""
        request = request_of("GET", "/v1/directory/roles")
        return self._list(request, models.Circle)
