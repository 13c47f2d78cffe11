"""Where a process hangs: on SIGUSR2 it writes down what each of its tasks waits for."""

from __future__ import annotations

import asyncio
import faulthandler
import io
import signal
import sys

ASK = signal.SIGUSR2


def tell_when_asked() -> None:
    """In a running loop, from its main thread."""
    asyncio.get_running_loop().add_signal_handler(ASK, tell)


def tell() -> None:
    out = io.StringIO()
    for task in asyncio.all_tasks():
        out.write(f"TASK {task.get_name()} {task.get_coro()!r}\n")
        waiting: object = task.get_coro()
        while waiting is not None:
            frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "ag_frame", None)
            if frame is not None:
                out.write(f"    {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}\n")
            following = getattr(waiting, "cr_await", None) or getattr(waiting, "ag_await", None)
            if following is None and frame is None:
                out.write(f"    {waiting!r}\n")
            waiting = following
    print(out.getvalue(), file=sys.stderr, flush=True)
    faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
