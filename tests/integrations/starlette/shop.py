"""An application of FastAPI with Holdfast inside, for processes that tests start and kill."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request

from holdfast import Flow, Holdfast, RunSettings
from holdfast.api.auth.principal import Principal
from holdfast.integrations.starlette import instance, principal, signed_in

FOLDER = Path(os.environ.get("SHOP_FOLDER", "."))
hf = Holdfast(f"sqlite:{FOLDER / 'shop.db'}", settings=RunSettings(lease_ttl=2.0))
order = Flow("order", effect="read")


@order.node
async def take(s: dict[str, Any]) -> dict[str, Any]:
    with (FOLDER / "taken").open("a") as taken:
        taken.write(f"{os.getpid()}\n")
    # The first process that has it never finishes.
    if len((FOLDER / "taken").read_text().split()) == 1 and s["slow"]:
        await asyncio.sleep(3600)
    return {"by": os.getpid()}


def who(request: Request) -> Principal | None:
    name = request.headers.get("x-person")
    return None if name is None else principal(f"user:{name}", roles=("operator",))


app = FastAPI(lifespan=hf.lifespan(worker=True, flows=[order]))
app.mount("/desk", hf.asgi(authenticator=who))


@app.post("/orders")
async def start(slow: bool, shop: Annotated[Holdfast, Depends(instance)]) -> dict[str, Any]:
    row, _ = await (await shop.service()).create(order.compile(), {"slow": slow})
    return {"run": row.id, "pid": os.getpid()}


@app.get("/me")
async def me(person: Annotated[Principal, Depends(signed_in)]) -> dict[str, str]:
    return {"id": person.actor.id}
