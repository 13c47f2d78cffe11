"""Clicks in Slack (section 3, rule 4): checks the signature over the raw bytes, then the person, then their
rights. Slack is answered within three seconds; the result replaces the card.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec

from holdfast.api.inbound.settings import SlackSource
from holdfast.api.problems import HttpError
from holdfast.api.strict_json import require_unique_keys
from holdfast.errors import (
    ConflictError,
    HoldDecidedError,
    HoldfastError,
    HoldNotFoundError,
    LinkInvalidError,
    NotAssignedError,
    StoreError,
)
from holdfast.holds.actions.decide import ResolveConditions, resolve
from holdfast.holds.actions.submission import Submission
from holdfast.holds.egress import Egress
from holdfast.holds.notify.escape import for_slack, one_line
from holdfast.holds.notify.http_post import post
from holdfast.holds.notify.slack import ACTION, Click
from holdfast.holds.queries.summary import outcome_of, title_of
from holdfast.holds.service import HoldService
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.document import Document
from holdfast.types.hold import HoldRow
from holdfast.types.ids import HoldId
from holdfast.types.terms import OPERATOR, Actor, ChainLink

SKEW: Final = 300  # seconds
PATIENCE: Final = 2.0
"""Seconds that a decision may take before Slack is answered; the decision continues."""
RESPONSE_HOST: Final = "hooks.slack.com"
CHAT_USER: Final = "chat_user"


class _User(msgspec.Struct):
    id: str = ""


class _Team(msgspec.Struct):
    id: str = ""


class _Action(msgspec.Struct):
    action_id: str = ""
    value: str = ""
    action_ts: str = ""


class SlackPayload(msgspec.Struct):
    """The fields of Slack's payload that are used."""

    type: str = ""
    user: _User = msgspec.field(default_factory=_User)
    team: _Team | None = None
    actions: list[_Action] = []
    response_url: str = ""


def require_signed(headers: Mapping[str, str], body: bytes, way: SlackSource, now: int) -> None:
    """Over the raw bytes, before they are parsed; `now` in seconds. Raises HttpError 401."""
    stamp = headers.get("x-slack-request-timestamp", "")
    given = headers.get("x-slack-signature", "")
    # isascii first: isdecimal accepts digits of other scripts, and int() raises for very long texts.
    fresh = stamp.isascii() and stamp.isdecimal() and len(stamp) <= 15 and abs(now - int(stamp)) <= SKEW
    base = f"v0:{stamp}:".encode() + body
    # Every secret is compared, in constant time, also if the timestamp is already wrong.
    expected = [f"v0={hmac.new(each.encode(), base, sha256).hexdigest()}" for each in way.secrets]
    signed = [hmac.compare_digest(each.encode(), given.encode()) for each in expected]
    if not fresh or not any(signed):
        raise HttpError(
            401,
            "this is not signed by Slack, or was signed more than five minutes ago.",
            code="signature_invalid",
            hint="Check the signing secret, and the clocks.",
        )


def payload_of(body: bytes) -> SlackPayload:
    """Raises HttpError 422."""
    try:
        given = parse_qs(body.decode(), max_num_fields=20).get("payload", ["{}"])
        if len(given) > 1:
            raise ValueError("two payloads")
        text = given[0]
        found = msgspec.json.decode(text, type=SlackPayload)
    except (ValueError, msgspec.MsgspecError) as error:
        raise HttpError(422, "the payload is not from Slack.", code="invalid_input") from error
    require_unique_keys(text, "payload")
    return found


class SlackReceiver:
    """Processes clicks. `egress`: the hosts to which a result may be posted."""

    def __init__(self, service: HoldService, way: SlackSource, egress: Egress) -> None:
        self.service = service
        self.way = way
        self.egress = egress

    async def take(self, payload: SlackPayload) -> None:
        """Decided within two seconds, or later: the person who clicked does not wait."""
        if self.way.teams and (payload.team is None or payload.team.id not in self.way.teams):
            raise HttpError(403, "this workspace is not allowed.", code="forbidden")
        clicked = [each for each in payload.actions if each.action_id.startswith(f"{ACTION}:")]
        if payload.type != "block_actions" or not clicked:
            return
        task = asyncio.create_task(self._decide(payload, clicked[0]))
        # The event loop keeps only weak references to tasks, and this one may outlive the request.
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
        await asyncio.wait({task}, timeout=PATIENCE)
        if task.done() and (error := task.exception()) is not None:
            raise error

    async def _decide(self, payload: SlackPayload, action: _Action) -> None:
        """Raises StoreError: Slack shows that to the person who clicked, who can click again."""
        try:
            click = msgspec.json.decode(action.value, type=Click)
        except msgspec.MsgspecError:
            raise HttpError(422, "this button is not from Holdfast.", code="invalid_input") from None
        person = await self.person(payload.user.id)
        if person is None:
            text = (
                f"You are not known here as {one_line(payload.user.id, 40)}. Ask the operator of this server."
            )
            self._post_later(payload, _ephemeral_reply(text))
            return
        # The tenant of the source and never of the payload; no
        # groups or rights, only what is assigned to the person.
        actor = Actor(
            id=person.person,
            tenant=self.way.tenant,
            channel="slack",
            auth_method="slack",
            chain=tuple(ChainLink(kind="slack", by=name, to=person.person) for name in person.made_by),
        )
        # The time of the click makes a request that arrives twice a replay.
        key = f"slack:{payload.user.id}:{action.action_ts}"[:200]
        try:
            row = await self._resolve(actor, click, key)
        except StoreError:
            raise
        except HoldfastError as error:
            self._post_later(payload, await self._refused(actor, click, error))
            return
        self._post_later(payload, self._outcome(row))

    async def _resolve(self, actor: Actor, click: Click, key: str) -> HoldRow:
        """By the usual rules: whether this person may decide it, and whether the card is up to date."""
        submission = Submission(decision=click.decision, request_hash=click.request_hash)
        terms = ResolveConditions(idempotency_key=key, epoch=click.epoch)
        return (await resolve(self.service.ctx, actor, click.hold, submission, terms)).row

    async def _refused(self, actor: Actor, click: Click, error: HoldfastError) -> dict[str, Any]:
        """A final result replaces the card; anything else is shown only to the person who clicked."""
        if isinstance(error, HoldDecidedError):
            row = await self.service.store.hold(HoldId(click.hold))
            if row is not None and row.tenant == actor.tenant:
                return self._outcome(row)
        if isinstance(error, (HoldNotFoundError, NotAssignedError, LinkInvalidError, ConflictError)):
            return _ephemeral_reply(error.message)
        return _ephemeral_reply(f"{error.message} {error.hint or 'Open it to decide.'}")

    def _outcome(self, row: HoldRow) -> dict[str, Any]:
        outcome = outcome_of(row, self.service.ctx.now()) or "your vote is counted; more votes are needed"
        text = for_slack(f"{one_line(title_of(row))}\n{outcome}")
        block = {"type": "section", "text": {"type": "plain_text", "text": text, "emoji": False}}
        return {"replace_original": True, "text": text, "blocks": [block]}

    async def person(self, chat: str) -> ChatUser | None:
        found = self.way.people.get(chat)
        return (
            ChatUser(found) if found is not None else await ChatUsers(self.service.store).find(self.way, chat)
        )

    def _post_later(self, payload: SlackPayload, message: dict[str, Any]) -> None:
        """In the background: the decision is made, and Slack must be answered in time."""
        if payload.response_url:
            task = asyncio.create_task(self._post(payload.response_url, message))
            _tasks.add(task)
            task.add_done_callback(_tasks.discard)

    async def _post(self, url: str, message: dict[str, Any]) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or 443
            # The address is part of the payload: without this
            # check a click could make the server post anywhere.
            if host != RESPONSE_HOST and not self.egress.allows(host, port):
                log.warning("the response address of a click, %s, is not Slack's", one_line(host, 80))
                return
            body = msgspec.json.encode(message)
            await post(url, body, {"Content-Type": "application/json"}, egress=self.egress)
        except (HoldfastError, OSError, TimeoutError, ValueError) as error:
            log.warning("the result of a click could not be posted to Slack: %s", error)


_tasks: set[asyncio.Task[None]] = set()


def _ephemeral_reply(text: str) -> dict[str, Any]:
    return {"response_type": "ephemeral", "replace_original": False, "text": for_slack(text)}


class ChatUser(msgspec.Struct, frozen=True, omit_defaults=True):
    """The person of a chat user. `made_by`: who said so, with everyone in the chain of their credential."""

    person: str
    made_by: tuple[str, ...] = (OPERATOR,)


class ChatUsers:
    """The person of a chat user, stored by channel and chat user."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, way: SlackSource, chat: str) -> ChatUser | None:
        kept = await self._store.document(way.tenant, CHAT_USER, f"{way.name}/{chat}")
        if kept is None:
            return None
        # Earlier releases stored only the name; nobody is known to have made those.
        found = msgspec.json.decode(kept.body, type=ChatUser | str)
        return ChatUser(found) if isinstance(found, str) else found

    async def put(self, way: SlackSource, chat: str, person: str, *, by: Actor) -> None:
        await self._audit(way, "chat_user_set", by, chat=chat, person=person)
        body = msgspec.json.encode(ChatUser(person, by.people))
        document = Document(tenant=way.tenant, kind=CHAT_USER, name=f"{way.name}/{chat}", body=body)
        await self._store.put_document(document)

    async def delete(self, way: SlackSource, chat: str, *, by: Actor) -> bool:
        await self._audit(way, "chat_user_dropped", by, chat=chat)
        return await self._store.drop_document(way.tenant, CHAT_USER, f"{way.name}/{chat}")

    async def _audit(self, way: SlackSource, action: str, by: Actor, **facts: str) -> None:
        """Written before the change: a change of who may decide must never be missing from the audit."""
        data = canonical({"channel": way.name, **facts})
        entry = NewAudit(at=self._store.now(), actor=by.id, action=action, data=data)
        await self._store.append_audit(way.tenant, [entry])
