"""A provider whose keys the test has: it serves discovery and keys, and the test signs tokens."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from holdfast.api.server import HttpServer

NONCE = "nonce-of-this-sign-in"
LOGOUT = "http://schemas.openid.net/event/backchannel-logout"


@cache
def private_key(name: str) -> rsa.RSAPrivateKey:
    """Made once in a process: each takes a tenth of a second."""
    return rsa.generate_private_key(65537, 2048)


class Issuer:
    """Discovery and keys over HTTP; tokens are signed by the test."""

    def __init__(self) -> None:
        self.keys = {"one": private_key("one")}
        self.stranger = private_key("stranger")
        self.asked = 0
        self.lies: dict[str, Any] = {}
        places = [Route("/.well-known/openid-configuration", self.about), Route("/jwks", self.jwks)]
        places.append(Route("/userinfo", self.userinfo))
        self.serving = HttpServer(Starlette(routes=places), host="127.0.0.1", port=0)
        self.address = self.serving.address

    async def about(self, _request: Request) -> JSONResponse:
        said = {"issuer": self.address, "jwks_uri": f"{self.address}/jwks"}
        ends = {f"{name}_endpoint": f"{self.address}/{name}" for name in ("authorization", "token")}
        return JSONResponse(said | ends | self.lies)

    async def jwks(self, _request: Request) -> JSONResponse:
        self.asked += 1
        made = jwt.algorithms.RSAAlgorithm.to_jwk
        return JSONResponse(
            {"keys": [{**made(key.public_key(), as_dict=True), "kid": kid} for kid, key in self.keys.items()]}
        )

    async def userinfo(self, request: Request) -> JSONResponse:
        """About whoever the token names."""
        return JSONResponse(
            {"sub": request.headers["authorization"].removeprefix("Bearer "), "groups": ["a"]}
        )

    def claims(self, **change: Any) -> dict[str, Any]:
        now = int(time.time())
        said = {
            "iss": self.address,
            "aud": "holdfast",
            "sub": "1",
            "iat": now,
            "exp": now + 300,
            "nonce": NONCE,
        }
        return {name: value for name, value in (said | change).items() if value is not None}

    def token(self, *, kid: str = "one", key: Any = None, alg: str = "RS256", **change: Any) -> str:
        signs = self.keys[kid] if key is None else key
        return jwt.encode(self.claims(**change), signs, algorithm=alg, headers={"kid": kid})

    def public(self) -> bytes:
        return self.keys["one"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def logout_token(
        self, *, typ: str = "logout+jwt", kid: str = "one", key: Any = None, **change: Any
    ) -> str:
        """About the person `1`, unless told otherwise."""
        said = {"nonce": None, "jti": secrets.token_hex(8), "events": {LOGOUT: {}}, **change}
        signs = self.keys[kid] if key is None else key
        return jwt.encode(self.claims(**said), signs, algorithm="RS256", headers={"kid": kid, "typ": typ})


@asynccontextmanager
async def issuer_served() -> AsyncIterator[Issuer]:
    made = Issuer()
    ready = asyncio.Event()
    task = asyncio.create_task(made.serving.serve(ready.set))
    await ready.wait()
    yield made
    made.serving.stop()
    await task
