"""The page to sign in at."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.auth.principal import Principal
from holdfast.api.pages.render import page


def signed_out_page(request: Request, provider: str) -> Response:
    """On to the provider. Not by a redirect: browsers do not follow that from a form to another site, since
    our pages forbid it (`form-action`)."""
    return page(request, "signed_out.html", provider=provider)


def sign_in_page(
    request: Request,
    *,
    who: Principal | None = None,
    provider: str | None = None,
    onwards: str = "/",
    wrong: str = "",
    status: int = 200,
) -> Response:
    """`provider`: what its button says; `wrong`: why the last try did not work."""
    return page(
        request, "sign_in.html", who=who, status=status, provider=provider, onwards=onwards, wrong=wrong
    )
