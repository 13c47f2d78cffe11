"""Where a browser goes after it has signed in: a path of ours, whatever the address said."""

from __future__ import annotations

from urllib.parse import urlsplit

_LONGEST = 2_000


def own_path(wanted: str | None) -> str:
    """`/` where it would lead away: to another host, by `//host` or `/\\host`, or through a control
    character, which browsers leave out."""
    if not wanted or len(wanted) > _LONGEST or not wanted.isprintable():
        return "/"
    if not wanted.startswith("/") or wanted.startswith("//") or "\\" in wanted:
        return "/"
    parts = urlsplit(wanted)
    return "/" if parts.scheme or parts.netloc else wanted
