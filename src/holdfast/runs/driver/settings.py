"""Settings for runs in one process: leases, waits in memory, grace periods, sweeps."""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from holdfast.errors import SettingsError
from holdfast.types.retention import Retention

_OFF: Final = 1_000_000
ALLOW_CODE: Final = "setting:allow-code"
"""What a run needs of a worker if it has commands and was submitted to a server."""
LOG_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": _OFF,
}


class RunSettings(msgspec.Struct, kw_only=True):
    """Settings for runs in one process; times in seconds."""

    lease_ttl: float = 30.0
    """how long a process that does not heartbeat keeps its runs"""
    lease_margin: float = 2.0
    """no effect begins with less of the lease left than this"""
    hot_timer: float = 30.0
    """a run that waits for a time stays in memory this long before it parks"""
    hot_hold: float = 0.0
    """the same for a run that waits for a person"""
    grace: float = 10.0
    """how long handlers may take to finish when a worker stops, or a run is cancelled"""
    poll: float = 1.0
    """how often a worker looks for work that it was not notified of"""
    patience: float = 4.0
    """how long writing a checkpoint is retried before its run stops with the error"""
    hold_sweep: float = 300.0
    """how often a worker sweeps all holds; what becomes due is noticed with each poll"""
    retention: Retention | None = None
    """replaces what the flows declare"""
    retention_every: float = 3600.0
    """how often a worker applies retention"""
    feed_kept: float = 7 * 86_400.0
    """how long the feed over all runs keeps its rows; a reader that was away for longer gets an error"""
    allow_code: bool = False
    """whether commands of pipelines that were submitted to a server may run in this process"""
    stored_log_level: str = "info"
    """the lowest level of `ctx.log` whose lines are stored: `debug`, `info`, `warning`, `error`; or `off`"""
    state_blobs: bool = True
    """whether the state of a run that asks a person is also an object in S3, if blobs are there"""
    plain_directories: bool = False
    """whether run directories of pipelines are written although the store is encrypted"""
    reencrypt: bool = False
    """whether a worker also re-encrypts everything with the current keys, each time it applies retention"""


def log_threshold(level: str) -> int:
    """The number of a level as `logging` has it. Raises SettingsError."""
    found = LOG_LEVELS.get(level.lower())
    if found is None:
        raise SettingsError(
            f"the lowest level of log that is stored is {level!r}.", hint=f"Give {', '.join(LOG_LEVELS)}."
        )
    return found
