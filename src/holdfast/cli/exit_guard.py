"""A command never exits with 0 because code of a flow ended its process.

`os._exit(0)` and `os.exec...` leave at once, at the top of a file, in a thread, or in a function given to
`atexit`. While a command runs they end it with `Exit.broken`; after it, with the code that it ended with.
A process that the code forks may do as it likes. Native code (`ctypes`) cannot be watched.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final, NoReturn

from holdfast.cli.exit_codes import Exit

REPLACED: Final = ("_exit", "execv", "execve")
"""The other functions of `os` that replace the process call one of these."""


class ExitGuard:
    def __init__(self) -> None:
        self._pid = os.getpid()
        self._real: dict[str, Any] = {name: getattr(os, name) for name in REPLACED if hasattr(os, name)}
        self.ended: int | None = None
        """What the command exits with, as soon as that is known."""

    def install(self) -> None:
        # Also in the module that `os` has them from: `importlib.reload(os)` takes them from there again.
        for module in (os, sys.modules.get("posix"), sys.modules.get("nt")):
            for name in self._real if module is not None else ():
                setattr(module, name, self._guarded(name))

    def remove(self) -> None:
        for module in (os, sys.modules.get("posix"), sys.modules.get("nt")):
            for name, real in self._real.items() if module is not None else ():
                setattr(module, name, real)

    def _guarded(self, name: str) -> Any:
        real = self._real[name]

        def guarded(*args: Any, **kwargs: Any) -> Any:
            if os.getpid() != self._pid:
                return real(*args, **kwargs)
            code = (args[0] if args else kwargs.get("status", 0)) if name == "_exit" else 0
            return self._leave(name, code)

        guarded.__name__ = guarded.__qualname__ = name
        return guarded

    def _leave(self, name: str, code: Any) -> NoReturn:
        if not isinstance(code, int) or code & 0xFF == 0:  # 256 is 0 for the system
            code = Exit.broken if self.ended is None else self.ended
            if self.ended is None:
                text = f"holdfast: the code that ran called os.{name}: the command has not done its work.\n"
                os.write(2, text.encode())
        self._real["_exit"](code)
        raise AssertionError("unreachable")
