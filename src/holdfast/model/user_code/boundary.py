"""Calls of user code. Only an Exception comes out of them, whatever the code does.

A function may raise SystemExit, StopIteration or any other BaseException, cancel the task that it runs in, or
return twice because it called `os.fork`. Inside Holdfast each of these is an error of that function, and
never the end of a worker. What passes unchanged: a cancellation that was requested from outside, Ctrl-C, and
Holdfast's own control flow.

Every kind of user callable is in the table of `tests/handlers/callables.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dis
import inspect
from asyncio import runners
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from holdfast.errors import UserCodeExitError
from holdfast.model.user_code import forks
from holdfast.model.user_code.tasks import OwnedTask
from holdfast.model.user_code.threads import LIMIT, leave_running, run_in_thread
from holdfast.telemetry import log
from holdfast.types.text import clean_text

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")

GRACE: Final = 1.0  # seconds for code outside a node to end after it was cancelled
_RAISE: Final = dis.opmap["RAISE_VARARGS"]
left_tasks: Final[list[asyncio.Task[Any]]] = []
"""Tasks that did not stop at the end of their loop. Kept: to destroy one would run its code again."""


class ControlFlow(BaseException):
    """Unwinds user code on purpose. Not an Exception, so that handlers do not catch it; it passes the
    boundary unchanged."""


async def call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a plain or async function. A plain one runs in a thread, because it may block."""
    began = forks.count
    try:
        if inspect.iscoroutinefunction(fn):
            found = await fn(*args, **kwargs)
        else:
            found = await run_in_thread(call_plain, fn, *args, **kwargs)
            if inspect.isawaitable(found):
                found = await found
    except BaseException as error:
        found = to_error(error, began)
        if found is error:
            raise
        raise found from error
    forks.leave_child_of(began)
    return found


async def call_alone(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The same in a task of its own: what it does to its task concerns that task only, and a caller with a
    time limit does not wait for code that ignores it."""
    task = OwnedTask(call(fn, *args, **kwargs), loop=asyncio.get_running_loop())
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.stop()
        await asyncio.wait({task}, timeout=GRACE)
        if not task.done():
            task.disowned = True
            leave_running(task)
            log.error("%s did not stop within %g s of its cancellation, and may still run", _name(fn), GRACE)
        raise
    if task.cancelled():
        raise UserCodeExitError("it cancelled its own task")
    return task.result()


def _name(fn: Callable[..., Any]) -> str:
    return clean_text(getattr(fn, "__qualname__", None) or type(fn).__name__, 200)


def call_plain(fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The result of a plain function, called here."""
    began = forks.count
    try:
        found = fn(*args, **kwargs)
    except StopIteration as error:
        # No future and no coroutine can carry it: the caller would wait for ever.
        forks.leave_child_of(began, 1)
        raise RuntimeError("the function raised StopIteration") from error
    except BaseException as error:
        made = to_error(error, began)
        if made is error:
            raise
        raise made from error
    if forks.count != began:
        forks.leave_child_of(began)
    return found


def to_error(error: BaseException, began: int | None = None) -> Exception:
    """What user code raised, as an Exception. Raises it again if it is not from that code. `began`:
    `forks.count` before the call."""
    if began is not None:
        forks.leave_child_of(began, _exit_code(error))
    if isinstance(error, Exception):
        return error if _is_readable(error) else UserCodeExitError(_described(error))
    if isinstance(error, ControlFlow) or _is_requested(error):
        raise error
    return UserCodeExitError(_described(error))


def _is_readable(error: Exception) -> bool:
    """Whether its text can be logged: `str` calls code of the user."""
    try:
        str(error)
    # Its text is replaced where it is shown (`types.text`): the error stays what it is.
    except Exception:
        return True
    except BaseException:
        return False
    return True


def _is_requested(error: BaseException) -> bool:
    """Whether the code was ended from outside."""
    if isinstance(error, asyncio.CancelledError):
        return _is_cancelled()
    if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
        return not _was_raised_by_code(error)
    return False


def _is_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a thread without a loop
        return False
    return task is not None and task.cancelling() > 0


def _was_raised_by_code(error: BaseException) -> bool:
    """Whether a `raise` statement raised it: Ctrl-C and the end of a coroutine need none."""
    found = error.__traceback__
    if found is None:
        return False
    while found.tb_next is not None:
        found = found.tb_next
    code = found.tb_frame.f_code
    # `asyncio.run` raises it with a statement, at the second Ctrl-C.
    return code.co_filename != runners.__file__ and code.co_code[found.tb_lasti] == _RAISE


def _described(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it called sys.exit({_text(error.code)})"
    if isinstance(error, asyncio.CancelledError):
        return "it raised CancelledError, and no caller has cancelled it"
    return f"it raised {type(error).__name__}: {_text(error)}"


def _text(value: Any) -> str:
    return "" if value is None else clean_text(value, 200)


def _exit_code(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    return 1


async def absorb_own_cancel(task: OwnedTask[Any]) -> None:
    """The code cancelled its own task and ended: the cancellation must not reach what runs next in it."""
    while task.cancelling() and not task.stopped:
        task.uncancel()
    try:
        # Before Python 3.13 `uncancel` leaves a cancellation pending that was not delivered yet.
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        if task.stopped:
            raise


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` for the commands: a task of user code that calls `sys.exit` does not end the loop. The
    code that waits for that task gets the error."""
    # Not needed by `import holdfast`.
    from concurrent.futures import ThreadPoolExecutor

    with asyncio.Runner() as runner:
        whole = runner.get_loop().create_task(work)
        # Named like those of asyncio; as many as for plain functions (`user_code.threads`).
        threads = ThreadPoolExecutor(LIMIT, thread_name_prefix="asyncio")
        runner.get_loop().set_default_executor(threads)
        try:
            while True:
                try:
                    return runner.run(_wait(whole))
                except SystemExit as error:
                    if whole.done():
                        raise UserCodeExitError(_described(error)) from error
        finally:
            _leave_tasks(runner.get_loop())
            _leave_threads(runner.get_loop(), threads)


def _leave_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """The end of a loop waits for all tasks that are left: not for one that swallows its cancellation."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        with contextlib.suppress(BaseException):
            loop.run_until_complete(asyncio.wait(left, timeout=GRACE))
    for task in left:
        if not task.done():
            log.warning("a task of the code that ran did not stop, and is left behind: %s", task.get_name())
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            left_tasks.append(task)
            asyncio._unregister_task(task)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue]


def _leave_threads(loop: asyncio.AbstractEventLoop, threads: ThreadPoolExecutor) -> None:
    """The end of a loop waits for its threads: not for calls of user code (`asyncio.to_thread`) that do not
    return. The command says at its end which are left."""
    threads.shutdown(wait=False, cancel_futures=True)
    # The loop waits for those of the one that it has.
    loop.set_default_executor(type(threads)(1))


async def _wait(task: asyncio.Task[T]) -> T:
    return await task
