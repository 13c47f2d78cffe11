"""What a person chose to be notified of, where a channel addresses them personally.

The first notice of a hold is always sent: a choice must not leave a run waiting that nobody was told of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.holds.directory.stored import TableDirectory
from holdfast.holds.notify.notice import Notice
from holdfast.holds.permissions.actor import names_of
from holdfast.holds.permissions.assignees import person_key
from holdfast.store.protocols import Store
from holdfast.types.outbox import REMINDED

KIND: Final = "preferences"


class NoticeChoices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`reminders`: of holds that still wait; `outcomes`: outcomes of holds that they were notified about."""

    reminders: bool = True
    outcomes: bool = True

    def takes(self, notice: Notice) -> bool:
        if notice.is_about_the_end:
            return self.outcomes
        return notice.topic != REMINDED or self.reminders


class _Kept(msgspec.Struct, frozen=True):
    notifications: NoticeChoices = NoticeChoices()


async def is_wanted_by(store: Store, tenant: str, address: str, notice: Notice) -> bool:
    for name in await _names(store, tenant, address):
        kept = await store.document(tenant, KIND, name)
        if kept is not None:
            return msgspec.json.decode(kept.body, type=_Kept).notifications.takes(notice)
    return True


async def _names(store: Store, tenant: str, address: str) -> Sequence[str]:
    person = await TableDirectory(store).person(tenant, address)
    return list(dict.fromkeys([person_key(address), *(names_of(person) if person else ())]))
