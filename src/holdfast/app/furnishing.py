"""What a house gives its runtimes for the people who are asked: who they are, which rules there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.holds.directory.base import Directory
from holdfast.holds.furnishing import usual_desk
from holdfast.holds.policies.applying import PolicyStep
from holdfast.holds.policies.guardrails import Guardrails
from holdfast.holds.policies.judgement import Judges
from holdfast.holds.policies.judging import Arbiter
from holdfast.holds.policies.loading import Given, Rulebook, names_stored, policies_of
from holdfast.holds.policies.rules import Policy
from holdfast.holds.service import HoldService
from holdfast.holds.sweeping import HoldSweeper
from holdfast.store.base import Store
from holdfast.types.clock import Clock, SystemClock


class Furniture(msgspec.Struct, frozen=True, kw_only=True):
    """As it was given to the house."""

    directory: Directory | None = None
    policies: tuple[Policy, ...] = ()
    stored: bool = False
    judges: Judges | None = None
    guardrails: Guardrails | None = None

    def parts(self, store: Store, clock: Clock | None) -> dict[str, Any]:
        """What a `Runtime` takes. Where there are rules, there are guardrails over what they approve."""
        book = Rulebook(self.policies, judges=self.judges, stored=store if self.stored else None)
        rails = self.guardrails or (None if book.is_empty else Guardrails())
        people = HoldService(store, directory=self.directory, guardrails=rails)
        return {
            "desk": usual_desk(store, directory=self.directory, policies=PolicyStep(book)),
            "sweeper": HoldSweeper(store, clock or SystemClock(), directory=self.directory, guardrails=rails),
            "people": people,
            "arbiter": None if book.is_empty else Arbiter(people.office, book),
        }


def furniture(
    *,
    directory: Directory | None = None,
    policies: Given | Iterable[Given] | None = None,
    judges: Judges | None = None,
    guardrails: Guardrails | None = None,
) -> Furniture:
    """Raises PolicyInvalidError and SettingsError: a house with rules that cannot be read does not open."""
    stored, others = names_stored(policies)
    return Furniture(
        directory=directory,
        policies=policies_of(others, judges),
        stored=stored,
        judges=judges,
        guardrails=guardrails,
    )
