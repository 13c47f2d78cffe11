"""The actions that a simulated person performs on a hold."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.types.hold import HoldRow
from holdfast.types.terms import Actor, operator

if TYPE_CHECKING:
    from holdfast.holds.service import HoldService

YES: Final = ("approve", "approved", "yes", "accept", "ok")
NO: Final = ("reject", "rejected", "no", "decline", "deny")


class ActingPerson(msgspec.Struct, frozen=True, kw_only=True):
    """Who acts. `every`: with every right, like an operator on the store itself; else with these rights and
    those of the instance's directory."""

    name: str
    every: bool = True
    groups: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    rights: frozenset[str] = frozenset()

    def at(self, hold: HoldRow) -> Actor:
        if self.every:
            return operator(self.name, tenant=hold.tenant)
        return Actor(
            id=self.name, tenant=hold.tenant, groups=self.groups, roles=self.roles, rights=self.rights
        )


class PlannedAction(msgspec.Struct, frozen=True, kw_only=True):
    """A planned action, `within` after the hold was opened. `says`: for a decision, the first of these that
    the hold offers; for other actions, the text or the target."""

    says: tuple[str, ...] = ()
    within: timedelta
    to: str | None
    data: Any = None
    comment: str | None = None
    by: ActingPerson
    do: str = "answer"

    @property
    def text(self) -> str:
        return self.says[0]


async def perform(reply: PlannedAction, hold: HoldRow, holds: HoldService) -> None:
    """Raises what the service raises: a test plans only allowed actions, or expects the error."""
    await _ACTIONS[reply.do](reply, hold, holds)


def word(reply: PlannedAction, hold: HoldRow) -> str:
    """The option of this hold among the words for yes or no."""
    offered = [option.id for option in hold.options or ()]
    return next((each for each in reply.says if each in offered), reply.text)


def _body(reply: PlannedAction, hold: HoldRow) -> dict[str, Any]:
    return {"decision": word(reply, hold), "response_data": reply.data, "comment": reply.comment}


async def _answer(reply: PlannedAction, hold: HoldRow, holds: HoldService) -> None:
    if reply.by.every:
        answer = word(reply, hold)
        await holds.answer(hold.id, answer, data=reply.data, comment=reply.comment, by=reply.by.name)
    else:
        await holds.resolve(reply.by.at(hold), hold.id, _body(reply, hold))


async def _place(reply: PlannedAction, hold: HoldRow, holds: HoldService) -> None:
    await holds.place(reply.by.at(hold), hold.id, _body(reply, hold))


async def _undo(reply: PlannedAction, hold: HoldRow, holds: HoldService) -> None:
    await holds.undo(reply.by.at(hold), hold.id)


async def _comment(reply: PlannedAction, hold: HoldRow, holds: HoldService) -> None:
    await holds.comment(reply.by.at(hold), hold.id, reply.text)


async def _claim(reply: PlannedAction, hold: HoldRow, holds: HoldService) -> None:
    await holds.claim(reply.by.at(hold), hold.id)


async def _release(reply: PlannedAction, hold: HoldRow, holds: HoldService) -> None:
    await holds.release(reply.by.at(hold), hold.id)


async def _reassign(reply: PlannedAction, hold: HoldRow, holds: HoldService) -> None:
    await holds.reassign(reply.by.at(hold), hold.id, reply.text)


async def _ask_back(reply: PlannedAction, hold: HoldRow, holds: HoldService) -> None:
    await holds.ask_back(reply.by.at(hold), hold.id, reply.text, to=reply.says[1])


async def _answer_question(reply: PlannedAction, hold: HoldRow, holds: HoldService) -> None:
    await holds.reply(reply.by.at(hold), hold.id, reply.text)


async def _cancel(reply: PlannedAction, hold: HoldRow, holds: HoldService) -> None:
    await holds.cancel(reply.by.at(hold), hold.id, reason=reply.text)


_ACTIONS: Final[dict[str, Callable[[PlannedAction, HoldRow, HoldService], Awaitable[None]]]] = {
    "answer": _answer,
    "place": _place,
    "undo": _undo,
    "comment": _comment,
    "claim": _claim,
    "release": _release,
    "reassign": _reassign,
    "ask_back": _ask_back,
    "reply": _answer_question,
    "cancel": _cancel,
}
DECIDING: Final[Sequence[str]] = ("answer", "place")
