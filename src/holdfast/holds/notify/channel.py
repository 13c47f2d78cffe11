"""What a channel is: something that takes a notice and says whether it has accepted it. It never decides."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from holdfast.errors import StoreError
from holdfast.holds.notify.notice import Notice
from holdfast.telemetry import log
from holdfast.types.terms import Assignee
from holdfast.types.text import clean_text

PATIENCE: Final = 60.0  # seconds for one recipient


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one attempt. `retry`: it may work later, after `after` seconds where the other side says
    so. `detail` is for people: what the other side said, without secrets."""

    accepted: bool
    retry: bool = False
    after: float | None = None
    detail: str = ""


class ChannelScope(msgspec.Struct, frozen=True, kw_only=True):
    """Which notices a channel is for; what is empty asks for nothing. `outcomes`: it is also told how a hold
    ended, where it was told that the hold is open."""

    topics: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    outcomes: bool = True

    def takes(self, notice: Notice) -> bool:
        if notice.is_about_the_end:
            return self.outcomes
        return (
            (not self.topics or notice.topic in self.topics)
            and (not self.assignees or str(notice.assignee) in self.assignees)
            and (not self.priorities or notice.priority in self.priorities)
        )


class Channel(Protocol):
    """`personal`: each address is one person, who may get a link of their own."""

    name: str
    scope: ChannelScope
    personal: bool

    async def addresses(self, to: Assignee, tenant: str) -> Sequence[str]:
        """Where this channel reaches them. Who is in a group or a role is for the channel to find out."""
        ...

    async def admins(self) -> Sequence[str]:
        """Where the digest of holds that nobody is asked about goes."""
        ...

    async def send(self, notice: Notice) -> Delivery:
        """To `notice.to`. Never raises for what the other side does."""
        ...


async def reach(channel: Channel, to: Assignee, tenant: str) -> Sequence[str] | Delivery:
    """Where it reaches them. A channel that does not know now is no reason to leave out the others."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await channel.addresses(to, tenant)
    except StoreError:
        raise
    except Exception as error:
        log.warning("channel %s does not know where to reach %s: %r", channel.name, to, error)
        return Delivery(accepted=False, retry=True, detail=f"{channel.name}: {clean_text(error, 200)}")


async def send_notice(channel: Channel, notice: Notice) -> Delivery:
    """A channel that raises or hangs all the same has not accepted it."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await channel.send(notice)
    except TimeoutError:
        return Delivery(accepted=False, retry=True, detail="no answer in time")
    except Exception as error:
        log.exception("channel %s failed", channel.name)
        return Delivery(accepted=False, retry=True, detail=clean_text(error, 200))
