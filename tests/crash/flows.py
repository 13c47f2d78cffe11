"""A dozen small flows: between them they pass every place where a worker can die.

Effects go to `WORLD`. Those with an idempotency key find out there whether they happened before, as a bank
would; those without are asked about after a crash.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from holdfast import Context, Flow, NotDone, Retry, append
from holdfast.errors import StepFailedError
from tests.crash.world import World

WORLD = World(Path("world.jsonl"))

FLOWS: dict[str, Flow] = {}
GIVEN: dict[str, dict[str, Any]] = {}


def settle_in(world: World) -> None:
    """Let the effects of this process happen there."""
    global WORLD
    WORLD = world


def flow(name: str, given: dict[str, Any] | None = None, **options: Any) -> Flow:
    made = FLOWS[name] = Flow(name, **options)
    GIVEN[name] = given or {"n": 1}
    return made


def once(ctx: Context, update: dict[str, Any]) -> dict[str, Any]:
    """An effect that nobody repeats for us: it happens, and a person could look up what it gave."""
    WORLD.happens(f"{ctx.node}/{ctx.visit}", ctx.run_id, key=ctx.idempotency_key, update=update)
    return update


def keyed(ctx: Context, update: dict[str, Any]) -> dict[str, Any]:
    """An effect on a system that knows our key: asking again finds the first answer."""
    known = WORLD.find(ctx.run_id, ctx.idempotency_key)
    return known["update"] if known else once(ctx, update)


def chain(target: Flow, length: int, make: Callable[[int], Callable[..., Any]], **options: Any) -> None:
    nodes = [target.node(id=f"{target.name}{i}", **_numbered(options, i))(make(i)) for i in range(length)]
    target.chain(*nodes)


def _numbered(options: dict[str, Any], i: int) -> dict[str, Any]:
    return {key: value.format(i=i) if isinstance(value, str) else value for key, value in options.items()}


# ---------------------------------------------------------------- chains
def _add(i: int) -> Callable[..., Any]:
    async def add(s: dict[str, Any]) -> dict[str, Any]:
        return {"n": s["n"] * 3 + i}

    return add


def _once(i: int) -> Callable[..., Any]:
    async def act(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return once(ctx, {f"did{i}": s["n"] + i})

    return act


def _keyed(i: int) -> Callable[..., Any]:
    def act(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return keyed(ctx, {f"did{i}": s["n"] + i})

    return act


chain(flow("pure", effect="pure"), 5, _add)
chain(flow("bare"), 3, _once, effect="write")
chain(flow("keyed"), 3, _keyed, effect="external", idempotency_key="{{{{n}}}}-step-{i}")
chain(flow("strict", mode="strict"), 3, _once, effect="external")

# ---------------------------------------------------------------- branches
split = flow("split", effect="read")


@split.node()
async def look(s: dict[str, Any]) -> dict[str, Any]:
    return {"seen": s["n"] + 1}


@split.node(effect="write")
async def left(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return once(ctx, {"left": s["seen"] * 2})


@split.node()
async def right(s: dict[str, Any]) -> dict[str, Any]:
    return {"right": s["seen"] * 5}


@split.node(effect="external")
async def both(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return once(ctx, {"both": s["left"] + s["right"]})


split.edge(look, left)
split.edge(look, right)
split.edge(left, both)
split.edge(right, both)


# ---------------------------------------------------------------- a loop, long enough for a snapshot
@dataclass
class Counting:
    n: int
    log: Annotated[list[int], append] = field(default_factory=list)
    done: str = ""


loop = flow("loop", {"n": 0}, effect="pure", state=Counting)


@loop.node()
async def turn(s: Counting) -> dict[str, Any]:
    return {"n": s.n + 1, "log": s.n}


@loop.node(effect="write")
async def after_loop(s: Counting, ctx: Context) -> dict[str, Any]:
    return once(ctx, {"done": f"after {s.n}"})


loop.start(turn)
loop.loop(turn, turn, when="n < 230", max=300)
loop.edge(turn, after_loop, when="n >= 230")

# ---------------------------------------------------------------- a map, a sub-flow with a question
spread = flow("map", {"items": [1, 2, 3, 4]}, effect="read")


async def each(item: int, ctx: Context) -> int:
    WORLD.happens(f"item {item}", ctx.run_id, key=ctx.idempotency_key, value=item * 10)
    return item * 10


spread.map("each", over="items", body=each, into="found", concurrency=2, effect="write")

ten = flow("ten", {"items": list(range(10))}, effect="read")
ten.map("each", over="items", body=each, into="found", concurrency=1, effect="write")

# No crash point is needed here: whoever advances this run dies of it.
deadly = Flow("deadly", effect="pure")


@deadly.node
async def dies(_s: dict[str, Any]) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


inner = Flow("inner", effect="read")
inner_ask = inner.hold("confirm", prompt="Really {{n}}?", options=["yes", "no"])


@inner.node(effect="write")
async def inside(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return once(ctx, {"inside": f"{s['n']} {s['decision']}"})


inner.edge(inner_ask, inside)
outer = flow("sub", effect="read")
outer_sub = outer.subflow("child", inner, inputs={"n": "n"}, outputs={"inside": "state.inside"})


@outer.node(effect="write")
async def around(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return once(ctx, {"around": f"after {s['inside']}"})


outer.edge(outer_sub, around)

# ---------------------------------------------------------------- a script
told = flow("script", effect="read")


@told.script
async def talk(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    def act(name: str, value: Any) -> Any:
        WORLD.happens(name, ctx.run_id, key=f"{ctx.run_id}/{name}", value=value)
        return value

    room = await ctx.step("reserve", act, "reserve", s["n"] + 1)
    paid = await ctx.step("charge", act, "charge", room * 2)
    said = await ctx.ask("Ship it?", options=["ship", "stop"])
    sent = await ctx.step("ship", act, "ship", f"{said.decision} {paid}")
    return {"room": room, "paid": paid, "sent": sent}


# ---------------------------------------------------------------- time
again = flow("retry")


@again.node(effect="write", retry=Retry(9, delay="30ms"))
async def refused_twice(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    if ctx.attempt <= 2:
        raise NotDone("come back later")
    return once(ctx, {"accepted": s["n"]})


steps = flow("steps", effect="read")


@steps.script
async def in_steps(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """One sub-step is refused twice, another one for good."""

    def act(name: str, refusals: int) -> str:
        failed = ctx.execution.subs.get(name)
        tried = 0 if failed is None else failed.failures
        # Nothing happens in an attempt that is refused: a person who is asked about it says so.
        if tried < refusals:
            raise NotDone("come back later")
        WORLD.happens(name, ctx.run_id, key=f"{ctx.run_id}/{name[1:]}", value=name)
        return name

    policy = Retry(3, backoff="fixed", delay="30ms")
    paid = await ctx.step("pay", act, "=pay", 2, retry=policy, key="pay")
    try:
        sent = await ctx.step("send", act, "=send", 99, retry=policy, key="send")
    except StepFailedError as error:
        sent = str(error)
    return {"paid": paid, "sent": sent}


beside = flow("branches", effect="read")


@beside.script
async def in_branches(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Maps inside a gather, and a race that a short sleep wins."""

    # Without a thread, which would outlive a worker that dies in memory only.
    async def act(name: str) -> str:
        WORLD.happens(name, ctx.run_id, key=f"{ctx.run_id}/{name}", value=name)
        return name

    async def item(row: str, number: int) -> str:
        charged = await ctx.step(f"charge {row}{number}", act, f"charge {row}{number}")
        await ctx.sleep(0.03)
        return await ctx.step(f"book {row}{number}", act, f"book {row}{number}") + charged

    async def line(row: str) -> list[str]:
        return await ctx.map(lambda number: item(row, number), [1, 2])

    async def late() -> str:
        await ctx.sleep(3600)
        return await ctx.step("late", act, "late")

    rows = await ctx.gather(line("a"), line("b"))
    won, _ = await ctx.race(late(), ctx.sleep(0.02))
    return {"rows": rows, "won": won}


paced = flow("paced", {"items": ["a", "b", "c"]}, effect="read")


async def post(item: str, ctx: Context) -> str:
    """An item of a map with a context is a script."""

    async def act() -> str:
        WORLD.happens(f"post {item}", ctx.run_id, key=f"{ctx.run_id}/post {item}", value=item)
        return item

    return await ctx.step(f"post {item}", act)


paced.map("posted", over="items", body=post, into="posts", effect="read", rate="20/s")


@paced.script
async def mailed(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    async def act(item: str) -> str:
        WORLD.happens(f"mail {item}", ctx.run_id, key=f"{ctx.run_id}/mail {item}", value=item)
        return item

    async def mail(item: str) -> str:
        return await ctx.step(f"mail {item}", act, item)

    return {"mails": await ctx.map(mail, s["items"], concurrency=2, rate="50/s", limit_key="mail")}


paced.edge("posted", mailed)

waits = flow("timer", effect="pure")
short = waits.timer("short", "20ms")


@waits.node(effect="write")
async def between(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return once(ctx, {"between": s["n"]})


waits.chain(short, between, waits.timer("long", "200ms"))

# ---------------------------------------------------------------- live output, large values
chatty = flow("emit", effect="read")


@chatty.node
async def say(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    for i in range(12):
        ctx.emit("word " * 200 + str(i))
    return {"said": s["n"]}


@chatty.node(effect="write")
async def said(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return once(ctx, {"end": s["said"]})


chatty.edge(say, said)

big = flow("big", {"n": 1, "given": "g" * 70_000}, effect="pure")


@big.node
async def grow(s: dict[str, Any]) -> dict[str, Any]:
    return {"large": _noise(100_000), "huge": _noise(1_500_000)}


@big.node(effect="write")
async def weigh(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    whole = s["given"].encode() + s["large"] + s["huge"]
    return once(ctx, {"weight": hashlib.sha256(whole).hexdigest(), "large": None})


big.edge(grow, weigh)


def _noise(size: int) -> bytes:
    """Bytes that no compression makes small."""
    return hashlib.shake_128(str(size).encode()).digest(size)


HELD = flow("hold", effect="read")
first_hold = HELD.hold("first", prompt="One?", options=["approve", "reject"], bind="one")
second_hold = HELD.hold("second", prompt="Two?", type="freeform", bind="two")


@HELD.node(effect="external")
async def decided(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return once(ctx, {"decided": f"{s['one']} {s['two']}"})


HELD.edge(first_hold, decided)
HELD.edge(second_hold, decided)

LAPSED = flow("lapse", effect="read")
silent = LAPSED.hold(
    "silent", prompt="Anybody?", options=["yes", "no"], timeout="60ms", on_timeout="default",
    default_option="no", bind="quiet",
)  # fmt: skip
unheard = LAPSED.hold(
    "unheard", prompt="Nobody?", options=["yes"], timeout="60ms", on_failure="skip", bind="late"
)


@LAPSED.node(effect="external")
async def went_on(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return once(ctx, {"went": s["quiet"]})


LAPSED.chain(silent, unheard, went_on)

# What the person says to each question; in-doubt holds are answered by what the world shows.
SAYS = {"confirm": "yes", "talk": "ship", "first": "approve", "second": "in words", "doc_ask": "ship"}
