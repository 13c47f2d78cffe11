"""Whether whoever a credential is of may still come in: who is not active in the directory may not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.directory.stored import TableDirectory
from holdfast.holds.permissions.assignees import person_key
from holdfast.telemetry import log

if TYPE_CHECKING:
    from holdfast.api.auth.grants import Grant
    from holdfast.app.holdfast import Holdfast

FRESH: Final = 5.0
"""Seconds for which an answer is believed, as that about a token is."""
_MOST_KNOWN: Final = 10_000


class Actives:
    """The directory of the house; without one, that of the store. Whom it does not know is not barred."""

    def __init__(self, house: Holdfast) -> None:
        self._house = house
        self._known: dict[tuple[str, str], tuple[float, bool]] = {}

    async def may_come(self, grant: Grant) -> bool:
        key = (grant.tenant, grant.subject)
        kept = self._known.get(key)
        if kept is not None and time.monotonic() - kept[0] < FRESH:
            return kept[1]
        asked = time.monotonic()
        try:
            active = await self._is_active(grant)
        except DirectoryUnavailableError as error:
            # As it was last: whoever may decide on a hold is asked again there, and nobody may meanwhile.
            log.warning("the directory does not say who is active: %s", error)
            active = kept is None or kept[1]
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = (asked, active)
        return active

    async def _is_active(self, grant: Grant) -> bool:
        directory = (await self._house.holds()).office.directory
        found = directory or TableDirectory(await self._house.open())
        person = await found.person(grant.tenant, person_key(grant.subject))
        return person is None or person.active
