"""What a house gives its runtimes for the people who are asked: who they are, which rules there are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from holdfast.holds.directory.base import Directory
from holdfast.holds.directory.file import FileDirectory
from holdfast.holds.directory.tables import TableDirectory
from holdfast.holds.furnishing import usual_desk
from holdfast.holds.notify.channel import Channel
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.deliverer import Deliverer
from holdfast.holds.notify.settings import NotifySettings, read_settings, settings_from_environment
from holdfast.holds.policies.applying import PolicyStep
from holdfast.holds.policies.guardrails import Guardrails
from holdfast.holds.policies.judgement import Judges
from holdfast.holds.policies.judging import Arbiter
from holdfast.holds.policies.loading import Given, Rulebook, names_stored, policies_of
from holdfast.holds.policies.policy import Policy
from holdfast.holds.service import HoldService
from holdfast.holds.sweeping import HoldSweeper
from holdfast.store.base import Store
from holdfast.types.clock import Clock, SystemClock

VARIABLE: Final = "HOLDFAST_DIRECTORY"
IN_STORE: Final = "store"


class Furniture(msgspec.Struct, frozen=True, kw_only=True):
    """As it was given to the house."""

    directory: Directory | str | None = None
    policies: tuple[Policy, ...] = ()
    stored: bool = False
    judges: Judges | None = None
    guardrails: Guardrails | None = None
    notify: NotifySettings | None = None
    channels: tuple[Channel, ...] = ()

    def parts(self, store: Store, clock: Clock | None) -> dict[str, Any]:
        """What a `Runtime` takes. Where there are rules, there are guardrails over what they approve."""
        time, directory = clock or SystemClock(), self._directory(store)
        book = Rulebook(self.policies, judges=self.judges, stored=store if self.stored else None)
        rails = self.guardrails or (None if book.is_empty else Guardrails())
        people = HoldService(store, directory=directory, guardrails=rails)
        channels = Channels(store, time, settings=self.notify, directory=directory, given=self.channels)
        return {
            "desk": usual_desk(store, directory=directory, policies=PolicyStep(book, store)),
            "sweeper": HoldSweeper(store, time, directory=directory, guardrails=rails),
            "people": people,
            "arbiter": None if book.is_empty else Arbiter(people.office, book),
            "deliverer": Deliverer(store, time, channels),
        }

    def _directory(self, store: Store) -> Directory | None:
        return (
            TableDirectory(store) if self.directory == IN_STORE else cast("Directory | None", self.directory)
        )


def furniture(
    *,
    directory: Directory | str | Path | None = None,
    policies: Given | Iterable[Given] | None = None,
    judges: Judges | None = None,
    guardrails: Guardrails | None = None,
    notify: NotifySettings | str | Path | None = None,
    channels: Sequence[Channel] = (),
) -> Furniture:
    """Raises PolicyInvalidError and SettingsError: a house with rules that cannot be read does not open."""
    return Furniture(
        directory=_directory(directory or os.environ.get(VARIABLE)),
        policies=policies_of(policies, judges),
        stored=names_stored(policies),
        judges=judges,
        guardrails=guardrails,
        notify=_settings(notify),
        channels=tuple(channels),
    )


def _directory(given: Directory | str | Path | None) -> Directory | str | None:
    """A path is that of a file; `store`: people, groups and roles are kept in the store."""
    if isinstance(given, (str, Path)) and str(given) != IN_STORE:
        return FileDirectory(given)
    return IN_STORE if isinstance(given, Path) else given


def _settings(given: NotifySettings | str | Path | None) -> NotifySettings | None:
    if given is None:
        return settings_from_environment()
    return given if isinstance(given, NotifySettings) else read_settings(given)
