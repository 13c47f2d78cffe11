"""Commands that outlive the process that started them; the exit code of each is written to its folder.

A shell in a separate session runs the command and then writes its exit code. It holds a lock on a file while
it lives, so that another worker can see whether the command runs, has ended, never started, or was killed
with an unknown result. When a command ends, the rest of its process group is killed.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from holdfast.attractor.long_texts import byte_size, ends_of
from holdfast.types.backoff import Backoff

# Output goes to files and not through pipes: a pipe needs a
# reader, and the worker that started the command may be gone.
COMMAND, LOCK, PID, CODE, STDOUT, STDERR = "command", "lock", "pid", "exit_code", "stdout", "stderr"

# The lock is passed as stdin and moves to 9, which the command does not inherit. `$$` is the first process of
# the session, so it is also the process group of the part in the background. After the folder come the words
# that run the file `command`: a shell, perhaps inside a sandbox.
_KEEPER: Final = """
exec 9<&0 </dev/null
at=$1
shift
echo $$ >"$at/pid.new" && mv "$at/pid.new" "$at/pid" || exit 1
(
  "$@" "$at/command" >"$at/stdout" 2>"$at/stderr" 9<&-
  echo $? >"$at/exit_code.new" && mv "$at/exit_code.new" "$at/exit_code"
  kill -KILL 0
) &
"""

FOLDER, CHILD, FORKS = "tool-", "child-", "forks"
"""Prefixes of the folders of a stage's commands, and of the pipelines that it starts; the folder of forks."""
GRACE: Final = 2.0
"""Seconds between SIGTERM and SIGKILL."""
MAX_STREAM: Final = 64 * 2**20
"""Bytes that a command may write to one stream before it is stopped."""
SHOWN: Final = 64 * 2**10
"""Bytes of a stream that are kept in the context: its beginning and its end."""
_POLL_BACKOFF: Final = Backoff(first=0.002, longest=0.1, factor=1.5)


class ProcessExit(msgspec.Struct, frozen=True):
    """How a command ended. `why`, if it has no exit code: timeout, idle, output, dropped or unknown."""

    code: int | None
    why: str = ""
    seconds: float = 0.0


def begin(
    folder: Path,
    command: str,
    *,
    shell: str,
    cwd: Path | None,
    env: Mapping[str, str],
    sandbox: Sequence[str] = (),
) -> bool:
    """Start it, unless it is already started. `sandbox`: the words before its shell. Raises OSError if it
    cannot be started."""
    # A lock and not the process id says whether it runs:
    # ids are reused, locks are released with their process.
    with (folder / LOCK).open("a+b") as lock:
        while not _locked(lock):
            # A fork in another thread inherits this lock for a moment, so a held lock alone proves nothing:
            # only a command that has written its pid has started.
            if (folder / PID).exists():
                return False
            time.sleep(_POLL_BACKOFF.first)
        if (folder / PID).exists():
            return False
        (folder / COMMAND).write_text(command + "\n", encoding="utf-8")
        keeper = [_SH, "-c", _KEEPER, "holdfast-tool", str(folder.resolve()), *sandbox, shell]
        done = subprocess.run(
            keeper,
            # The open file is the lock: as long as the keeper has it, no other process can take it.
            stdin=lock,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            env=dict(env),
            # A separate session: a Ctrl-C or the end of the worker must not reach the command.
            start_new_session=True,
            check=False,
        )
    # A quick command kills its whole group, perhaps before the keeper itself has exited.
    if done.returncode and not (folder / PID).exists():
        raise OSError(f"{_SH} could not start the command in {folder}: it ended with {done.returncode}")
    return True


def _locked(lock: BinaryIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_SH: Final = "/bin/sh"


def is_alive(folder: Path) -> bool:
    """Whether the shell that runs the command still holds its lock."""
    try:
        with (folder / LOCK).open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


async def wait_for_exit(
    folder: Path,
    *,
    timeout: float | None,
    idle: float | None = None,
    look: Callable[[], object] | None = None,
) -> ProcessExit:
    """Wait until it has ended; stop it at its timeout or output limit, or after `idle` seconds without
    output. `look` is called while it runs. Any process may call it again."""
    for pause in _POLL_BACKOFF.pauses():
        alive = is_alive(folder)
        # The lock is checked first: an exit code that is written between the two checks is still found.
        code = _code(folder)
        seconds = _since(folder)
        if code is not None:
            return ProcessExit(code, "", seconds)
        if not alive:
            # The keeper is gone without an exit code: it was
            # killed, and how far the command came is not known.
            return ProcessExit(None, "unknown", seconds)
        if look is not None:
            look()
        if timeout is not None and seconds >= timeout:
            return await _stopped(folder, "timeout")
        if idle is not None and _quiet(folder) >= idle:
            return await _stopped(folder, "idle")
        if _largest(folder) > MAX_STREAM:
            return await _stopped(folder, "output")
        await asyncio.sleep(pause)
    raise AssertionError("unreachable: the pauses never end")


async def _stopped(folder: Path, why: str) -> ProcessExit:
    await kill(folder)
    # It may have ended by itself just before the signal: then its own exit code counts.
    code = _code(folder)
    return ProcessExit(None, why, _since(folder)) if code is None else ProcessExit(code, "", _since(folder))


async def kill(folder: Path, *, grace: float = GRACE) -> None:
    """Stop the whole process group: SIGTERM, then SIGKILL."""
    group = _group(folder)
    # Only while the lock is held: the pid of an ended command may belong to another process by now.
    if group is None or not is_alive(folder):
        return
    if _signal(group, signal.SIGTERM):
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and is_living(group):  # noqa: ASYNC110 (no event to wait for)
            await asyncio.sleep(0.02)
        _signal(group, signal.SIGKILL)


def kill_now(folder: Path) -> None:
    """SIGKILL at once, for callers that cannot wait."""
    group = _group(folder)
    if group is not None and is_alive(folder):
        _signal(group, signal.SIGKILL)


def kill_all(logs: Path) -> None:
    """Kill every command that an ended run left running on this machine; child pipelines and forks do this
    themselves."""
    for at, names, _ in os.walk(logs):
        for name in [each for each in names if each.startswith(FOLDER)]:
            kill_now(Path(at) / name)
        # In place, which keeps os.walk out of these folders.
        names[:] = [each for each in names if not each.startswith((FOLDER, CHILD)) and each != FORKS]


def _signal(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_living(group: int) -> bool:
    """Whether a process of the group is left that is not a zombie."""
    proc = Path("/proc")
    if not (proc / "self" / "stat").exists():
        return _signal(group, 0)
    for stat in proc.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # "pid (name) state parent group ...": the name may contain spaces and parentheses.
            state, _parent, of = stat.read_text(errors="replace").rpartition(")")[2].split()[:3]
            if int(of) == group and state != "Z":
                return True
    return False


def _group(folder: Path) -> int | None:
    with suppress(OSError, ValueError):
        found = int((folder / PID).read_text())
        # 0 and 1 would signal our own group or every process.
        return found if found > 1 else None
    return None


def _code(folder: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int((folder / CODE).read_text())
    return None


def has_begun(folder: Path) -> bool:
    return (folder / PID).exists()


def _since(folder: Path) -> float:
    """Seconds since its start, by file times: it may have started before this process."""
    try:
        return max(0.0, time.time() - (folder / PID).stat().st_mtime)
    except OSError:
        return 0.0


def _quiet(folder: Path) -> float:
    """Seconds since its last output, or since its start; by file times too."""
    try:
        return max(0.0, time.time() - max((folder / name).stat().st_mtime for name in (PID, STDOUT)))
    except OSError:
        return 0.0


def _largest(folder: Path) -> int:
    found = 0
    for name in (STDOUT, STDERR):
        with suppress(OSError):
            found = max(found, (folder / name).stat().st_size)
    return found


def stream_text(path: Path, limit: int = MAX_STREAM) -> str:
    """A stream for the record: whole, or its beginning and its end."""
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size <= limit:
                return _text(stream.read())
            head = stream.read(limit // 2)
            stream.seek(size - limit // 2)
            tail = stream.read()
    except OSError:
        return ""
    left = size - len(head) - len(tail)
    return f"{_text(head)}\n[... {left:,} bytes left out ...]\n{_text(tail)}"


def shown(text: str, limit: int = SHOWN) -> str:
    """A stream for the context: whole, or its beginning and its end."""
    size = byte_size(text, limit)
    if size <= limit:
        return text
    head, tail = ends_of(text, limit // 2, limit // 2)
    begin, end = head.decode("utf-8", "ignore"), tail.decode("utf-8", "ignore")
    return f"{begin}\n[... {size - len(head) - len(tail):,} bytes left out ...]\n{end}"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("\0", "\ufffd")
