"""The deliverer: sends the messages of the outbox through the channels. Any number of them may run.

A message is sent after the commit that wrote it, at least once: after a crash between sending and recording
it is sent again, with the same id. It is not sent if the hold is decided or reassigned by then.

Failed notices are retried with growing delays for about three days. As long a notice waits for a first
channel; then it is skipped, so that an instance without channels does not collect them for ever.

A notice links to the hold in the inbox, or contains a personal link.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holdfast.errors import StoreError
from holdfast.holds.links.keys import LinkKeys
from holdfast.holds.links.reply_addresses import mint_reply
from holdfast.holds.links.tokens import LinkGrant, mint, strength_of
from holdfast.holds.notify.audience import asked_back, audience, in_flight, skip_reason
from holdfast.holds.notify.channel import Channel, Delivery, reach, send_notice
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.choices import is_wanted_by
from holdfast.holds.notify.delivery_log import DeliveryLog
from holdfast.holds.notify.digest import Digest
from holdfast.holds.notify.escape import error_line
from holdfast.holds.notify.expiry import skip_overdue
from holdfast.holds.notify.notice import Notice, notice_of
from holdfast.holds.notify.recipients import Recipient, informed_recipients, recipients_of
from holdfast.holds.notify.settings import TOPICS
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.clock import MICROS, Clock
from holdfast.types.delivery_retry import next_try
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.outbox import ASKED_BACK, CLOSED, LINK, OutboxRow, OutboxState
from holdfast.types.redaction import tenant_scope
from holdfast.types.terms import Assignee


class LinkBuilder:
    """`base_url`: the public address of the server; without one, notices have no link."""

    def __init__(self, store: Store, base_url: str = "", keys: LinkKeys | None = None) -> None:
        self.store = store
        self.base_url = base_url.rstrip("/")
        self.keys = keys or LinkKeys(store)

    async def link(
        self, row: HoldRow, notice: Notice, to: str, *, personal: bool, asked: LinkGrant | None = None
    ) -> str:
        """A shared channel gets a link to the inbox, where people sign in. A personal link works without
        scripts: the server exchanges its token for a cookie at once. Opening it decides nothing, so previews
        and mail scanners may open it. `asked`: what the link allows, if a person asked for it."""
        if not self.base_url:
            return ""
        # A channel with many readers gets no token: any of them could decide in the recipient's name.
        if not personal or notice.is_about_the_end or notice.topic == ASKED_BACK:
            return f"{self.base_url}/inbox/{row.id}"
        purpose = "view" if strength_of(row) == "view_only" else "decide"
        grant = LinkGrant(to=f"user:{to}", purpose=purpose)
        if asked is not None:
            grant = msgspec.structs.replace(asked, to=f"user:{to}", by=())
        key = await self.keys.signing(row.tenant)
        token = mint(row, grant, key, self.store.now())
        return f"{self.base_url}/l/{token}"

    async def reply_token(self, row: HoldRow, notice: Notice, to: str, *, personal: bool) -> str:
        """The token with which this reader can decide in a reply; empty if the hold requires signing in."""
        if not personal or notice.is_about_the_end or notice.topic == ASKED_BACK or not row.options:
            return ""
        if strength_of(row) != "decide_low_risk":
            return ""
        return mint_reply(row, to, await self.keys.signing(row.tenant), self.store.now())


BATCH: Final = 20
# Longer than several slow sends; a deliverer that died delays its messages by this much.
LEASE: Final = 300 * MICROS
SHORTLY: Final = MICROS
HOUR: Final = 3600 * MICROS
LOOK_AGAIN: Final = 30.0  # seconds until an instance without channels looks for some again

Place = tuple[Channel, str]


class MessageOutcome(msgspec.Struct, frozen=True):
    """The state of a message after an attempt; `due_at`: the time of the next one, if it waits."""

    state: OutboxState
    error: str | None = None
    due_at: int = 0


class DeliveryCounts(msgspec.Struct, kw_only=True):
    """How many messages ended in which state."""

    done: int = 0
    skipped: int = 0
    waiting: int = 0
    dead: int = 0

    @property
    def total(self) -> int:
        return self.done + self.skipped + self.waiting + self.dead


class Deliverer:
    """`every`: seconds between two reads of an empty outbox."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Channels,
        *,
        doorway: LinkBuilder | None = None,
        ledger: DeliveryLog | None = None,
        every: float = 1.0,
    ) -> None:
        self.store = store
        self.clock = clock
        self.channels = channels
        self.every = every
        self._digest = Digest(store, channels, base_url=channels.settings.base_url)
        self._doorway = doorway or LinkBuilder(store, channels.settings.base_url)
        self._ledger = ledger or DeliveryLog(store)
        self._none_until = float("-inf")

    async def deliver(self) -> DeliveryCounts:
        """Send everything that is due now. Without any channel the messages stay in the outbox; those
        that are due for three days are skipped."""
        found = DeliveryCounts()
        # Without a channel nothing is claimed: a worker that was started
        # without its settings would discard what another one has to send.
        while await self._has_channel():
            messages = await self.store.claim_outbox(limit=BATCH, lease=LEASE, topics=TOPICS)
            for state in await asyncio.gather(*(self._one(message) for message in messages)):
                setattr(found, state.value, getattr(found, state.value) + 1)
            if len(messages) < BATCH:
                break
        return found

    async def serve(self) -> None:
        """Until cancelled."""
        looked = 0
        while True:
            try:
                await self.deliver()
                if self.store.now() - looked >= HOUR:
                    looked = self.store.now()
                    await self._digest.send_all()
            except StoreError as error:
                log.warning("notices could not be delivered: %s", error)
            await self.clock.sleep(self.every)

    async def link_addresses(self, row: HoldRow, whom: Assignee) -> list[str]:
        """The addresses to which a link for this person would be sent; empty: there is no way."""
        if not self._doorway.base_url:
            return []
        notice = notice_of(row, id="", topic=LINK, payload={}, prompt="")
        places = await self._places(row, notice, (), {"to": str(whom)}, [])
        return sorted({to for (_, to), _ in places})

    async def _has_channel(self) -> bool:
        """Channels of tenants are looked up only while a message waits, and not each time, because most
        instances have none."""
        if self.channels.are_given:
            return True
        if self.clock.monotonic() < self._none_until:
            return False
        if not await self.store.list_outbox(state=OutboxState.waiting, limit=1):
            return False
        for tenant in await self.store.audit_tenants():
            if await self.channels.of(tenant):
                return True
        await skip_overdue(self.store)
        self._none_until = self.clock.monotonic() + LOOK_AGAIN
        return False

    async def _one(self, message: OutboxRow) -> OutboxState:
        """A message that cannot be sent must not stop the others."""
        with tenant_scope(message.tenant):
            try:
                end = await self._deliver_one(message)
            except StoreError:
                # Not the message's fault: its claim expires, and it is sent when the store is back.
                raise
            except Exception as error:
                log.exception("notice %s could not be delivered", message.key)
                end = self._again(message, error_line(error), None)
        await self.store.finish_outbox(
            message.id, attempt=message.attempts, state=end.state, error=end.error, due_at=end.due_at
        )
        return end.state

    async def _deliver_one(self, message: OutboxRow) -> MessageOutcome:
        payload: dict[str, Any] = msgspec.json.decode(message.payload)
        row = await self._row(message)
        reason = skip_reason(row, message, payload, self.store.now())
        if row is None or reason is not None:
            return MessageOutcome(OutboxState.skipped, reason)
        # The end is sent to recipients of the opening; while
        # that is still being sent, they are not known yet.
        if message.topic == CLOSED and await in_flight(self.store, message, self.store.now()):
            return MessageOutcome(
                OutboxState.waiting, "notices of the opening are sent first", self.store.now() + SHORTLY
            )
        words = await asked_back(self.store, row, payload) if message.topic == ASKED_BACK else row.prompt
        if words is None:
            return MessageOutcome(OutboxState.skipped, "the question was withdrawn")
        notice = notice_of(row, id=message.key, topic=message.topic, payload=payload, prompt=words)
        known = await recipients_of(self.store, row.id)
        unknown: list[Delivery] = []
        places = await self._wanted(row, await self._places(row, notice, known, payload, unknown))
        if not places and not unknown:
            return MessageOutcome(OutboxState.skipped, "no recipient")
        return await self._each(message, notice, places, known, unknown)

    async def _row(self, message: OutboxRow) -> HoldRow | None:
        return await self.store.hold(HoldId(message.hold)) if message.hold else None

    async def _places(
        self,
        row: HoldRow,
        notice: Notice,
        known: Sequence[Recipient],
        payload: dict[str, Any],
        unknown: list[Delivery],
    ) -> list[tuple[Place, Notice]]:
        """The channels and addresses, each with its notice: the text differs by recipient. `unknown` collects
        failed lookups."""
        channels = await self.channels.of(row.tenant)
        if notice.is_about_the_end:
            return [((channel, to), notice) for channel, to in _informed_places(channels, known)]
        found: dict[tuple[str, str], tuple[Place, Notice]] = {}
        for whom in await audience(self.store, row, notice.topic, payload):
            meant = msgspec.structs.replace(notice, assignee=whom)
            for channel in channels:
                # A link is for one person, so no channel with many readers gets it.
                if not channel.scope.takes(meant) or (notice.topic == LINK and not channel.personal):
                    continue
                reached = await reach(channel, whom, row.tenant)
                if isinstance(reached, Delivery):
                    unknown.append(reached)
                    continue
                for to in reached:
                    found.setdefault((channel.name, to), ((channel, to), meant))
        return list(found.values())

    async def _wanted(
        self, row: HoldRow, places: Sequence[tuple[Place, Notice]]
    ) -> list[tuple[Place, Notice]]:
        """Without people who chose not to get such notices."""
        return [
            ((channel, to), meant)
            for (channel, to), meant in places
            if not channel.personal or await is_wanted_by(self.store, row.tenant, to, meant)
        ]

    async def _each(
        self,
        message: OutboxRow,
        notice: Notice,
        places: Sequence[tuple[Place, Notice]],
        known: Sequence[Recipient],
        unknown: Sequence[Delivery],
    ) -> MessageOutcome:
        """Send to each address once: those that accepted are skipped, and those that refused it finally are
        skipped until it is replayed."""
        before = {(each.channel, each.to): each for each in known if each.notice == notice.id}
        # Half of the lease: after it another deliverer could
        # claim the message and send to the same recipients.
        failed, until = [*unknown], self.store.now() + LEASE // 2
        for (channel, to), meant in places:
            if self.store.now() > until:
                # The claim on the message expires: a long list of recipients is sent in several rounds.
                return MessageOutcome(OutboxState.waiting, "to be continued", self.store.now())
            earlier = before.get((channel.name, to))
            if earlier is not None and (earlier.accepted or (earlier.final and message.attempts > 1)):
                failed += [] if earlier.accepted else [Delivery(accepted=False, detail=earlier.detail)]
                continue
            row = await self._row(message)
            # Checked again before each recipient: the hold may be decided while a long list is sent.
            reason = skip_reason(row, message, msgspec.json.decode(message.payload), self.store.now())
            if row is None or reason is not None:
                return MessageOutcome(OutboxState.skipped, reason)
            link = await self._doorway.link(row, meant, to, personal=channel.personal, asked=_asked(message))
            reply = await self._doorway.reply_token(row, meant, to, personal=channel.personal)
            delivery = await send_notice(
                channel, msgspec.structs.replace(meant, to=to, link=link, reply_token=reply)
            )
            # Before the next recipient, so that a crash repeats at most one message. A second mail is a
            # nuisance; a missing one leaves a run waiting.
            await self._ledger.write(row.id, message, (channel.name, to), delivery)
            failed += [] if delivery.accepted else [delivery]
        return self._settled(message, failed)

    def _settled(self, message: OutboxRow, failed: Sequence[Delivery]) -> MessageOutcome:
        """Done when all have it. After a final refusal it can be replayed once the cause is fixed."""
        if not failed:
            return MessageOutcome(OutboxState.done)
        error = "; ".join(dict.fromkeys(each.detail for each in failed))[:1000]
        # Dead although others have it: `replay` then reaches those who do not.
        if not any(each.retry for each in failed):
            return MessageOutcome(OutboxState.dead, error)
        return self._again(message, error, max((each.after or 0.0 for each in failed), default=None))

    def _again(self, message: OutboxRow, error: str, after: float | None) -> MessageOutcome:
        due = next_try(message.key, message.attempts, self.store.now(), after)
        if due is None:
            log.error("notice %s was given up after %d attempts: %s", message.key, message.attempts, error)
            return MessageOutcome(OutboxState.dead, error)
        return MessageOutcome(OutboxState.waiting, error, due)


def _asked(message: OutboxRow) -> LinkGrant | None:
    """What a person asked for when they had a link sent."""
    if message.topic != LINK:
        return None
    grant = msgspec.json.decode(message.payload)
    return LinkGrant(to=grant["to"], purpose=grant["purpose"], lifetime=grant["lifetime"])


def _informed_places(channels: Sequence[Channel], known: Sequence[Recipient]) -> list[Place]:
    """Recipients of earlier notices, and channels that get all outcomes."""
    by_name = {channel.name: channel for channel in channels if channel.scope.outcomes}
    found = [(by_name[name], to) for name, to in informed_recipients(known) if name in by_name]
    asked = [channel for channel in channels if CLOSED in channel.scope.topics and not channel.personal]
    return found + [(channel, channel.name) for channel in asked if (channel, channel.name) not in found]
