"""Feedback on the work of agents: the latest thousand entries of each tenant are kept."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

import msgspec

from holdfast.errors import InputError
from holdfast.holds.actions.submission import require_comment
from holdfast.holds.interactions.builders import ASPECTS, FEEDBACK_TYPES
from holdfast.holds.interactions.question import require_known
from holdfast.store.protocols import Store
from holdfast.types.document import Document
from holdfast.types.ids import DEFAULT_TENANT

KIND: Final = "feedback"
KEPT: Final = 1000


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """`importance`: 1 to 5. `hold`: the question that it is about, if any."""

    text: str
    type: str = "guidance"
    aspect: str = "other"
    importance: int = 3
    agent: str = ""
    by: str = ""
    hold: str | None = None
    at: int = 0


class FeedbackLog:
    """Feedback about agents, possible at any time."""

    def __init__(self, store: Store, tenant: str = DEFAULT_TENANT) -> None:
        self.store = store
        self.tenant = tenant

    async def give(self, feedback: Feedback) -> Feedback:
        """Raises InputError if it is empty or of an unknown kind, ValueTooLargeError."""
        if not require_comment(feedback.text).strip():
            raise InputError("feedback must not be empty.")
        require_known("type", feedback.type, FEEDBACK_TYPES)
        require_known("aspect", feedback.aspect, ASPECTS)
        if not 1 <= feedback.importance <= 5:
            raise InputError(f"the importance {feedback.importance!r} is not between 1 and 5.")
        kept = msgspec.structs.replace(feedback, at=feedback.at or self.store.now())
        # Ordered by time; a random suffix keeps two entries of one microsecond apart.
        name = f"{kept.at:020d}-{uuid4().hex}"
        body = msgspec.json.encode(kept)
        await self.store.put_document(Document(tenant=self.tenant, kind=KIND, name=name, body=body))
        await self._forget()
        return kept

    async def query(
        self,
        *,
        agent: str | None = None,
        since: int = 0,
        type: str | None = None,  # noqa: A002
        limit: int = 100,
    ) -> list[Feedback]:
        """The latest first."""
        found = [msgspec.json.decode(each.body, type=Feedback) for each in await self._all(since)]
        wanted = [f for f in reversed(found) if agent in (None, f.agent) and type in (None, f.type)]
        return wanted[:limit]

    async def _forget(self) -> None:
        found = await self._all(0)
        for old in found[: max(0, len(found) - KEPT)]:
            await self.store.drop_document(self.tenant, KIND, old.name)

    async def _all(self, since: int) -> list[Document]:
        after = f"{since - 1:020d}~" if since > 0 else ""
        return await self.store.documents(self.tenant, KIND, after=after, limit=KEPT + 100)
