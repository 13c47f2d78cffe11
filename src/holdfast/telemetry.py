"""Logging and crash points: what can be watched, and where a test may pull the plug.

Logs are those of the standard library, in text or JSON, each line with its place in a run where it has one.

Crash points are named and inert in production (D-39). A test process arms one with `arm`, or by
`HOLDFAST_CRASH=name` / `name:3` (the third time it is reached); reaching it ends the process at
once, with no clean-up, as a power cut would.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping, MutableMapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol, TextIO

from holdfast.types.redaction import redactor

log: Final = logging.getLogger("holdfast")
node_log: Final = logging.getLogger("holdfast.node")


class NodePlace(NamedTuple):
    """Which attempt of which node is being made."""

    run: str
    flow: str
    scope: str
    node: str
    visit: int
    attempt: int
    seq: int  # of the record that started it


class PlaceSource(Protocol):
    def where(self, execution: Any) -> NodePlace | None: ...


# Whoever drives the run, and the execution (None: the one that runs in the driver's own task): the place
# is spelled out only where somebody asks.
current_node: ContextVar[tuple[PlaceSource, Any] | None] = ContextVar(
    "the node whose handler runs here", default=None
)


def current_place() -> NodePlace | None:
    """Of the handler that runs here, if one does."""
    at = current_node.get()
    return None if at is None else at[0].where(at[1])


# What wraps the function of each sub-step: called with it, the step and its idempotency key. Else empty.
on_substep: Final[list[Callable[[Callable[..., Any], Any, str | None], Callable[..., Any]]]] = []


# ---------------------------------------------------------------------- logs

_OURS: Final = NodePlace._fields
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class NodeLog(logging.LoggerAdapter[logging.Logger]):
    """`ctx.log`: knows its place, and keeps what the caller adds."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, {**kwargs, "extra": {**(self.extra or {}), **(kwargs.get("extra") or {})}}


class RedactionFilter(logging.Filter):
    """Hides secrets in what our own loggers say, whoever formats it."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        hidden = redactor.redact(said)
        if hidden != said:
            record.msg, record.args = hidden, None
        return True


for _logger in (log, node_log):
    _logger.addFilter(RedactionFilter())


class NodePlaceFilter(logging.Filter):
    """Adds run, flow, node, visit, attempt and seq to what is logged while a handler runs, by whomever."""

    def filter(self, record: logging.LogRecord) -> bool:
        at = current_place()
        # Our own logger says itself what a line is about: it may speak of another run than the one here.
        if at is not None and record.name != log.name:
            for name, value in at._asdict().items():
                if not hasattr(record, name):
                    setattr(record, name, value)
        return True


class TextLines(logging.Formatter):
    """For people: the place stands behind the message."""

    def format(self, record: logging.LogRecord) -> str:
        at = "".join(f" {name}={value}" for name, value in _extra_fields(record).items())
        when = f"{datetime.fromtimestamp(record.created).astimezone():%Y-%m-%d %H:%M:%S.%f}"[:-3]
        line = f"{when} {record.levelname} {record.getMessage()}{at}"
        return redactor.redact(
            f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
        )


class JsonLines(logging.Formatter):
    """For machines: one object a line."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_extra_fields(record),
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        import json

        return redactor.redact(json.dumps(told, ensure_ascii=False, default=str))


def _extra_fields(record: logging.LogRecord) -> dict[str, Any]:
    """What is known of the place, then what the caller added."""
    given: Mapping[str, Any] = vars(record)
    placed = {name: given[name] for name in _OURS if given.get(name) not in (None, "")}
    more = {name: value for name, value in given.items() if name not in _STANDARD and name not in _OURS}
    return placed | more


FORMS: Final[Mapping[str, type[logging.Formatter]]] = {"text": TextLines, "json": JsonLines}


class Logging:
    """Logs as configured; as a context it is undone at the end."""

    def __init__(self, handler: logging.Handler, level: str) -> None:
        self._root = logging.getLogger()
        self._before = list(self._root.handlers), self._root.level
        self._root.setLevel(level)
        self._root.handlers[:] = [*(old for old in self._root.handlers if not _is_ours(old)), handler]

    def __enter__(self) -> Logging:
        return self

    def __exit__(self, *_exc: object) -> None:
        handlers, level = self._before
        self._root.handlers[:] = handlers
        self._root.setLevel(level)


def configure_logging(form: str = "text", level: str = "INFO", stream: TextIO | None = None) -> Logging:
    """Everything that this process logs goes to `stream` (stderr), one line each. Raises ValueError."""
    if form not in FORMS:
        raise ValueError(f"a form of logs is one of {', '.join(FORMS)}, not {form!r}")
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

_armed: dict[str, Callable[[], None]] = {}


def crashpoint(name: str) -> None:
    """Marks a place where dying must do no harm."""
    if _armed:
        hit = _armed.get(name)
        if hit is not None:
            hit()


def arm(name: str, hit: Callable[[], None] | None = None, *, nth: int = 1) -> None:
    """From now on the nth time that `name` is reached calls `hit` (default: the process dies)."""
    if name not in CRASH_POINTS:
        raise ValueError(f"{name!r} is not a crash point; they are: {', '.join(CRASH_POINTS)}")
    action = hit or _die
    left = nth

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            action()

    arm_each(name, count)


def arm_each(name: str, hit: Callable[[], None]) -> None:
    """From now on `hit` is called each time that `name` is reached."""
    _armed[name] = hit


def disarm(name: str | None = None) -> None:
    """Without a name: all of them."""
    if name is None:
        _armed.clear()
    else:
        _armed.pop(name, None)


def _die() -> None:
    os._exit(137)


def _arm_from_environment() -> None:
    wanted = os.environ.get("HOLDFAST_CRASH")
    if wanted:
        name, _, nth = wanted.partition(":")
        arm(name, nth=int(nth or 1))


_arm_from_environment()
