"""A page that one test after the other uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Error, Page

# What cannot be taken back: whoever asked for it has the page to the end, and nobody after.
LASTING = {
    "page": (
        "add_init_script", "add_locator_handler", "close", "expose_binding", "expose_function", "on", "once",
    ),
    "context": (
        "add_init_script", "close", "expose_binding", "expose_function", "grant_permissions",
        "new_cdp_session", "new_page", "on", "once", "route", "route_web_socket", "set_extra_http_headers",
        "set_geolocation", "set_offline",
    ),
    "clock": (
        "fast_forward", "install", "pause_at", "resume", "run_for", "set_fixed_time", "set_system_time",
    ),
}  # fmt: skip
QUIET = "/healthz"
FORGET = """async () => {
  localStorage.clear();
  sessionStorage.clear();
  for (const each of await indexedDB.databases()) indexedDB.deleteDatabase(each.name);
}"""


class KeptPage:
    """The page of a test that the next one uses too: a page of its own takes twice as long to show the app,
    because nothing of it is compiled yet. The next test finds no cookie, nothing stored and no route."""

    def __init__(self, address: str) -> None:
        self._quiet = address + QUIET
        self._page: Page | None = None
        self._lent: Page | None = None
        self._is_changed = False

    def lend(self) -> Page | None:
        """None: there is none, or this test has it already."""
        self._lent, self._page = self._page, None
        return self._lent

    def keep(self, page: Page) -> None:
        """A new page, which is lent to the test that made it."""
        self._lent = page
        for name, owner in (("page", page), ("context", page.context), ("clock", page.clock)):
            for each in LASTING[name]:
                setattr(owner, each, self._noting(getattr(owner, each)))

    def _noting(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **kwargs: Any) -> Any:
            self._is_changed = True
            return act(*args, **kwargs)

        return noted

    def give_back(self) -> None:
        """When a test has ended."""
        page, self._lent = self._lent, None
        if page is None:
            return
        try:
            if not self._is_changed and len(page.context.pages) == 1:
                page.unroute_all(behavior="ignoreErrors")
                page.goto(self._quiet)
                page.evaluate(FORGET)
                page.context.clear_cookies()
                self._page = page
        except Error:
            pass  # its server is gone
        if self._page is None:
            page.context.close()
        self._is_changed = False

    def close(self) -> None:
        if self._page is not None:
            self._page.context.close()
