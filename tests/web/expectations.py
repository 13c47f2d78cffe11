"""`expect` that looks at the page often.

Playwright looks each 500 ms once an expectation has waited for a quarter of a second, and each 100 ms only
where its timeout is below 2.5 s. Most pages here change within a second, and there are thousands of
expectations: a long timeout is spent as several short ones."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from playwright._impl.assertions import LocatorAssertions, PageAssertions

SHORT: Final = 2_400
Ask = Callable[..., Awaitable[dict[str, Any]]]


def look_often() -> None:
    for kind in (LocatorAssertions, PageAssertions):
        kind._call_expect = _in_parts(kind._call_expect)


def _in_parts(ask: Ask) -> Ask:
    async def asked(self: Any, expression: str, options: dict[str, Any], title: str | None) -> dict[str, Any]:
        end = time.monotonic() + options["timeout"] / 1_000
        while True:
            left = (end - time.monotonic()) * 1_000
            found = await ask(self, expression, {**options, "timeout": max(1, min(left, SHORT))}, title)
            if found["matches"] != options["isNot"] or left <= SHORT:
                return found

    return asked
