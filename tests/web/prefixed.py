"""The server below the path prefix `/desk`, mounted into another ASGI app. Its argument is the store; it
prints its address and a code to sign in with."""

from __future__ import annotations

import asyncio
import json
import sys

from starlette.applications import Starlette
from starlette.routing import Mount

from holdfast import Holdfast
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.sessions import Sessions
from holdfast.api.pages.web_app import packaged_app
from holdfast.api.routes.all import THEMES
from holdfast.api.server import HttpServer


async def main(store: str) -> None:
    async with Holdfast(store) as hf:
        app = build(hf, Authenticator(hf), ApiSettings(web_app=packaged_app()), THEMES)
        server = HttpServer(Starlette(routes=[Mount("/desk", app)]), host="127.0.0.1", port=0)
        ready = asyncio.Event()
        task = asyncio.create_task(server.serve(ready.set))
        await ready.wait()
        grant = CredentialGrant(subject="user:local", roles=("admin",))
        code = await Sessions(await hf.open()).new_code(grant)
        print(json.dumps({"address": server.address, "code": code}), flush=True)
        await task


asyncio.run(main(sys.argv[1]))
