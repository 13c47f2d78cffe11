"""The policies of a running instance: the preparation step that applies them, and the arbiter that
decides."""

from __future__ import annotations

from holdfast.holds.actions.context import HoldContext
from holdfast.holds.policies.apply import PolicyStep
from holdfast.holds.policies.arbiter import Arbiter
from holdfast.holds.policies.guardrails import Guardrails
from holdfast.holds.policies.load import PolicyLoader
from holdfast.store.protocols import Store


class PolicyRuntime:
    def __init__(self, store: Store, book: PolicyLoader, guardrails: Guardrails | None = None) -> None:
        self.book = book
        self.guardrails = guardrails or Guardrails()
        self.step = PolicyStep(book, store)

    def arbiter(self, ctx: HoldContext) -> Arbiter:
        return Arbiter(ctx, self.book)
