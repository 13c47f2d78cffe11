"""Logging, and the crash points at which a test can end the process.

Logs use the standard library, in text or JSON; a line that is logged inside a run has its run and node.

Crash points are named and inert in production. A test process arms one with `arm`, or by
`HOLDFAST_CRASH=name` / `name:3` (the third time it is reached); reaching it ends the process at
once, without clean-up, as a power cut would.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping, MutableMapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TextIO, cast

from holdfast.types.redaction import redactor

if TYPE_CHECKING:
    import asyncio

log: Final = logging.getLogger("holdfast")
node_log: Final = logging.getLogger("holdfast.node")


class NodePlace(NamedTuple):
    """The attempt of the node that is running."""

    run: str
    flow: str
    scope: str
    node: str
    visit: int
    attempt: int
    seq: int  # of the record that started it


class PlaceSource(Protocol):
    def where(self, execution: Any) -> NodePlace | None: ...

    def leave_running(self, call: asyncio.Future[Any]) -> None:
        """Code of the node that nobody waits for any more, and that runs until `call` is done."""
        ...


# The run's driver, and the execution (None: the one that runs in the driver's task). It is a pair and not a
# NodePlace because most handlers log nothing: the place is built only when it is needed.
current_node: ContextVar[tuple[PlaceSource, Any] | None] = ContextVar(
    "the node whose handler runs here", default=None
)


def current_place() -> NodePlace | None:
    """The place of the handler that runs in this task, if one does."""
    at = current_node.get()
    return None if at is None else at[0].where(at[1])


# Wrappers of each sub-step's function, called with the function, the step and its idempotency key.
on_substep: Final[list[Callable[[Callable[..., Any], Any, str | None], Callable[..., Any]]]] = []


# ---------------------------------------------------------------------- logs

_OURS: Final = NodePlace._fields
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class NodeLog(logging.LoggerAdapter[logging.Logger]):
    """`ctx.log`: adds the node's place to the fields that the caller passes as `extra`, and gives each line
    of `lowest` level or above to `store`, whatever the process itself logs."""

    def __init__(
        self,
        logger: logging.Logger,
        extra: Mapping[str, object],
        store: Callable[[int, str, str], None],
        lowest: int,
    ) -> None:
        super().__init__(logger, extra)
        self._store = store
        self._lowest = lowest

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if level >= self._lowest:
            self._store(
                level, logging.getLevelName(level).lower(), _line_text(msg, args, kwargs.get("exc_info"))
            )
        # Without this method in the stack, so that a record names the line of its caller.
        super().log(level, msg, *args, **{**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + 1})

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, {**kwargs, "extra": {**(self.extra or {}), **(kwargs.get("extra") or {})}}


def message_of(record: logging.LogRecord) -> str:
    """Its message. Raises nothing: arguments that do not fit follow the message."""
    try:
        return record.getMessage()
    except Exception:
        return f"{record.msg!r} {record.args!r}"


def _line_text(msg: object, args: tuple[object, ...], exc_info: Any) -> str:
    """As a formatter writes it. Raises nothing."""
    text = message_of(logging.makeLogRecord({"msg": msg, "args": args[0] if _is_mapping(args) else args}))
    if exc_info:
        error: BaseException | None = exc_info if isinstance(exc_info, BaseException) else sys.exc_info()[1]
        if isinstance(exc_info, tuple):
            error = cast("tuple[Any, BaseException | None, Any]", exc_info)[1]
        if error is not None:
            text += f"\n{logging.Formatter().formatException((type(error), error, error.__traceback__))}"
    return text


def _is_mapping(args: tuple[object, ...]) -> bool:
    """`log.info("%(a)s", {"a": 1})` as `logging` reads it."""
    return len(args) == 1 and isinstance(args[0], Mapping) and bool(cast("Mapping[Any, Any]", args[0]))


class RedactionFilter(logging.Filter):
    """Masks secrets in the messages of Holdfast's loggers, whatever handler formats them."""

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except Exception:
            # A node does not fail because of it, and the handlers of `logging` would print the arguments.
            record.msg, record.args = redactor.redact_line(message_of(record)), None
            return True
        hidden = redactor.redact_line(message)
        if hidden != message:
            # Without the arguments: they contain the secret, and each handler would format them again.
            record.msg, record.args = hidden, None
        return True


# On the loggers and not only on our handlers: a program may attach handlers of its own.
for _logger in (log, node_log):
    _logger.addFilter(RedactionFilter())


class NodePlaceFilter(logging.Filter):
    """Adds run, flow, node, visit, attempt and seq to whatever any logger logs while a handler runs."""

    def filter(self, record: logging.LogRecord) -> bool:
        at = current_place()
        # Holdfast's own logger sets these fields itself: its line may be about another run than this one.
        if at is not None and record.name != log.name:
            for name, value in at._asdict().items():
                if not hasattr(record, name):
                    setattr(record, name, value)
        return True


class TextLines(logging.Formatter):
    """For people: the place follows the message."""

    def format(self, record: logging.LogRecord) -> str:
        at = "".join(f" {name}={value}" for name, value in _extra_fields(record).items())
        when = f"{datetime.fromtimestamp(record.created).astimezone():%Y-%m-%d %H:%M:%S.%f}"[:-3]
        line = f"{when} {record.levelname} {record.getMessage()}{at}"
        return redactor.redact_line(
            f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
        )


class JsonLines(logging.Formatter):
    """For machines: one object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_extra_fields(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        # Here, because most commands log no JSON and start faster without it.
        import json

        return redactor.redact_line(json.dumps(entry, ensure_ascii=False, default=str))


def _extra_fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of the place, then those that the caller added."""
    fields: Mapping[str, Any] = vars(record)
    placed = {name: fields[name] for name in _OURS if fields.get(name) not in (None, "")}
    more = {name: value for name, value in fields.items() if name not in _STANDARD and name not in _OURS}
    return placed | more


FORMS: Final[Mapping[str, type[logging.Formatter]]] = {"text": TextLines, "json": JsonLines}


class Logging:
    """Configures the root logger; used as a context manager, it restores the old configuration at the end."""

    def __init__(self, handler: logging.Handler, level: str) -> None:
        self._root = logging.getLogger()
        self._before = list(self._root.handlers), self._root.level
        self._root.setLevel(level)
        # Ours is replaced and not added: configuring twice must not print each line twice.
        self._root.handlers[:] = [*(old for old in self._root.handlers if not _is_ours(old)), handler]

    def __enter__(self) -> Logging:
        return self

    def __exit__(self, *_exc: object) -> None:
        handlers, level = self._before
        self._root.handlers[:] = handlers
        self._root.setLevel(level)


def configure_logging(form: str = "text", level: str = "INFO", stream: TextIO | None = None) -> Logging:
    """Write all logs of this process to `stream` (default: stderr), one line each. Raises ValueError."""
    if form not in FORMS:
        raise ValueError(f"the log format must be one of {', '.join(FORMS)}, not {form!r}")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(FORMS[form]())
    handler.addFilter(NodePlaceFilter())
    return Logging(handler, level.upper())


def logging_is_configured() -> bool:
    return any(_is_ours(handler) for handler in logging.getLogger().handlers)


def _is_ours(handler: logging.Handler) -> bool:
    return isinstance(handler.formatter, (TextLines, JsonLines))


# ---------------------------------------------------------------------- crash points

CRASH_POINTS: Final = (
    "after_claim",
    "after_intent",
    "after_handler",
    "after_substep",
    "after_blob_put",
    "inside_settle",
    "after_settle",
    "before_park",
    "after_park",
    "after_answer",
    "after_timer_fired",
    "after_lapse",
    "after_publish",
    "during_backoff",
    "inside_snapshot",
    "inside_prune",
    "inside_fork",
    "lease_lost_mid_handler",
    "lease_lost_before_commit",
)

ENGINE_CRASH_POINTS: Final = (
    "inside_project",
    "after_project",
    "after_note",
    "before_continue",
    "inside_move",
    "after_move",
)
"""Those of runs that another engine drives."""

_armed: dict[str, Callable[[], None]] = {}


def crashpoint(name: str) -> None:
    """Marks a place where the process may die without losing or repeating an effect."""
    # First of all: in production nothing is armed, and this function is called at every commit.
    if _armed:
        hit = _armed.get(name)
        if hit is not None:
            hit()


def arm(name: str, hit: Callable[[], None] | None = None, *, nth: int = 1) -> None:
    """Call `hit` (default: end the process) the nth time that `name` is reached from now on."""
    if name not in CRASH_POINTS and name not in ENGINE_CRASH_POINTS:
        raise ValueError(f"{name!r} is not a crash point. Known: {', '.join(CRASH_POINTS)}")
    action = hit or _die
    left = nth

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            action()

    arm_each(name, count)


def arm_each(name: str, hit: Callable[[], None]) -> None:
    """Call `hit` each time that `name` is reached from now on."""
    _armed[name] = hit


def disarm(name: str | None = None) -> None:
    """Without a name: all of them."""
    if name is None:
        _armed.clear()
    else:
        _armed.pop(name, None)


def _die() -> None:
    # 137 is what a shell shows for SIGKILL. No clean-up runs, as in a power cut.
    os._exit(137)


def arm_from_environment() -> None:
    """A child process of a test has no test code that could arm it."""
    setting = os.environ.get("HOLDFAST_CRASH")
    if setting:
        name, _, nth = setting.partition(":")
        arm(name, nth=int(nth or 1))


arm_from_environment()
