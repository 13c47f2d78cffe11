"""Sessions of people who use a browser, and the one-time codes that an operator signs in with.

The store keeps digests of both: a reader of the store cannot sign in with them. The CSRF token is derived
from the session's id, so that nothing more is stored. After the sign-in a browser is sent only to a path of
ours, whatever the address said.
"""

from __future__ import annotations

import hmac
import secrets
from datetime import timedelta
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

import msgspec

from holdfast.api.auth.grants import SERVER, CredentialGrant, made_for, validate_grant
from holdfast.holds.actions.lost_right import ENDED, SESSION_END, SIGNED_OUT
from holdfast.store.protocols import Store
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.clock import MICROS, micros
from holdfast.types.document import Document
from holdfast.types.terms import OPERATOR

SESSION: Final = "session"
CODE: Final = "sign_in_code"
LOGOUT: Final = "logout_token"
CODE_LIFETIME: Final = 600 * MICROS
END_KEPT: Final = 400 * 24 * 3600 * MICROS
_NAME: Final = 12
SWEPT: Final = 200
"""Old sessions that are checked at each sign-in, so that they do not accumulate."""


_MAKERS: Final = {"code": OPERATOR, "oidc": "system:oidc"}
"""Who made a session of this kind; a session with a token is made by its holder."""


class ProviderSession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a provider names the person and its own session (the claims `sub` and `sid`)."""

    sub: str
    sid: str = ""


class BrowserSession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    grant: CredentialGrant
    how: str  # code, token, oidc
    began_at: int
    seen_at: int  # accurate to a twentieth of the idle time
    expires_at: int
    credential: str = ""  # the token that started it: the session ends with it
    provider: ProviderSession | None = None  # that it began at: its sign-out ends this session too


class OpenSession(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is the cookie's value; `name` is its name in logs and the audit."""

    id: str
    name: str
    csrf: str
    session: BrowserSession


class _Code(msgspec.Struct, frozen=True):
    grant: CredentialGrant
    expires_at: int


class _UsedLogout(msgspec.Struct, frozen=True):
    expires_at: int


class Sessions:
    """`lives`: maximum lifetime of a session; `idle`: it also ends after this long without use."""

    def __init__(
        self, store: Store, *, lives: timedelta = timedelta(days=7), idle: timedelta = timedelta(hours=12)
    ) -> None:
        self.store = store
        self.lives = micros(lives)
        self.idle = micros(idle)

    async def begin(
        self,
        grant: CredentialGrant,
        *,
        how: str,
        credential: str = "",
        provider: ProviderSession | None = None,
    ) -> OpenSession:
        """Always with a new id, against session fixation: an id planted in the browser is useless."""
        validate_grant(grant)
        maker = _MAKERS.get(how, grant.subject)
        grant = made_for(grant, SESSION, by=maker, through=grant.chain or ())
        # Here and not by a timer: sessions accumulate only through sign-ins.
        await self._sweep()
        now, secret = self.store.now(), secrets.token_urlsafe(32)
        session = BrowserSession(
            grant=grant,
            how=how,
            began_at=now,
            seen_at=now,
            expires_at=now + self.lives,
            credential=credential,
            provider=provider,
        )
        name = _digest(secret)
        # The audit entry comes first: a session that is missing from the audit must not exist.
        await self._audit(grant, "signed_in", session=name[:_NAME], how=how)
        await self._put(SESSION, name, session)
        return _open_session(secret, session)

    async def switch(self, secret: str, tenant: str) -> OpenSession | None:
        """The same session in another tenant of its person, under a new id; it ends when the old one would
        have. None if the session has ended, or the person does not have the tenant."""
        found = await self.find(secret)
        if found is None or tenant not in found.session.grant.tenants:
            return None
        grant = msgspec.structs.replace(found.session.grant, tenant=tenant)
        moved = msgspec.structs.replace(found.session, grant=grant, seen_at=self.store.now())
        fresh = secrets.token_urlsafe(32)
        name = _digest(fresh)
        await self._audit(grant, "signed_in", session=name[:_NAME], how=moved.how)
        await self._put(SESSION, name, moved)
        await self.end(secret, for_subject=grant.subject)
        return _open_session(fresh, moved)

    async def find(self, secret: str, *, is_use: bool = True) -> OpenSession | None:
        """None if it has ended. Read from the store each time, so that a sign-out is effective at once.
        `is_use`: whether a person asks, and not a page that they left open; only use keeps it from ending."""
        name = _digest(secret)
        document = await self.store.document(SERVER, SESSION, name)
        if document is None:
            return None
        session, now = msgspec.json.decode(document.body, type=BrowserSession), self.store.now()
        if self._is_over(session, now):
            await self.store.drop_document(SERVER, SESSION, name)
            return None
        # Not at each request: that would be one write per request.
        if is_use and now - session.seen_at > self.idle // 20:
            seen = msgspec.structs.replace(session, seen_at=now)
            # A conditional write: a session that was ended in the meantime must stay ended.
            await self._put(SESSION, name, seen, expect=document.revision)
        return _open_session(secret, session)

    async def end(self, secret: str, *, for_subject: str | None = None) -> bool:
        """Sign out: what was placed with the session and is not final yet lapses. `for_subject`: the person
        who signs in again in the same browser; their own decisions stay."""
        found = await self.find(secret)
        if found is not None:
            await self._audit(found.session.grant, "signed_out", session=found.name)
            if found.session.grant.subject != for_subject:
                await self._note_end(_digest(secret), SIGNED_OUT)
        return await self.store.drop_document(SERVER, SESSION, _digest(secret))

    async def end_all(self, subject: str, tenant: str, *, by: str) -> int:
        """Every session of a person, at once and on every server. What was placed, and votes that were cast
        with them, lapse if they are not final yet."""
        audit = NewAudit(
            at=self.store.now(), actor=by, action="sessions_ended", data=canonical({"subject": subject})
        )
        await self.store.append_audit(tenant, [audit])
        ended = 0
        for document in await self._all():
            grant = msgspec.json.decode(document.body, type=BrowserSession).grant
            if (grant.subject, grant.tenant) == (subject, tenant):
                await self._note_end(document.name, ENDED)
                ended += await self.store.drop_document(SERVER, SESSION, document.name)
        return ended

    async def end_at_provider(self, *, sub: str, sid: str, jti: str, seconds: float) -> int | None:
        """Sessions that began in the provider's session `sid`, or without it all those of the person `sub`;
        each as by a sign-out. None if the notice `jti` was used before; it is remembered for that long."""
        used = _digest(jti)
        if await self.store.document(SERVER, LOGOUT, used) is not None:
            return None
        ended = 0
        for document in await self._all():
            session = msgspec.json.decode(document.body, type=BrowserSession)
            began = session.provider
            if began is None or (sid and began.sid != sid) or (sub and began.sub != sub):
                continue
            await self._audit(session.grant, "signed_out", session=document.name[:_NAME], by="provider")
            await self._note_end(document.name, SIGNED_OUT)
            ended += await self.store.drop_document(SERVER, SESSION, document.name)
        # After the sessions: a provider that tries again because the store failed must not be refused.
        await self._put(LOGOUT, used, _UsedLogout(self.store.now() + int(seconds * MICROS)))
        return ended

    # ------------------------------------------------------------------ one-time codes
    async def new_code(self, grant: CredentialGrant) -> str:
        """Valid once, for ten minutes."""
        validate_grant(grant)
        code = secrets.token_urlsafe(24)
        await self._audit(grant, "sign_in_code_made", roles=grant.roles)
        await self._put(CODE, _digest(code), _Code(grant, self.store.now() + CODE_LIFETIME))
        return code

    async def take_code(self, code: str) -> CredentialGrant | None:
        """The request that deletes it from the store uses it: of two at the same time, one is signed in."""
        name = _digest(code)
        document = await self.store.document(SERVER, CODE, name)
        if document is None or not await self.store.drop_document(SERVER, CODE, name):
            return None
        found = msgspec.json.decode(document.body, type=_Code)
        # Checked after it is deleted: an expired code is used up as well.
        return found.grant if self.store.now() < found.expires_at else None

    # ------------------------------------------------------------------ the store
    def _is_over(self, session: BrowserSession, now: int) -> bool:
        return now >= session.expires_at or now - session.seen_at >= self.idle

    async def _note_end(self, name: str, how: str) -> None:
        """Before the session is dropped: what it placed must not become final in between."""
        await self._put(SESSION_END, name[:_NAME], {"how": how, "at": self.store.now()})

    async def _sweep(self) -> None:
        """A random part of them, so that all are checked over time."""
        start, now = secrets.token_hex(1), self.store.now()
        for document in await self.store.documents(SERVER, SESSION, after=start, limit=SWEPT):
            if self._is_over(msgspec.json.decode(document.body, type=BrowserSession), now):
                await self.store.drop_document(SERVER, SESSION, document.name)
        for document in await self.store.documents(SERVER, CODE, limit=SWEPT):
            if now >= msgspec.json.decode(document.body, type=_Code).expires_at:
                await self.store.drop_document(SERVER, CODE, document.name)
        for document in await self.store.documents(SERVER, LOGOUT, after=start, limit=SWEPT):
            if now >= msgspec.json.decode(document.body, type=_UsedLogout).expires_at:
                await self.store.drop_document(SERVER, LOGOUT, document.name)
        for document in await self.store.documents(SERVER, SESSION_END, after=start, limit=SWEPT):
            # Placed decisions and votes that are older than this are not taken back by it.
            if now - msgspec.json.decode(document.body)["at"] >= END_KEPT:
                await self.store.drop_document(SERVER, SESSION_END, document.name)

    async def _all(self) -> list[Document]:
        found: list[Document] = []
        while page := await self.store.documents(SERVER, SESSION, after=found[-1].name if found else ""):
            found += page
        return found

    async def _put(self, kind: str, name: str, value: object, *, expect: int | None = None) -> None:
        body = msgspec.json.encode(value)
        await self.store.put_document(Document(tenant=SERVER, kind=kind, name=name, body=body), expect=expect)

    async def _audit(self, grant: CredentialGrant, action: str, **facts: object) -> None:
        entry = NewAudit(at=self.store.now(), actor=grant.subject, action=action, data=canonical(facts))
        await self.store.append_audit(grant.tenant, [entry])


def _open_session(secret: str, session: BrowserSession) -> OpenSession:
    return OpenSession(id=secret, name=_digest(secret)[:_NAME], csrf=csrf_of(secret), session=session)


def csrf_of(secret: str) -> str:
    """Keyed with the secret, of which the store has only a digest: a copy of the store does not reveal it."""
    return hmac.new(secret.encode(), b"csrf", sha256).hexdigest()


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


_LONGEST = 2_000


def local_path(wanted: str | None) -> str:
    """`/` if it would lead to another host: by `//host` or `/\\host`, or through a control character, which
    browsers remove."""
    if not wanted or len(wanted) > _LONGEST or not wanted.isprintable():
        return "/"
    if not wanted.startswith("/") or wanted.startswith("//") or "\\" in wanted:
        return "/"
    parts = urlsplit(wanted)
    return "/" if parts.scheme or parts.netloc else wanted
