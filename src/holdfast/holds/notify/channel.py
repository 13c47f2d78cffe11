"""The channel protocol: it accepts a notice or not, and never decides a hold."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from holdfast.errors import StoreError
from holdfast.holds.notify.escape import error_line
from holdfast.holds.notify.notice import Notice
from holdfast.telemetry import log
from holdfast.types.terms import Assignee

PATIENCE: Final = 60.0  # seconds for one recipient


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one attempt. `retry`: it may work later, after `after` seconds if the receiver says so.
    `detail` is for people: the receiver's answer, without secrets."""

    accepted: bool
    retry: bool = False
    after: float | None = None
    detail: str = ""


class ChannelScope(msgspec.Struct, frozen=True, kw_only=True):
    """Which notices a channel gets; an empty field matches all. `outcomes`: it also gets a notice of the end
    of holds that it was notified of."""

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
    """`personal`: each address is one person, who may get a personal link."""

    name: str
    scope: ChannelScope
    personal: bool

    async def addresses(self, to: Assignee, tenant: str) -> Sequence[str]:
        """The addresses of the assignee in this channel. The channel looks up the members of groups and
        roles."""
        ...

    async def admins(self) -> Sequence[str]:
        """The addresses for the digest of unassigned holds."""
        ...

    async def send(self, notice: Notice) -> Delivery:
        """Send to `notice.to`. Never raises for errors of the receiver."""
        ...


async def reach(channel: Channel, to: Assignee, tenant: str) -> Sequence[str] | Delivery:
    """The addresses in this channel. An error of one channel does not stop the others."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await channel.addresses(to, tenant)
    except StoreError:
        raise
    except Exception as error:
        log.warning("channel %s has no address for %s: %r", channel.name, to, error)
        return Delivery(accepted=False, retry=True, detail=f"{channel.name}: {error_line(error)}")


async def send_notice(channel: Channel, notice: Notice) -> Delivery:
    """A channel that raises or hangs has not accepted it."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await channel.send(notice.without_secrets())
    except TimeoutError:
        return Delivery(accepted=False, retry=True, detail="no answer in time")
    except Exception as error:
        log.exception("channel %s failed", channel.name)
        return Delivery(accepted=False, retry=True, detail=error_line(error))
