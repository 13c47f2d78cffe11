"""The `holdfast` command. Every error becomes a sentence or two and an exit code (docs/reference/cli.md)."""

from __future__ import annotations

import atexit
import os
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NoReturn

from holdfast.cli.exit_codes import Exit
from holdfast.cli.exit_guard import ExitGuard
from holdfast.errors import HoldfastError, RequirementsMissingError, RunError, StoreError

__all__ = ["Exit", "main", "run"]

THREAD_GRACE: Final = 1.0  # seconds for threads of user code to end after the command has
NATIVE: Final = "temporalio.bridge.runtime"
"""Its threads are not Python's: one that calls back while the interpreter ends aborts the process."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """The console script."""
    guard = ExitGuard()
    guard.install()
    code = guard.ended = run(list(sys.argv[1:] if argv is None else argv))
    _leave_threads(code)
    # Not `sys.exit`, which the code that ran may have replaced.
    raise SystemExit(int(code))


def _leave_threads(code: int) -> None:
    """Python waits for threads at the end of a process: not for those that the code of a run left running."""
    import threading

    main, until = threading.main_thread(), time.monotonic() + THREAD_GRACE
    # Our own pools (`holdfast-...`) have no work left and end with the interpreter.
    left = [
        each
        for each in threading.enumerate()
        if each is not main and not each.daemon and not each.name.startswith("holdfast-")
    ]
    for thread in left:
        thread.join(max(0.0, until - time.monotonic()))
    left = [thread.name for thread in left if thread.is_alive()]
    calls = sys.modules.get("holdfast.model.user_code.boundary")
    native = NATIVE in sys.modules
    if not left and not native and not (calls is not None and calls.left_tasks):
        return
    if left:
        from holdfast.cli.output.console import print_error

        print_error(f"the code that ran left a thread behind ({', '.join(left[:5])}), which ends now.")
    if native:
        # All of them, in their order: Python has no public call for that.
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


_USAGE: Final = (
    (r" is not a valid int(?:eger)?(?: range)?\b", " is not a whole number"),
    (r" is not a valid float(?: range)?\b", " is not a number"),
    (r" is not in the range x>=(\S+?)\.?$", r" is less than \1."),
    (r" is not in the range (\S+?)<=x<=(\S+?)\.?$", r" is not between \1 and \2."),
    (r"^Got unexpected extra argument(?:\(s\)|s)? \((.*)\)", r"unexpected argument: \1"),
    (r" \(Possible options: (.*)\)$", r". Did you mean \1?"),
)


def run(argv: list[str]) -> int:
    """The same without ending the process; returns the exit code."""
    # Before anything else is imported: the person waits for each Tab.
    if os.environ.get("_HOLDFAST_COMPLETE"):
        from holdfast.cli.completion import complete

        return complete()
    from holdfast.cli.app import command_line
    from holdfast.cli.output.console import print_error

    try:
        code: object = command_line()(_spelled_out(argv), prog_name="holdfast", standalone_mode=False)
        _flush_output()
        return code if isinstance(code, int) else Exit.ok
    except KeyboardInterrupt:
        print_error("interrupted.")
        # 130 is what shells use for a command that Ctrl-C ended.
        return Exit.interrupted
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            _flush_output()
            return Exit.run_failed
        # Code of a user: whatever code it asks for, the command has not done its work.
        print_error(f"the code that ran called sys.exit({error.code}).")
        return Exit.run_failed
    except Exception as error:
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        return _explain(error)


def _flush_output() -> None:
    """Buffered output may meet a closed pipe only now, as with `| head`: then it goes nowhere."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _spelled_out(argv: list[str]) -> list[str]:
    """`--json=FORM` as two options: the option parser supports no flag with an optional value."""
    found: list[str] = []
    for word in argv:
        name, equals, form = word.partition("=")
        found += ["--json", "--form", form] if name == "--json" and equals else [word]
    return found


def _explain(error: Exception) -> Exit:
    from holdfast.cli.output.console import print_error

    usage = getattr(error, "format_message", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        # In a terminal the help is already printed, and the message is empty.
        print(error, file=sys.stderr)
        return Exit.bad_input
    if usage is not None:
        text = _usage_text(usage().rstrip())
        print_error(f"{text if text.endswith(('.', '?')) else f'{text}.'} See --help.")
        return Exit.bad_input
    if isinstance(error, HoldfastError):
        print_error(str(error))
        return _code_of(error)
    print_error(f"unexpected error: {type(error).__name__}: {error}. Set HOLDFAST_DEBUG=1 for a traceback.")
    return Exit.broken


def _usage_text(text: str) -> str:
    """The option parser's message, worded as every other one."""
    for pattern, words in _USAGE:
        text = re.sub(pattern, words, text)
    return text[:1].lower() + text[1:]


def _code_of(error: HoldfastError) -> Exit:
    if isinstance(error, StoreError):
        return Exit.store_trouble
    if isinstance(error, RequirementsMissingError):
        return Exit.run_waits  # for a worker that has it
    return Exit.run_failed if isinstance(error, RunError) else Exit.bad_input
