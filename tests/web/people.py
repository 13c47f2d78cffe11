"""Several people at one server, each with a browser of their own."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.web.conftest import PATIENCE, WebServer, sign_in_as


def signed_in(browser: Browser, server: WebServer, name: str, role: str = "approver") -> BrowserContext:
    """The browser of a person who signed in with a token of their own."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    sign_in_as(page, server, name, roles=[role])
    page.close()
    return context


def open_hold(page: Page, server: WebServer, hold: dict[str, Any], view: str = "mine") -> None:
    page.goto(f"{server.address}/inbox/{view}/{hold['id']}")
    expect(page.locator(".hold-title")).to_be_visible()


def title(page: Page) -> None:
    """The keys work where nothing is typed."""
    page.locator(".hold-title").focus()
