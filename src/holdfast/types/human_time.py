"""Durations and times as text for people."""

from __future__ import annotations

from holdfast.types.clock import to_datetime

_LARGE = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def human_duration(micros: int) -> str:
    """Two units at most: `0.02 ms`, `13.8 ms`, `3.2 s`, `4 min 5 s`, `2 d 3 h`."""
    if micros < 1_000_000:
        return _millis(max(micros, 0) / 1_000)
    seconds = micros / 1_000_000
    if seconds < 60:
        return f"{seconds:.3g} s" if seconds < 59.95 else "1 min"
    whole = round(seconds)
    for i, (size, unit) in enumerate(_LARGE):
        if whole >= size:
            rest = whole % size // _LARGE[i + 1][0]
            return f"{whole // size} {unit}" + (f" {rest} {_LARGE[i + 1][1]}" if rest else "")
    return f"{whole} s"


def _millis(value: float) -> str:
    if value >= 999.5:
        return "1 s"
    return f"{value:.3g} ms" if value >= 1 else f"{value:.2f}".rstrip("0").rstrip(".") + " ms"


def clock_time(micros: int | None) -> str:
    return "" if micros is None else f"{to_datetime(micros).astimezone():%Y-%m-%d %H:%M:%S}"


def ago(micros: int, now: int) -> str:
    return (
        f"{human_duration(max(now - micros, 0) // 1_000_000 * 1_000_000)} ago"
        if now - micros >= 1_000_000
        else "now"
    )
