"""Finds code that is declared `pure` or `read` but writes, with Python's audit events.

It is a hint and not a proof: C code need not raise audit events.
"""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from typing import Any, Final

from holdfast.torture.effects import ENVIRONMENT
from holdfast.torture.trial_log import CallId, TrialLog, UndeclaredEffect

current: ContextVar[tuple[CallId, str] | None] = ContextVar("the call that is being made", default=None)

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_CHANGES: Final = frozenset(
    {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "subprocess.Popen"}
)
# The code of a script around its steps runs again as well.
REPEATED: Final = ("pure", "read", "script")
_OWN: Final = ("__pycache__", "/dev/null", "/dev/tty")


def watch(notebook: TrialLog) -> None:
    """For the rest of this process. Each effect is recorded once."""
    seen: set[tuple[CallId, str]] = set()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        call = current.get()
        if call is None or call[1] not in REPEATED:
            return
        did = _effect_text(event, args, call[1])
        if did is not None and (call[0], did) not in seen:
            seen.add((call[0], did))
            notebook.write(UndeclaredEffect(call[0], call[1], did))

    sys.addaudithook(hook)


def _effect_text(event: str, args: tuple[Any, ...], effect: str) -> str | None:
    if event == "open":
        return _opened(*args[:3])
    if event in _CHANGES:
        return f"{event.replace('.', ': ')} {args[0]}"
    # Reading from a service is what `read` allows.
    if event == "socket.connect" and effect == "pure":
        return f"connects to {args[1]}"
    return None


def _opened(path: Any, mode: Any, flags: Any) -> str | None:
    writes = any(c in mode for c in "wax+") if isinstance(mode, str) else bool((flags or 0) & _WRITES)
    name = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""  # pyright: ignore[reportUnknownArgumentType]
    if not writes or not name or name == os.environ.get(ENVIRONMENT) or any(own in name for own in _OWN):
        return None
    return f"opens {name} for writing"
