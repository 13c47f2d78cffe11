"""Who started a run besides the name in `started_by`: everyone in the chain of the starter's credential, and
for a fork everybody who started its source. They count as initiators of its holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from holdfast.holds.permissions.assignees import same_person
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.types.document import Document
from holdfast.types.hold import HoldFacts, NewHold
from holdfast.types.schedule import person_behind
from holdfast.types.terms import PEOPLE

KIND: Final = "run_starters"
FORKED: Final = "run_forked_by"


class RunStarters:
    """Kept beside the run, and only for runs that have any."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, tenant: str, run: str, people: Iterable[str], *, started_by: str | None) -> None:
        """Before the run itself: a run without its starters would lack an exclusion."""
        first = person_behind(started_by) or ""
        names = [name for name in dict.fromkeys(people) if name.startswith(PEOPLE)]
        others = [name for name in names if not same_person(name, first)]
        if others:
            body = msgspec.json.encode(others)
            await self._store.put_document(Document(tenant=tenant, kind=KIND, name=run, body=body))

    async def of(self, tenant: str, run: str) -> tuple[str, ...]:
        kept = await self._store.document(tenant, KIND, run)
        return () if kept is None else msgspec.json.decode(kept.body, type=tuple[str, ...])

    async def of_source(self, source: RunRow) -> tuple[str, ...]:
        """Everybody who started a run, for a fork of it."""
        first = person_behind(source.started_by)
        return (*([] if first is None else [first]), *await self.of(source.tenant, source.id))

    async def put_forked_by(self, tenant: str, run: str, people: Sequence[str]) -> None:
        """Who made this fork through a server: they stand behind every decision that it took along."""
        body = msgspec.json.encode(people)
        await self._store.put_document(Document(tenant=tenant, kind=FORKED, name=run, body=body))

    async def forked_by(self, tenant: str, run: str) -> tuple[str, ...]:
        kept = await self._store.document(tenant, FORKED, run)
        return () if kept is None else msgspec.json.decode(kept.body, type=tuple[str, ...])

    async def delete(self, tenant: str, run: str) -> None:
        for kind in (KIND, FORKED):
            await self._store.drop_document(tenant, kind, run)


class StarterStep:
    """A step of the hold preparation: the starters are kept with the hold, where certain people decide."""

    def __init__(self, store: Store) -> None:
        self._starters = RunStarters(store)

    def concerns(self, hold: NewHold, facts: HoldFacts) -> bool:
        return hold.terms.binds_everybody or bool(hold.terms.excluded)

    async def prepare(self, hold: NewHold, facts: HoldFacts) -> NewHold:
        found = await self._starters.of(facts.tenant, facts.run)
        if not found:
            return hold
        return msgspec.structs.replace(hold, terms=msgspec.structs.replace(hold.terms, starters=found))
