"""Rules at work: the step of the desk that applies them, and the arbiter that decides by them."""

from __future__ import annotations

from holdfast.holds.acts.office import Office
from holdfast.holds.policies.applying import PolicyStep
from holdfast.holds.policies.guardrails import Guardrails
from holdfast.holds.policies.judging import Arbiter
from holdfast.holds.policies.loading import Rulebook
from holdfast.store.base import Store


class Ruling:
    def __init__(self, store: Store, book: Rulebook, guardrails: Guardrails | None = None) -> None:
        self.book = book
        self.guardrails = guardrails or Guardrails()
        self.step = PolicyStep(book, store)

    def arbiter(self, office: Office) -> Arbiter:
        return Arbiter(office, self.book)
