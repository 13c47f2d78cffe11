"""How long the history of ended runs is kept."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from holdfast.errors import SettingsError
from holdfast.types.duration import DurationError, parse_duration

DAY = 86_400.0
KEEP = 10
# Seconds. A blob is put before the record that names it, so a young one may still be needed (D-37).
BLOB_GRACE = DAY


class Retention(msgspec.Struct, frozen=True):
    """What is kept of a flow's ended runs: the last `keep` checkpoints of each (None: all). A run that ended
    longer ago than `days` or `older` is deleted (None: never). Live runs are not touched.

        Flow("refund", retention=Retention(keep=10, days=30))
        Flow("refund", retention=Retention(keep=None, older="12h"))
    """

    keep: int | None = KEEP
    days: float | None = None
    older: str | timedelta | None = None

    def __post_init__(self) -> None:
        if self.keep is not None and (type(self.keep) is not int or self.keep < 1):
            raise SettingsError(
                f"retention keep={self.keep!r} is not a number of checkpoints.",
                hint="Give 1 or more, or None.",
            )
        if self.days is not None and self.older is not None:
            raise SettingsError("retention has both days= and older=.", hint="Give one of them.")
        if self.seconds is not None and self.seconds < 0:
            raise SettingsError("retention cannot be negative.", hint="Give days=30, for example.")

    @property
    def seconds(self) -> float | None:
        """The age, counted from a run's end, at which it is deleted."""
        if self.days is not None:
            return self.days * DAY
        if self.older is None:
            return None
        if isinstance(self.older, timedelta):
            return self.older.total_seconds()
        try:
            return parse_duration(self.older).total_seconds()
        except DurationError as error:
            raise SettingsError(f"retention older={self.older!r}: {error}.") from error


DEFAULT_RETENTION = Retention()


def parse_retention(text: str) -> Retention:
    """`keep=20,older=30d`, either alone, or `all`. Raises SettingsError."""
    if text.strip() == "all":
        return Retention(keep=None)
    words = [part.partition("=") for part in text.replace(" ", "").split(",")]
    parts = {name: value for name, _, value in words}
    if not parts or parts.keys() - {"keep", "older"} or not parts.get("keep", "1").isdecimal():
        raise SettingsError(f"retention {text!r} cannot be parsed.", hint="Write keep=20,older=30d, or all.")
    keep = int(parts["keep"]) if "keep" in parts else None
    return Retention(keep=keep, older=parts.get("older"))
