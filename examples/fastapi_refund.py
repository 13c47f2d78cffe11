"""An application of FastAPI with Holdfast inside: routes of its own start runs, and people decide under
/holdfast. Needs FastAPI: `uvicorn examples.fastapi_refund:app`, or `python examples/fastapi_refund.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request

from holdfast import Flow, Holdfast
from holdfast.api.auth.principal import Principal
from holdfast.integrations.starlette import instance, principal, signed_in


@dataclass
class Refund:
    order: str
    amount: int
    decision: str = ""


refund = Flow("refund", state=Refund, effect="read")
approve = refund.hold("approve", prompt="Refund {{amount}} for {{order}}?", options=["approve", "reject"])


@refund.node(effect="external", idempotency_key="refund-{{order}}")
async def pay(s: Refund) -> None:
    print(f"refunded {s.amount} for {s.order}")  # the call of your bank


refund.edge(approve, pay, when="decision == 'approve'")

hf = Holdfast()


def who_calls(request: Request) -> Principal | None:
    """Your own sign-in: here a header that a proxy sets."""
    name = request.headers.get("x-user")
    return principal(f"user:{name}", roles=("operator",)) if name else None


app = FastAPI(lifespan=hf.lifespan(worker=True, flows=[refund]))
app.mount("/holdfast", hf.asgi(authenticator=who_calls))


@app.post("/refunds")
async def request_refund(
    order: str,
    amount: int,
    shop: Annotated[Holdfast, Depends(instance)],
    person: Annotated[Principal, Depends(signed_in)],
) -> dict[str, Any]:
    row, _ = await (await shop.service()).create(
        refund.compile(), {"order": order, "amount": amount}, started_by=person.actor.id
    )
    return {"run": row.id}


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, port=8000)
