"""Holdfast inside of an application of Starlette or FastAPI (docs/how-to/fastapi.md).

hf = Holdfast("postgresql://...")
app = FastAPI(lifespan=hf.lifespan(worker=True, flows=[refund]))
app.mount("/holdfast", hf.asgi(authenticator=mine))

@app.post("/refunds")
async def start(order: str, hf: Annotated[Holdfast, Depends(instance)]): ...
"""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request

from holdfast.api.auth.principal import Principal
from holdfast.api.problems import HttpError
from holdfast.app.extensions import WEB, WebParts
from holdfast.app.holdfast import Holdfast
from holdfast.errors import SettingsError
from holdfast.integrations.starlette.authenticators import principal as principal
from holdfast.integrations.starlette.lifespan import KEY, lifespan
from holdfast.integrations.starlette.mount import mounted_app
from holdfast.integrations.starlette.state import state_of

WEB.register(WebParts(lifespan, mounted_app))


def instance(connection: HTTPConnection) -> Holdfast:
    """The instance of the application's lifespan. A dependency of FastAPI; elsewhere call it with the
    request. Raises SettingsError if the application has no `hf.lifespan`."""
    found = getattr(connection.state, KEY, None)
    if not isinstance(found, Holdfast):
        raise SettingsError(
            "this application has no instance of Holdfast.",
            hint="Create it with lifespan=hf.lifespan(...); a client of tests has to run the lifespan too.",
        )
    return found


async def caller(request: Request) -> Principal | None:
    """Who calls, by the authenticator of `hf.asgi`; None: no credential. Raises HTTPException for an invalid
    one, and SettingsError if nothing was made with `hf.asgi`, or with several authenticators."""
    authenticator = state_of(instance(request)).authenticator
    try:
        return await authenticator.authenticate(request)
    except HttpError as error:
        raise HTTPException(error.given_status, error.message) from error


async def signed_in(request: Request) -> Principal:
    """The same, for routes that need a person: without a credential HTTPException 401."""
    found = await caller(request)
    if found is None:
        raise HTTPException(401, "this needs a credential.")
    return found
