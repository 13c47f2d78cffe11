"""What the fleet works on: between them these flows use everything that can be hit in its middle.

Effects go to `OUTSIDE`. `EFFECTS` says of each what may become of it, for the judge; `expected` what the
state of a run has to hold in the end, however often its workers died.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any, Final

from holdfast import Context, Flow, Limits, NotDone, Retry
from tests.fleet.torture.ledger import Outside

OUTSIDE = Outside(Path(os.environ.get("TORTURE_LEDGER", "ledger.jsonl")))
LINGER: Final = float(os.environ.get("TORTURE_LINGER", "0.2"))
# For the test of the judge: effects that are said to be harmless, so that no intent is written for them.
CARELESS: Final = "careless" in os.environ.get("TORTURE_SABOTAGE", "")
WRITE: Final = "read" if CARELESS else "write"
EXTERNAL: Final = "read" if CARELESS else "external"

FLOWS: dict[str, Flow] = {}
AT_ONCE: Final = 2
SCHEDULED: Final = "ticks"
EFFECTS: dict[str, dict[str, str]] = {}
"""flow -> effect -> ask, keyed, probe, retry or fail: what its in-doubt policy is"""


def flow(name: str, effects: dict[str, str] | None = None, **options: Any) -> Flow:
    made = FLOWS[name] = Flow(name, **options)
    EFFECTS[name] = effects or {}
    return made


async def act(effect: str, ctx: Context, gives: Any) -> Any:
    """In a thread: a paused process is paused in the middle of it, and a draining one waits."""
    return await asyncio.to_thread(OUTSIDE.act, effect, ctx.run_id, ctx.idempotency_key, gives, LINGER)


# ---------------------------------------------------------------- a chain of every class
order = flow("order", {"reserve": "ask", "charge": "keyed", "ship": "ask"}, effect="pure")


@order.node
async def price(s: dict[str, Any]) -> dict[str, Any]:
    return {"price": s["n"] * 3}


@order.node(effect="read")
async def stock(s: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(LINGER)
    return {"stock": s["n"] + 1}


@order.node(effect=WRITE)
async def reserve(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("reserve", ctx, {"reserved": s["stock"] + s["price"]})


@order.node(effect=EXTERNAL, idempotency_key="charge-{{n}}")
async def charge(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    gives = {"charged": s["price"]}
    return await asyncio.to_thread(OUTSIDE.act_once, "charge", ctx.run_id, ctx.idempotency_key, gives, LINGER)


@order.node(effect=EXTERNAL)
async def ship(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("ship", ctx, {"shipped": s["reserved"] + s["charged"]})


order.chain(price, stock, reserve, charge, ship)

# ---------------------------------------------------------------- each policy of doubt, and refusals
probing = flow("probing", {"transfer": "probe"}, effect="pure")


async def look(s: dict[str, Any], ctx: Context) -> dict[str, Any] | None:
    found = await asyncio.to_thread(OUTSIDE.find, ctx.run_id, "transfer")
    return None if found is None else found.gives


@probing.node(effect=EXTERNAL, probe=look)
async def transfer(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("transfer", ctx, {"transferred": s["n"]})


careless = flow("again", {"ping": "retry"}, effect="pure")


@careless.node(effect=EXTERNAL, in_doubt="retry")
async def ping(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("ping", ctx, {"pinged": s["n"]})


strict = flow("failing", {"launch": "fail"}, effect="pure", mode="strict")


@strict.node(effect=EXTERNAL, in_doubt="fail")
async def launch(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("launch", ctx, {"launched": s["n"]})


refused = flow("refused", {"accept": "ask"}, effect="pure")


@refused.node(effect=WRITE, retry=Retry(9, delay="100ms"))
async def accept(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    if ctx.attempt <= 2:
        raise NotDone("come back later")
    return await act("accept", ctx, {"accepted": s["n"]})


# ---------------------------------------------------------------- branches, items, a flow in a flow
split = flow("split", {"left": "ask", "right": "ask", "both": "ask"}, effect="read")


@split.node
async def fork(s: dict[str, Any]) -> dict[str, Any]:
    return {"seen": s["n"] + 1}


@split.node(effect=WRITE)
async def left(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("left", ctx, {"left": s["seen"] * 2})


@split.node(effect=WRITE)
async def right(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("right", ctx, {"right": s["seen"] * 5})


@split.node(effect=EXTERNAL)
async def both(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("both", ctx, {"both": s["left"] + s["right"]})


split.edge(fork, left)
split.edge(fork, right)
split.edge(left, both)
split.edge(right, both)

items = flow("items", {f"item {i}": "ask" for i in range(4)}, effect="read")


async def each(item: int, ctx: Context) -> int:
    return await act(f"item {item}", ctx, item * 10)


items.map("each", over="items", body=each, into="found", concurrency=2, effect=WRITE)

inner = Flow("inner", effect="read")
confirm = inner.hold("confirm", prompt="Really {{n}}?", options=["yes", "no"], bind="sure")


@inner.node(effect=WRITE)
async def inside(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("inside", ctx, {"inside": f"{s['n']} {s['sure']}"})


inner.edge(confirm, inside)
nested = flow("nested", {"inside": "ask"}, effect="read")
nested.subflow("child", inner, inputs={"n": "n"}, outputs={"inside": "state.inside"})

# ---------------------------------------------------------------- a script with a question in its middle
script = flow("script", {"book": "ask", "pay": "ask"}, effect="read")


@script.script
async def talk(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    def step(name: str, gives: Any) -> Any:
        return OUTSIDE.act(name, ctx.run_id, f"{ctx.run_id}/{name}", gives, LINGER)

    booked = await ctx.step("book", step, "book", s["n"] + 1, effect=WRITE)
    said = await ctx.ask("What shall we write?", assignee="user:ada")
    paid = await ctx.step("pay", step, "pay", f"{booked} {said.decision}", effect=EXTERNAL)
    return {"booked": booked, "said": said.decision, "paid": paid}


# ---------------------------------------------------------------- people and time
asks = flow("asks", {"decided": "ask"}, effect="read")
first = asks.hold("first", prompt="In words?", type="freeform", bind="word")
second = asks.hold(
    "second", prompt="And now?", options=["yes", "no"], bind="late", assignee="user:ada",
    timeout="60s", ladder=[("400ms", "user:boss")],
)  # fmt: skip


@asks.node(effect=WRITE)
async def decided(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("decided", ctx, {"decided": f"{s['word']} {s['late']}"})


asks.edge(first, decided)
asks.edge(second, decided)

lapses = flow("lapses", {"went": "ask"}, effect="read")
silent = lapses.hold(
    "silent", prompt="Anybody?", options=["yes", "no"], timeout="700ms", on_timeout="default",
    default_option="no", bind="quiet",
)  # fmt: skip


@lapses.node(effect=WRITE)
async def went(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("went", ctx, {"went": s["quiet"]})


lapses.chain(silent, went)

waits = flow("waits", {"between": "ask"}, effect="pure")
short = waits.timer("short", "50ms")


@waits.node(effect=WRITE)
async def between(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("between", ctx, {"between": s["n"]})


waits.chain(short, between, waits.timer("long", "900ms"))

# ---------------------------------------------------------------- large values, live output, a loop, a cancel
large = flow("large", {"weigh": "ask"}, effect="pure")


@large.node
async def grow(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    ctx.emit("growing " * 50)
    ctx.artifact("report", noise(s["n"], 150_000))
    return {"large": noise(s["n"] + 1, 120_000)}


@large.node(effect=WRITE)
async def weigh(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("weigh", ctx, {"weight": hashlib.sha256(s["large"]).hexdigest()})


large.edge(grow, weigh)

rounds = flow("rounds", {"after": "ask"}, effect="pure")


@rounds.node
async def turn(s: dict[str, Any]) -> dict[str, Any]:
    return {"turns": s.get("turns", 0) + 1}


@rounds.node(effect=WRITE)
async def after(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("after", ctx, {"after": s["turns"]})


rounds.start(turn)
rounds.loop(turn, turn, when="turns < 40", max=50)
rounds.edge(turn, after, when="turns >= 40")

stopped = flow("stopped", effect="read")
never = stopped.hold("never", prompt="Nobody answers this", options=["yes"])


@stopped.node
async def not_reached() -> dict[str, Any]:
    raise AssertionError("the run was cancelled")


stopped.edge(never, not_reached)


# ---------------------------------------------------------------- few at a time, and by the clock
narrow = flow("narrow", {"squeeze": "ask"}, effect="pure", limits=Limits(concurrency=AT_ONCE))


@narrow.node(effect=WRITE)
async def squeeze(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("squeeze", ctx, {"squeezed": s["n"]})


# Nobody creates these: a schedule does.
ticks = flow("ticks", {"tick": "ask"}, effect="pure")


@ticks.node(effect=WRITE)
async def tick(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return await act("tick", ctx, {"ticked": s["moment"]})


def noise(seed: int, size: int) -> bytes:
    """Bytes that no compression makes small."""
    return hashlib.shake_128(str(seed).encode()).digest(size)


def given(name: str, number: int) -> dict[str, Any]:
    return {"n": number, "items": list(range(4))} if name == "items" else {"n": number}


def expected(name: str, n: int) -> dict[str, Any]:
    """Of the end of a run that completed; what people said is held against their own record."""
    found: dict[str, dict[str, Any]] = {
        "order": {"shipped": (n + 1) + n * 3 + n * 3},
        "probing": {"transferred": n},
        "again": {"pinged": n},
        "failing": {"launched": n},
        "refused": {"accepted": n},
        "split": {"both": (n + 1) * 7},
        "items": {"found": [0, 10, 20, 30]},
        "nested": {"inside": f"{n} yes"},
        "script": {"booked": n + 1},
        "asks": {"late": "yes"},
        "lapses": {"went": "no"},
        "waits": {"between": n},
        "large": {"weight": hashlib.sha256(noise(n + 1, 120_000)).hexdigest()},
        "rounds": {"after": 40},
        "narrow": {"squeezed": n},
    }
    return found.get(name, {})
