"""Replies to mails (section 3, rule 5): an address for each message, an authenticated sender who is the
recipient of the message, one keyword above the quote. Everything else decides nothing; a known sender gets an
answer with the reason.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from holdfast.api.inbound.mail_message import MailMessage, decision_in, read_mail
from holdfast.api.inbound.settings import MailSource
from holdfast.api.inbound.webhooks import ReceivedWebhooks
from holdfast.errors import ForbiddenError, HoldfastError, LinkInvalidError, StoreError
from holdfast.holds.actions.change import record_refusal
from holdfast.holds.actions.conflicts import require_open
from holdfast.holds.actions.decide import ResolveConditions, resolve
from holdfast.holds.actions.submission import Submission
from holdfast.holds.links.keys import LinkKeys
from holdfast.holds.links.open import SENDER
from holdfast.holds.links.reply_addresses import LENGTH, reference_in, require_reply
from holdfast.holds.links.tokens import strength_of
from holdfast.holds.notify.channel import send_notice
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.notice import UNCLEAR, Notice
from holdfast.holds.service import HoldService
from holdfast.telemetry import log
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId, new_id
from holdfast.types.terms import Actor, Assignee, ChainLink


class MailTaken(msgspec.Struct, kw_only=True):
    """`outcome`: resolved, voted, unclear (nothing was decided, and the sender got the reason), refused or
    ignored (nothing was decided, and no one was notified), or duplicate (it came before)."""

    outcome: str
    why: str = ""
    checkpoint_id: str | None = None


UNCLEAR_WORDS: Final = (
    "Nothing was decided: your reply does not name one of the answers.\n\n"
    "Reply with one of these words on the first line: {words}.\n"
    "A second line may start with Comment:"
)


class MailReceiver:
    def __init__(self, service: HoldService, way: MailSource, channels: Channels | None) -> None:
        self.service = service
        self.way = way
        self.channels = channels
        local, _, domain = way.address.lower().partition("@")
        self._form = re.compile(rf"{re.escape(local)}\+([a-z2-7]{{{LENGTH}}})@{re.escape(domain)}")

    async def take_once(self, message: str, raw: bytes) -> MailTaken:
        """Once by the id of the message. Raises KeyReusedError, and StoreError, after which the mail server
        retries."""
        seen, now = ReceivedWebhooks(self.service.store, self.way), self.service.ctx.now()
        if await seen.knows(message, raw, now):
            return MailTaken(outcome="duplicate")
        taken = await self.take(raw)
        await seen.note(message, raw, now)
        return taken

    async def take(self, raw: bytes) -> MailTaken:
        """Raises only StoreError, after which the mail server retries."""
        letter = read_mail(raw, self.way.authserv_id)
        if letter is None:
            return MailTaken(outcome="ignored", why="it is not a mail from one sender")
        # Before the token: an automatic reply quotes the question and may contain any word.
        if letter.automatic is not None:
            return MailTaken(outcome="ignored", why=letter.automatic)
        token = next((found[1] for each in letter.recipients if (found := self._form.fullmatch(each))), None)
        if token is None:
            return MailTaken(outcome="ignored", why="its recipient is not an address of a message")
        try:
            return await self._taken(letter, token)
        except StoreError:
            raise
        except LinkInvalidError as error:
            # No answer: the sender is not known.
            return MailTaken(outcome="refused", why=error.message)

    async def _taken(self, letter: MailMessage, token: str) -> MailTaken:
        found = reference_in(token)
        row = await self.service.store.hold(HoldId(found.hold))
        actor = self._actor(letter)
        if row is None or row.tenant != self.way.tenant:
            return MailTaken(outcome="refused", why="it is not about a question of this tenant")
        if not letter.proven:
            why = "the mail server did not authenticate its sender"
            # No answer to a sender who is not proven: a forged
            # From could make the server write to strangers.
            await record_refusal(self.service.ctx, actor, row, "resolve", ForbiddenError(f"{why}."))
            return MailTaken(outcome="refused", why=why, checkpoint_id=row.id)
        keys = await LinkKeys(self.service.store).all(row.tenant)
        try:
            require_reply(found, row, letter.sender, keys, self.service.ctx.now())
        except LinkInvalidError as error:
            await record_refusal(self.service.ctx, actor, row, "resolve", error)
            raise
        return await self._decide(letter, token, row, actor)

    async def _decide(self, letter: MailMessage, token: str, row: HoldRow, actor: Actor) -> MailTaken:
        """The sender is known here, and gets the result."""
        try:
            _require_mailbox(row)
            decision = None if letter.text is None else decision_in(letter.text, row.options or ())
            if decision is None:
                require_open(row)
                words = ", ".join(option.id for option in row.options or ())
                await self._answer(letter, row, UNCLEAR_WORDS.format(words=words))
                return MailTaken(
                    outcome="unclear", why="it has no line with only a keyword", checkpoint_id=row.id
                )
            # `require_reply` has compared the content shown with the
            # present one; the hash guards the time until the write.
            answer = Submission(
                decision=decision.decision, comment=decision.comment, request_hash=row.request_hash
            )
            terms = ResolveConditions(link=f"reply:{token}", epoch=row.epoch)
            done = (await resolve(self.service.ctx, actor, row.id, answer, terms)).row
        except StoreError:
            raise
        except HoldfastError as error:
            why = f"Nothing was decided: {error.message} {error.hint or ''}".strip()
            await self._answer(letter, row, why)
            return MailTaken(outcome="unclear", why=error.message, checkpoint_id=row.id)
        return MailTaken(outcome="voted" if done.resolution is None else "resolved", checkpoint_id=row.id)

    def _actor(self, letter: MailMessage) -> Actor:
        """The owner of the mailbox, with only their rights; the usual rules decide what they may do."""
        person = f"user:{letter.sender}"
        return Actor(
            id=person,
            tenant=self.way.tenant,
            channel="mail",
            auth_method="mail_reply",
            chain=(ChainLink(kind="mail", by=SENDER, to=person),),
        )

    async def _answer(self, letter: MailMessage, row: HoldRow, words: str) -> None:
        """By the channel that could have sent the question. If it is unavailable, the reply is not processed
        again: it decided nothing."""
        from holdfast.holds.notify.mail import Smtp

        found = [] if self.channels is None else await self.channels.of(row.tenant)
        mail = next((each for each in found if isinstance(each, Smtp)), None)
        if mail is None:
            log.warning("a reply to hold %s was not understood, and no mail channel can answer it", row.id)
            return
        notice = Notice(
            id=f"reply:{new_id()}",
            topic=UNCLEAR,
            tenant=row.tenant,
            flow=row.flow,
            node=row.node,
            priority=row.priority,
            prompt=words,
            assignee=Assignee("user", letter.sender),
            to=letter.sender,
            created_at=self.service.ctx.now(),
        )
        delivery = await send_notice(mail, notice)
        if not delivery.accepted:
            log.warning("the answer to a reply to hold %s was not sent: %s", row.id, delivery.detail)


def _require_mailbox(row: HoldRow) -> None:
    """Raises ForbiddenError if a mail is not enough to decide the hold."""
    if strength_of(row) != "decide_low_risk":
        raise ForbiddenError("this question cannot be decided by mail.", hint="Sign in to decide.")
