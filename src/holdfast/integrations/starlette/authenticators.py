"""Who calls an application that contains Holdfast: its own sign-in, that of Holdfast, or everyone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from holdfast.api.auth import csrf
from holdfast.api.auth.authenticator import Authenticator, Refusals
from holdfast.api.auth.grants import CredentialGrant, validate_grant
from holdfast.api.auth.host_guard import host_name, is_address
from holdfast.api.problems import HttpError
from holdfast.errors import SettingsError
from holdfast.types.ids import DEFAULT_TENANT

if TYPE_CHECKING:
    from starlette.requests import Request

    from holdfast.api.app import RequestAuthenticator
    from holdfast.api.auth.principal import Principal
    from holdfast.app.holdfast import Holdfast

ANONYMOUS: Final = "user:anonymous"
_METHOD: Final = "application"


def principal(
    subject: str,
    *,
    roles: Sequence[str] = ("member",),
    groups: Sequence[str] = (),
    tenant: str = DEFAULT_TENANT,
) -> Principal:
    """A person that the application has signed in (`user:dana@example.com`), or a program (`service:NAME`),
    for an authenticator of your own. `roles`: viewer, member, approver, operator, admin; `groups`: those to
    which holds are assigned. Raises InputError."""
    grant = CredentialGrant(subject=subject, tenant=tenant, roles=tuple(roles), groups=tuple(groups))
    return validate_grant(grant).principal(method=_METHOD, credential=subject, channel="api")


def authenticator_for(
    hf: Holdfast, given: Any, *, allow_anonymous: bool, hosts: Iterable[str] = ()
) -> RequestAuthenticator:
    """`given`: a function of the request, "holdfast" for tokens and sessions of Holdfast itself, or an object
    with `authenticate` and `note_refusal`. Raises SettingsError."""
    if given is None and not allow_anonymous:
        raise SettingsError(
            "hf.asgi needs an authenticator: without one everyone could read runs and decide holds.",
            hint='Give authenticator=your_function or authenticator="holdfast"; allow_anonymous=True for a '
            "machine of your own.",
        )
    if given == "holdfast":
        given = Authenticator(hf)
    elif given is None:
        given = _ApplicationAuthenticator(hf, lambda _request: None)
    elif not hasattr(given, "authenticate"):
        if not callable(given):
            raise SettingsError(
                f"authenticator={given!r} is neither a function nor an authenticator.",
                hint="Give a function that takes the request and returns a principal, or None.",
            )
        given = _ApplicationAuthenticator(hf, given)
    return _WithAnonymous(given, hosts) if allow_anonymous else given


class _ApplicationAuthenticator:
    """The application says who calls."""

    def __init__(self, hf: Holdfast, find: Callable[[Request], Any]) -> None:
        self._hf = hf
        self._find = find
        self._refusals = Refusals()

    async def authenticate(self, request: Request) -> Principal | None:
        """Raises HttpError 403 for a change that a page of another site may have sent: the sign-in of the
        application may be a cookie."""
        found = self._find(request)
        found = await found if inspect.isawaitable(found) else found
        if found is not None:
            _require_own_page(request)
        return found

    async def note_refusal(
        self, request: Request, path: str, principal: Principal | None, error: HttpError, request_id: str
    ) -> None:
        await self._refusals.note(await self._hf.open(), request, path, principal, error, request_id)


class _WithAnonymous:
    """A caller without a credential has every right, under a name that says so."""

    def __init__(self, inner: RequestAuthenticator, hosts: Iterable[str]) -> None:
        self._inner = inner
        self._hosts = tuple(hosts)
        self.note_refusal = inner.note_refusal

    async def authenticate(self, request: Request) -> Principal | None:
        known = await self._inner.authenticate(request)
        if known is None:
            self._require_own_name(request)
            _require_own_page(request)
        return known or principal(ANONYMOUS, roles=("admin",))

    def _require_own_name(self, request: Request) -> None:
        """A page of another site can point its own name to this machine (DNS rebinding), and is then its own
        page for the browser. It cannot have an address or a name without a dot. Raises HttpError 421."""
        # Names that were given have been compared by the guard before this.
        name = host_name(request.headers.get("host", ""))
        if self._hosts or (name is not None and ("." not in name or is_address(name))):
            return
        raise HttpError(
            421,
            "this host name is not accepted without a credential.",
            code="wrong_host",
            hint="Use localhost or an address, or name it: hf.asgi(settings=ApiSettings(hosts=(NAME,))).",
        )


def _require_own_page(request: Request) -> None:
    # A program that sends a token in a header means it; a page of another site cannot. Other credentials
    # (Basic, Negotiate) are sent by the browser itself, whichever page asks.
    kind = request.headers.get("authorization", "").partition(" ")[0].lower()
    if request.method in csrf.SAFE or kind == "bearer":
        return
    if not csrf.same_origin(request, csrf.own_origins(request, None)):
        raise HttpError(403, "the request came from a page of another site.", code="cross_site")
