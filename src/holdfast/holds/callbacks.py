"""Callbacks: another system completes the wait of a run with a token, and with nothing else.

The token is the id of the hold and an HMAC over its tenant, its run and that id, by the keys that sign links.
So the store has no token, the script gets the same one whenever it is entered again, and who reads the store
without its keys completes nothing. It is used once: the hold is decided once.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from re import compile as compile_pattern
from typing import Any, Final
from uuid import UUID

import msgspec

from holdfast.errors import (
    CallbackExpiredError,
    CallbackNotFoundError,
    CallbackUsedError,
    DeadlinePassedError,
    HoldDecidedError,
    InputError,
)
from holdfast.holds.actions.change import change
from holdfast.holds.actions.conflicts import decided, resolution_of
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.decide import ResolveConditions, resolve
from holdfast.holds.actions.submission import Submission
from holdfast.holds.links.keys import LinkKeys
from holdfast.holds.links.tokens import SECRET_SIZE, LinkKey
from holdfast.types.clock import iso
from holdfast.types.hold import CALLBACK, NO_HEARTBEAT, HoldChange, HoldRow
from holdfast.types.ids import HoldId, RunId
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor
from holdfast.types.text import clean_text, require_text

COMPLETED: Final = "completed"
FAILED: Final = "failed"
PATH: Final = "/v1/callbacks/"
MAX_MESSAGE: Final = 2000
_MOST: Final = 10_000
_TOKEN: Final = compile_pattern(r"[A-Za-z0-9_-]{64}")
_NOTHING: Final = LinkKey("", bytes(SECRET_SIZE))


class Callbacks:
    """Every method that takes a token raises CallbackNotFoundError, CallbackUsedError if it was used for
    another outcome, CallbackExpiredError if nothing waits for it any more, RateLimitedError."""

    def __init__(self, ctx: HoldContext, base_url: str = "") -> None:
        self.ctx = ctx
        self.base_url = base_url
        self.keys = LinkKeys(ctx.store)

    async def token(self, tenant: str, run: str, hold: str) -> str:
        """Of an open hold; the caller has checked that the reader may have it."""
        key = await self.keys.signing(tenant)
        return urlsafe_b64encode(UUID(hold).bytes + _mac(key, tenant, run, hold)).decode()

    async def of_run(self, run: str) -> list[tuple[HoldRow, str]]:
        """The callbacks that a run waits for, with their tokens."""
        rows = await self.ctx.store.holds(run=RunId(run), status=HoldStatus.pending, limit=_MOST)
        return [(row, await self.token(row.tenant, run, row.id)) for row in rows if row.type == CALLBACK]

    def url(self, token: str) -> str:
        """Where to POST; without a `base_url`, what follows the address of the server."""
        return f"{self.base_url.rstrip('/')}{PATH}{token}"

    async def complete(self, token: str, result: Any = None) -> HoldRow:
        """Used again with the same result, it changes nothing."""
        return await self._end(token, Submission(decision=COMPLETED, response_data={"result": result}))

    async def fail(self, token: str, message: str, data: Any = None) -> HoldRow:
        """The script gets CallbackFailedError with this message and data."""
        text = clean_text(message, MAX_MESSAGE)
        if not text.strip():
            raise InputError("a failure needs a message.", hint='Send {"error": "what went wrong"}.')
        error = {"message": text} if data is None else {"message": text, "data": data}
        return await self._end(token, Submission(decision=FAILED, response_data={"error": error}))

    async def heartbeat(self, token: str) -> HoldRow:
        """The system still works on it: its next heartbeat is due later."""
        row = await self._read(token)

        async def decide(row: HoldRow, now: int) -> HoldChange | None:
            if row.status is not HoldStatus.pending or (row.expires_at or now + 1) <= now:
                raise decided(row)
            if row.terms.heartbeat is None:
                return None
            limit, beat = row.time_limit, now + row.terms.heartbeat
            # No audit entry: there may be one each second for months.
            fields = {"expires_at": beat if limit is None else min(beat, limit)}
            return HoldChange(hold=row.id, version=row.version, at=now, fields=fields)

        try:
            return await change(self.ctx, _actor(row), row.id, "heartbeat", decide, found=row)
        except HoldDecidedError as error:  # its facts are of people and their drafts
            raise _ended(await self.ctx.store.hold(row.id) or row) from error

    async def _end(self, token: str, submission: Submission) -> HoldRow:
        row = await self._read(token)
        terms = ResolveConditions(callback=True)
        try:
            return (await resolve(self.ctx, _actor(row), row.id, submission, terms, found=row)).row
        except (HoldDecidedError, DeadlinePassedError) as error:
            raise _ended(await self.ctx.store.hold(row.id) or row) from error

    async def _read(self, token: str) -> HoldRow:
        found = _TOKEN.fullmatch(require_text(token, "the token of a callback"))
        raw = urlsafe_b64decode(token) if found else bytes(48)
        hold = HoldId(str(UUID(bytes=raw[:16])))
        row = await self.ctx.store.hold(hold)
        tenant, run = ("", "") if row is None else (row.tenant, row.run)
        keys = await self.keys.all(tenant) if row is not None else ()
        # Compared also where there is no such hold, so that the time does not tell which ids exist.
        fits = [hmac.compare_digest(_mac(key, tenant, run, hold), raw[16:]) for key in keys or (_NOTHING,)]
        if row is None or not keys or not any(fits) or row.type != CALLBACK:
            raise CallbackNotFoundError(
                "there is no callback with this token.",
                hint="Use the complete token or URL that the run handed over.",
            )
        self._require_pace(row)
        return row

    def _require_pace(self, row: HoldRow) -> None:
        if self.ctx.pace is not None:
            sender = Actor(id=f"callback:{row.id}", tenant=row.tenant, channel="link", chain=())
            self.ctx.pace.take(sender, row.id, self.ctx.now(), link=f"callback:{row.id}")


def callback_name(row: HoldRow) -> str:
    return str(msgspec.json.decode(row.context).get("callback", ""))


def callback_status(row: HoldRow) -> str:
    """waiting, completed, failed, expired or cancelled."""
    if row.status is HoldStatus.pending:
        return "waiting"
    return str(resolution_of(row).get("decision", row.status))


def _mac(key: LinkKey, tenant: str, run: str, hold: str) -> bytes:
    return hmac.digest(key.secret, msgspec.json.encode(("callback", tenant, run, hold)), sha256)


def _actor(row: HoldRow) -> Actor:
    return Actor(id="system:callback", tenant=row.tenant, channel="system", auth_method="callback", chain=())


def _ended(row: HoldRow) -> CallbackUsedError | CallbackExpiredError:
    """Without the ids of run and hold: the token says nothing of them either."""
    if row.status is HoldStatus.resolved:
        return CallbackUsedError(
            f"this callback was used at {iso(row.resolved_at or 0)} with another outcome.",
            hint="The first one counts. Repeat it exactly, or send nothing more.",
        )
    if row.status is HoldStatus.cancelled:
        why = "the run does not wait for it any more"
    else:
        missed = row.terms.heartbeat is not None and row.expires_at != row.time_limit
        why = NO_HEARTBEAT if missed else "its time is over"
    return CallbackExpiredError(f"this callback has ended: {why}.", hint="Stop the work for it.")
