"""Authenticates requests: by a token in `Authorization: Bearer`, or by the cookie of a session.

A person who is not active in the directory is refused. Refusals are written to the audit, up to a limit, so
that an attacker cannot fill it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.requests import HTTPConnection, Request

from holdfast.api.auth import csrf
from holdfast.api.auth.cookies import Cookies
from holdfast.api.auth.grants import SERVER
from holdfast.api.auth.local_token import LocalToken
from holdfast.api.auth.oidc.flow import Oidc
from holdfast.api.auth.principal import Principal
from holdfast.api.auth.sessions import OpenSession, Sessions
from holdfast.api.auth.settings import SignInSettings
from holdfast.api.auth.tokens import ApiTokens
from holdfast.api.problems import HttpError
from holdfast.app.holdfast import Holdfast
from holdfast.errors import DirectoryUnavailableError, StoreError
from holdfast.holds.directory.stored import TableDirectory
from holdfast.holds.permissions.actor import names_of
from holdfast.holds.permissions.assignees import person_key
from holdfast.store.protocols import Store
from holdfast.telemetry import log
from holdfast.types.audit import NewAudit, canonical

if TYPE_CHECKING:
    from holdfast.api.auth.grants import CredentialGrant
    from holdfast.app.holdfast import Holdfast


FRESH: Final = 5.0
"""Seconds for which an answer is cached, as for a token."""
_MOST_KNOWN: Final = 10_000


class ActiveCheck:
    """The instance's directory; without one, that of the store. An unknown person is not refused."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self._known: dict[tuple[str, str], tuple[float, tuple[str, ...] | None]] = {}

    async def names(self, grant: CredentialGrant) -> tuple[str, ...] | None:
        """The other names of the subject in the directory; None: they are not active."""
        key = (grant.tenant, grant.subject)
        kept = self._known.get(key)
        if kept is not None and time.monotonic() - kept[0] < FRESH:
            return kept[1]
        asked = time.monotonic()
        try:
            found = await self._look_up(grant)
        except DirectoryUnavailableError as error:
            # Use the last known state: decisions on holds check the directory again and fail without it.
            log.warning("the directory is unavailable, using the last known state: %s", error)
            found = () if kept is None else kept[1]
        if len(self._known) >= _MOST_KNOWN:
            # A bound on memory; an empty cache costs one query per person.
            self._known.clear()
        # The time before the query: the answer may be as old as that.
        self._known[key] = (asked, found)
        return found

    async def _look_up(self, grant: CredentialGrant) -> tuple[str, ...] | None:
        directory = (await self._hf.holds()).ctx.directory
        found = directory or TableDirectory(await self._hf.open())
        person = await found.person(grant.tenant, person_key(grant.subject))
        if person is None:
            return ()
        names = sorted(f"user:{name}" for name in names_of(person) if name != person_key(grant.subject))
        return tuple(names) if person.active else None


EVENT_STREAM: Final = "text/event-stream"
UNATTENDED: Final = "holdfast-unattended"
"""The header of a request that no act of a person led to: it does not renew their session."""

SPAN: Final = 60.0
MOST: Final = 60
EACH: Final = 10
"""Refusals per minute that are recorded for one credential or address (`MOST`: per server); the next record
says how many were left out."""


class Refusals:
    def __init__(self, *, most: int = MOST, each: int = EACH, span: float = SPAN) -> None:
        self._most = most
        self._each = each
        self._span = span
        self._since = time.monotonic()
        self._counts: dict[str, int] = {}
        self._written = 0
        self._left_out = 0

    async def note(
        self,
        store: Store,
        request: Request,
        path: str,
        principal: Principal | None,
        error: HttpError,
        request_id: str,
    ) -> None:
        """While the store is unavailable, refusals are only in the log."""
        address = request.client.host if request.client else "unknown"
        log.info("refused %s %s: %s", request.method, path, error.given_code, extra={"request": request_id})
        # Limited per credential as well as in all, so that one
        # noisy client does not hide the refusals of the others.
        if not self._may_write(principal.credential if principal else address):
            return
        facts = {
            "method": request.method,
            "path": path,
            "status": error.given_status,
            "code": error.given_code,
            "right": error.facts.get("right"),
            "credential": principal.credential if principal else None,
            "address": address,
            "request": request_id,
            "left_out": self._left_out,
        }
        self._left_out = 0
        by, tenant = (principal.actor.id, principal.tenant) if principal else ("anonymous", SERVER)
        shown = {name: value for name, value in facts.items() if value}
        entry = NewAudit(at=store.now(), actor=by, action="access_refused", data=canonical(shown))
        try:
            await store.append_audit(tenant, [entry])
        except StoreError as trouble:
            # The refusal itself stands: an audit that cannot be written must not turn a 403 into a 500.
            log.warning("a refusal could not be recorded: %s", trouble)

    def _may_write(self, whose: str) -> bool:
        now = time.monotonic()
        if now - self._since >= self._span:
            self._since, self._written = now, 0
            self._counts.clear()
        if self._written >= self._most or self._counts.get(whose, 0) >= self._each:
            self._left_out += 1
            return False
        self._written += 1
        self._counts[whose] = self._counts.get(whose, 0) + 1
        return True


class Authenticator:
    """Authenticates each request of a server. `local`: a token of this process only, for the person who
    started it. `most_form`: maximum bytes of a form that is sent with a session."""

    def __init__(
        self,
        hf: Holdfast,
        settings: SignInSettings | None = None,
        *,
        local: LocalToken | None = None,
        most_form: int = 32 << 20,
    ) -> None:
        self.hf = hf
        self.settings = settings or SignInSettings()
        self.local = local
        self.most_form = most_form
        self.cookies = Cookies(self.settings.public_url)
        self.refusals = Refusals()
        self.actives = ActiveCheck(hf)
        self.oidc = None if self.settings.oidc is None else Oidc(self.settings.oidc)
        self._tokens: ApiTokens | None = None
        self._sessions: Sessions | None = None

    async def tokens(self) -> ApiTokens:
        if self._tokens is None:
            self._tokens = ApiTokens(await self.hf.open())
        return self._tokens

    async def sessions(self) -> Sessions:
        if self._sessions is None:
            settings = self.settings
            self._sessions = Sessions(await self.hf.open(), lives=settings.lives, idle=settings.idle)
        return self._sessions

    async def authenticate(self, request: Request) -> Principal | None:
        """None: no credential. Raises HttpError: 401 for an invalid token, 403 for a change with a session
        that another site may have sent."""
        found = await self.caller(request)
        if found is not None and found.method == "session" and request.method not in csrf.SAFE:
            origins = csrf.own_origins(request, self.settings.public_url)
            await csrf.require_own(request, found, origins, most_form=self.most_form)
        return found

    async def caller(self, connection: HTTPConnection) -> Principal | None:
        """The same without the check of changes; WebSockets check `same_origin` too."""
        # The header before the cookie: a program that sends a token means it, and then needs no CSRF token.
        given = connection.headers.get("authorization")
        if given is not None:
            scheme, _, token = given.partition(" ")
            if scheme.lower() != "bearer":
                raise HttpError(
                    401, "only `Authorization: Bearer TOKEN` is supported.", code="unauthenticated"
                )
            return await self.by_token(token.strip())
        secret = self.cookies.get(connection)
        return None if not secret else await self.by_session(secret, is_use=not _is_unattended(connection))

    async def by_token(self, text: str) -> Principal:
        """Raises HttpError 401."""
        if self.local is not None and (own := self.local.by_token(text)) is not None:
            return own
        token = await (await self.tokens()).check(text)
        names = None if token is None else await self.actives.names(token.grant)
        if token is None or names is None:
            raise HttpError(
                401,
                "this token is not valid (unknown, expired or revoked).",
                code="unauthenticated",
                hint="Ask your administrator for a new one.",
            )
        return token.known_grant.principal(method="token", credential=token.id, channel="api", also=names)

    async def by_session(self, secret: str, *, is_use: bool = True) -> Principal | None:
        """None for an ended session: the caller is not signed in, and can sign in again. `is_use`: as for
        `Sessions.find`."""
        found = await (await self.sessions()).find(secret, is_use=is_use)
        # None and no error: pages then lead to the sign-in instead of showing a failure.
        if found is None:
            return None
        grant = await self._grant_of(found)
        if grant is None:
            return None
        names = await self.actives.names(grant)
        if names is None:
            return None
        # Where people sign in at a provider, a token that is typed into the page is not that: who has found
        # one would pass as present.
        at_provider = self.oidc is None or found.session.how != "token"
        since = found.session.began_at if at_provider else 0
        return grant.principal(
            method="session",
            credential=found.name,
            channel="inbox",
            csrf=found.csrf,
            since=since,
            also=names,
            began_with=found.session.credential,
        )

    async def note_refusal(
        self, request: Request, path: str, principal: Principal | None, error: HttpError, request_id: str
    ) -> None:
        """Record a refusal, within the limits."""
        store = await self.hf.open()
        await self.refusals.note(store, request, path, principal, error, request_id)

    async def _grant_of(self, found: OpenSession) -> CredentialGrant | None:
        """None: it was started with a token, and ends with it."""
        grant, began_with = found.session.grant, found.session.credential
        if not began_with:
            return grant
        token = await (await self.tokens()).valid(began_with)
        if token is None or grant.chain is not None:
            return None if token is None else grant
        # A session of an earlier release: the token says who made it.
        return msgspec.structs.replace(grant, chain=token.known_grant.chain)

    # ------------------------------------------------------------------ where a request comes from
    def same_origin(self, connection: HTTPConnection, *, proven: bool = False) -> bool:
        """Whether our own page sent it (`csrf.same_origin`)."""
        return csrf.same_origin(
            connection, csrf.own_origins(connection, self.settings.public_url), proven=proven
        )


def _is_unattended(connection: HTTPConnection) -> bool:
    """Sockets and streams connect again and are checked again by themselves; the app marks what it asks while
    its person does nothing."""
    given = connection.headers
    is_stream = given.get("upgrade", "").lower() == "websocket" or EVENT_STREAM in given.get("accept", "")
    return is_stream or UNATTENDED in given
