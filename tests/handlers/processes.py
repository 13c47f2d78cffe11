"""Flows whose nodes run in processes. A process loads this module, so they are not in a test."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast import Context, Flow, NotDone, Retry


@dataclass
class Job:
    folder: str = ""
    way: str = ""
    pid: int = 0
    parts: list[str] = field(default_factory=list)
    key: str = ""


def act(s: Job) -> dict[str, Any]:
    """Each way in which a process can end."""
    if s.folder:
        (Path(s.folder) / "pid").write_text(str(os.getpid()))
    match s.way:
        case "raises":
            raise ValueError("in the process")
        case "not_done":
            raise NotDone("nothing happened")
        case "exits":
            sys.exit(0)
        case "dies":
            os._exit(3)
        case "ends well":
            # As native code does: neither Python nor what replaces `os._exit` sees it.
            ctypes.CDLL(None)._exit(0)
        case "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hangs":
            while True:
                time.sleep(0.05)
        case "unstorable":
            return {"parts": [object()]}
    return {"pid": os.getpid(), "parts": [*s.parts, "done"]}


jobs = Flow("jobs", state=Job, effect="pure")
jobs.node(id="work", isolation="process")(act)

effects = Flow("effects", state=Job, effect="external")
effects.node(id="work", isolation="process", retry=Retry(1))(act)

limited = Flow("limited", state=Job, effect="pure")
limited.node(id="work", isolation="process", timeout=3)(act)

contexts = Flow("contexts", state=Job, effect="pure")


@contexts.node(isolation="process", idempotency_key="job-{{way}}")
async def work(s: Job, ctx: Context) -> dict[str, Any]:
    if s.way == "asks":
        await ctx.ask("May I?")
    return {"key": ctx.idempotency_key, "parts": [ctx.node, str(ctx.attempt)]}


maps = Flow("maps", effect="pure")
maps.map("each", over="items", body=lambda item: item * 2, into="doubled", isolation="process")
