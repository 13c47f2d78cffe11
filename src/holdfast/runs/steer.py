"""Messages of people to an agent that is at work: kept beside the run until a conversation has taken them.

A conversation marks a message as its own, records it, and then removes it: each is delivered once, to the
conversation that took it, also after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec

from holdfast.errors import InputError, RunEndedError, RunStatusError
from holdfast.runs.history.story_loader import load_story
from holdfast.store.protocols import Store
from holdfast.store.refusals import require_live
from holdfast.types.document import Document
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED
from holdfast.types.text import require_text

if TYPE_CHECKING:
    from holdfast.checkpoint.visit import Visit
    from holdfast.runs.access import RunAccess

KIND: Final = "steer"
LONGEST: Final = 16_384
"""Characters of one message."""
MOST: Final = 100
"""Messages that wait for one run."""
_OPEN: Final = frozenset({"running", "asking", "waiting", "ready"})
# The first record of a conversation with a model; the one before a command-line agent is started.
_PROMPT, _SESSION = "/prompt", "session"


class SteerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """`taken_by`: the conversation that gets it; empty while it waits."""

    id: str
    text: str
    by: str
    at: int
    taken_by: str = ""


async def steer(service: RunAccess, run: str, text: str, *, by: str) -> SteerMessage:
    """Raises RunStatusError if no agent is at work, RunEndedError, and InputError."""
    row = await service.get(run)
    require_live(row)
    if row.status in ENDED:
        raise RunEndedError(f"run {row.id} has already {row.status}.", run=row.id, status=row.status)
    require_text(text, "the message")
    if not text.strip():
        raise InputError("the message is empty.", hint="Say what the agent should know or do.")
    if len(text) > LONGEST:
        raise InputError(
            f"the message has {len(text):,} characters.", hint=f"At most {LONGEST:,} are allowed."
        )
    story = await load_story(service, row, None)
    if not any(_is_steerable(visit) for visit in story.visits):
        raise RunStatusError(
            f"no stage of run {row.id} with an agent is active: nobody would get the message.",
            hint="Steer a run while a model with tools, or a command-line agent, is at work.",
            run=row.id,
            status=row.status,
        )
    box = SteerMessages(service.store, row.tenant, row.id)
    if len(await box.all()) >= MOST:
        raise RunStatusError(f"{MOST} messages wait for run {row.id} already.", run=row.id, status=row.status)
    return await box.put(text, by)


def _is_steerable(visit: Visit) -> bool:
    return visit.state in _OPEN and any(
        call.name == _SESSION or (call.ordinal.startswith("=agent") and call.ordinal.endswith(_PROMPT))
        for call in visit.calls
    )


class SteerMessages:
    """Those of one run, the oldest first."""

    def __init__(self, store: Store, tenant: str, run: RunId) -> None:
        self._store = store
        self._tenant = tenant
        self._run = run

    async def put(self, text: str, by: str) -> SteerMessage:
        now = self._store.now()
        made = SteerMessage(id=f"{now:020}-{uuid4().hex[:12]}", text=text, by=by, at=now)
        await self._store.put_document(self._document(made), expect=0)
        return made

    def _document(self, message: SteerMessage) -> Document:
        body = msgspec.json.encode(message)
        return Document(tenant=self._tenant, kind=KIND, name=f"{self._run}/{message.id}", body=body)

    async def all(self) -> list[tuple[SteerMessage, int]]:
        """With their revisions."""
        found = await self._store.documents(self._tenant, KIND, prefix=f"{self._run}/", limit=MOST)
        return [(msgspec.json.decode(each.body, type=SteerMessage), each.revision) for each in found]

    async def waiting(self, taker: str) -> bool:
        return any(each.taken_by in ("", taker) for each, _ in await self.all())

    async def take(self, taker: str) -> list[SteerMessage]:
        """Those that it has taken before too, unless they were removed."""
        found: list[SteerMessage] = []
        for each, revision in await self.all():
            mine = msgspec.structs.replace(each, taken_by=taker)
            if each.taken_by == taker:
                found.append(each)
            # Another conversation of the run may be faster.
            elif not each.taken_by and await self._store.put_document(self._document(mine), expect=revision):
                found.append(mine)
        return found

    async def remove(self, *ids: str) -> None:
        for each in ids:
            await self._store.drop_document(self._tenant, KIND, f"{self._run}/{each}")

    async def remove_all(self) -> None:
        while found := await self.all():
            await self.remove(*(each.id for each, _ in found))
