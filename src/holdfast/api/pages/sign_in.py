"""The sign-in page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.api.auth.principal import Principal
from holdfast.api.pages.render import page


def signed_out_page(request: Request, provider: str) -> Response:
    """Sends the browser to the provider. Not by a redirect: our `form-action` policy forbids a form to lead
    to another site."""
    return page(request, "signed_out.html", provider=provider)


def sign_in_page(
    request: Request,
    *,
    who: Principal | None = None,
    provider: str | None = None,
    onwards: str = "/",
    wrong: str = "",
    fresh: bool = False,
    status: int = 200,
) -> Response:
    """`provider`: the label of its button; `wrong`: why the last attempt failed; `fresh`: the person is to
    sign in again."""
    return page(
        request,
        "sign_in.html",
        who=who,
        status=status,
        provider=provider,
        onwards=onwards,
        wrong=wrong,
        fresh=fresh,
    )
