"""A flow that leaves traces in every table, and what looks for them on the disk."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast import Context, Flow, Holdfast
from holdfast.checkpoint.keys import EVERYBODY, StaticKeys, new_scope, rotated, with_scope
from holdfast.types.ids import RunId

CANARY = "c4n4ry-in-the-clear"
LARGE = CANARY * 8_000
HUGE = (CANARY + "!") * 90_000
NOW = datetime(2026, 11, 15, tzinfo=UTC)


def ring(*tenants: str) -> StaticKeys:
    file = None
    for name in tenants or (EVERYBODY,):
        file = with_scope(file, name, new_scope(NOW))
    assert file is not None
    return StaticKeys(file)


def turned(keys: StaticKeys, name: str = EVERYBODY) -> StaticKeys:
    """The same ring with a newer key."""
    return StaticKeys(with_scope(keys.file, name, rotated(keys.file.scopes[name], NOW)))


def without(keys: StaticKeys, key_id: str) -> StaticKeys:
    scopes = {
        name: type(scope)(scope.address, scope.current, tuple(k for k in scope.keys if k.id != key_id))
        for name, scope in keys.file.scopes.items()
    }
    return StaticKeys(type(keys.file)(1, scopes))


def telling_flow() -> Flow:
    flow = Flow("telling", effect="pure", memory="snapshot")

    async def write(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.emit({"said": CANARY})
        await ctx.memory.write(f"remember {CANARY}")
        found = await ctx.memory.read("remember")
        return {"text": CANARY, "large": LARGE, "huge": HUGE, "found": len(found)}

    node = flow.node(effect="read")(write)
    ask = flow.hold("ask", prompt="May {{text}} go?", options=["yes", "no"])

    async def boom(s: dict[str, Any]) -> dict[str, Any]:
        raise ValueError(f"{CANARY} went wrong")

    end = flow.node()(boom)
    flow.edge(node, ask)
    flow.edge(ask, end)
    return flow


async def tell(hf: Holdfast, **options: Any) -> RunId:
    """A run that has passed through everything and failed."""
    flow = telling_flow()
    result = await flow.run({"given": CANARY}, on=hf, **options)
    service = await hf.service()
    (hold,) = await service.holds(result.run_id)
    await service.answer(hold.id, "yes", data={"note": CANARY}, comment=CANARY)
    failed = await flow.resume(result.run_id, on=hf)
    assert failed.failed
    return RunId(result.run_id)


async def picture(hf: Holdfast, run: str) -> Any:
    """All that can be seen of a run."""
    service = await hf.service()
    row = await service.get(run)
    return (
        (await service.latest(run)).as_interface(),
        [replace(hold, read_only=False) for hold in await service.holds(run, open_only=False)],
        list(await service.events(run)),
        row.error,
    )


def found_on_disk(folder: Path, word: str = CANARY) -> list[str]:
    """The files that hold the word as it is, or as the first letters of a compressed text would."""
    return [str(f) for f in folder.rglob("*") if f.is_file() and word.encode() in f.read_bytes()]
