"""Flows to be killed. Each is small: the boundaries of a run grow with it."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from holdfast import Context, Flow, NotDone, Retry, Secret
from holdfast.testing import effects

LEDGER = Path("ledger.txt")


@dataclass
class Sum:
    amount: int = 1
    total: int = 0
    decision: str = ""
    note: str = ""


def _flow(name: str) -> Flow:
    return Flow(name, state=Sum)


def _book(line: str) -> int:
    with LEDGER.open("a") as ledger:
        ledger.write(f"{line}\n")
    return len(LEDGER.read_text().splitlines())


retrying = _flow("retrying")


@retrying.node(effect="external", in_doubt="retry")
async def pay_again(s: Sum) -> dict[str, int]:
    return {"total": s.amount}


asking = _flow("asking")


@asking.node(effect="external")
async def pay(s: Sum) -> dict[str, int]:
    effects.record(f"paid {s.amount}")
    return {"total": s.amount}


approving = _flow("approving")
approve = approving.hold("approve", prompt="Pay {{amount}}?", options=["yes", "no"])


@approving.script
async def settle(s: Sum, ctx: Context) -> dict[str, object]:
    paid = await ctx.step("pay", _paid, s.amount, effect="external", idempotent=True)
    said = await ctx.ask("Anything to add?")
    return {"total": paid, "note": said.decision}


def _paid(amount: int, idempotency_key: str) -> int:
    effects.record(f"paid {amount}", key=idempotency_key)
    return amount


approving.edge(approve, settle, when="decision == 'yes'")

unsteady = _flow("unsteady")


@unsteady.node(effect="read")
async def guess(s: Sum) -> dict[str, int]:
    return {"total": random.randrange(1 << 60)}


fickle = _flow("fickle")


@fickle.node(effect="read")
async def look(s: Sum) -> dict[str, str]:
    return {"note": "x"}


@fickle.node(effect="external", idempotency_key="k-{{amount}}", retry=Retry(4, delay="1h"))
async def send(s: Sum, ctx: Context) -> dict[str, str]:
    if ctx.attempt == 1:
        raise NotDone("the first call is refused")
    return {"note": "sent"}


fickle.chain(look, send)

counting = _flow("counting")
_seen: list[int] = []


@counting.node(effect="pure")
async def one(s: Sum) -> None:
    _seen.append(1)


@counting.node(effect="external", idempotency_key="two")
async def two(s: Sum) -> dict[str, int]:
    """What it does depends on the memory of this process: a crash forgets it."""
    return {"total": len(_seen)}


counting.chain(one, two)

stuck = _flow("stuck")


@stuck.node(effect="pure")
def book(s: Sum) -> dict[str, int]:
    if _book("x") > 1:
        time.sleep(60)
    return {"total": 1}


dated = _flow("dated")


@dated.node(effect="external", idempotency_key="dated")
async def post(s: Sum, ctx: Context) -> dict[str, str]:
    """Tells a moment, and keeps names that are new each time."""
    effects.record(f"posted at {ctx.now()}")
    return {"note": str(ctx.now())}


careless_script = _flow("careless_script")


@careless_script.script
async def around(s: Sum, ctx: Context) -> None:
    _book("entered")
    await ctx.step("inside", _book, "inside", effect="external", idempotent=True)


starting = _flow("starting")


@starting.node(effect="external", idempotency_key="start")
async def launch(s: Sum) -> dict[str, int]:
    child = await asyncio.create_subprocess_exec("sleep", "60")
    _note_child(child.pid)
    return {"total": 1}


def _note_child(child: int) -> None:
    Path("child.pid").write_text(str(child))


failing = _flow("failing")


@failing.node(effect="pure")
async def never(s: Sum) -> None:
    raise ValueError("never")


expiring = Flow("expiring", effect="pure")
allow = expiring.hold("approve", prompt="May I?", options=["yes", "no"], bind="allowed")
remind = expiring.hold(
    "remind",
    prompt="Still?",
    options=["on", "off"],
    timeout="3d",
    on_timeout="default",
    bind="still",
    default_option="on",
)


@expiring.node
async def read(s: dict) -> dict:
    assert s["allowed_result"]["response_data"] == {"limit": 3}
    assert s["still"] == "on"
    return {"limit": s["allowed_result"]["response_data"]["limit"]}


expiring.chain(allow, remind, read)


@dataclass
class Login:
    token: Annotated[str, Secret] = ""
    used: str = ""


secretive = Flow("secretive", state=Login)


@secretive.node(effect="external")
async def log_in(s: Login) -> dict[str, str]:
    return {"token": "correct horse battery"}


@secretive.node(effect="external", idempotency_key="use")
async def use(s: Login, ctx: Context) -> dict[str, str]:
    effects.record(f"used a token of {len(s.token)} letters", key=ctx.idempotency_key)
    return {"used": str(len(s.token))}


secretive.chain(log_in, use)

impatient = Flow("impatient")


@impatient.node(effect="read")
async def third_time() -> dict[str, int]:
    """Puts up with one crash, and loses its nerve at the second."""
    if _book("tried") > 2:
        effects.record("complained")
    return {}
