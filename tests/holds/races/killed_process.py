"""Deeds that are cut short: `python -m tests.holds.races.killed_process DEED FOLDER`.

Each deed is done in a child that is killed at one of its points: before a write, inside its transaction,
after it, after a notice has left the instance. Another child opens what is left, does the deed again
as a caller without an answer would, and looks whether all happened once. One line of JSON for each point.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import shutil
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from holdfast.holds.queries.audit import verify_audit
from holdfast.store.sql import hold_changes
from tests.holds.races.actions import DEEDS, RUN, Deed, Fate, Scene, deliver

# Loaded before the forks: else each of some fifty children would load it again.
importlib.import_module("holdfast.store.sql.sqlite.store")
# Parts of one transaction: what was written before them is not there when the process dies.
PARTS = [(hold_changes.audit, "append"), (hold_changes.outbox, "put"), (hold_changes, "_write_messages")]


async def prepare(folder: Path, asked: dict[str, Any], reported: bool) -> None:
    scene = await Scene(folder, 0).open()
    await scene.flow(**asked).run({}, on=scene.hf, run_id=RUN)
    if reported:
        await deliver(scene)
    await scene.store.close()


async def live(folder: Path, deed: Deed, last: int) -> list[str]:
    fate = Fate(last)
    for module, name in PARTS:
        setattr(module, name, _mortal(getattr(module, name), fate))
    scene = await Scene(folder, 1, fate).open()
    fate.passed.clear()
    await deed(scene)
    return fate.passed


def _mortal(part: Callable[..., Any], fate: Fate) -> Callable[..., Any]:
    def passes(*args: Any, **given: Any) -> Any:
        fate.point(f"inside, before {part.__name__}")
        return part(*args, **given)

    return passes


async def look(folder: Path, judge: Deed) -> None:
    """Ten minutes later: the leases of the dead have lapsed."""
    scene = await Scene(folder, 1.2).open()
    await judge(scene)
    assert (await verify_audit(scene.store, "default")).whole
    await scene.store.close()


def child(work: Callable[[], Awaitable[Any]]) -> tuple[int, Any]:
    """(signal that ended it, what it answered)."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        try:
            said = asyncio.run(work())  # type: ignore[arg-type]
        except BaseException:
            said = {"trouble": traceback.format_exc()[-2000:]}
        os.write(theirs, json.dumps(said).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        text = answer.read()
    _, status = os.waitpid(pid, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, json.loads(text) if text else None


def main(name: str, folder: Path) -> None:
    asked, deed, judge, text = DEEDS[name]
    points: list[str] = ["none"]
    before = folder / "before"
    before.mkdir()
    _, trouble = child(lambda: prepare(before, asked, text))
    assert trouble is None, trouble
    for last in range(1000):
        if last > len(points):
            break
        place = folder / str(last)
        shutil.copytree(before, place)
        died, said = child(lambda place=place, last=last: live(place, deed, last))
        if last == 0:
            points = said
            assert isinstance(points, list), said
        _, trouble = child(lambda place=place: look(place, judge))
        point = points[last - 1] if last else "in peace"
        print(json.dumps({"point": point, "died": died, "trouble": trouble}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
