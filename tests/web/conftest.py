"""A server with the built app in a process of its own, and a browser. What the console or the network of any
page reports as an error fails the test; so does what the policy of a page has blocked, which browsers write
there.

The files are in two groups (`xdist_group`) of about the same length: two processes have them, and a machine
of two cores has no more than two browsers at work."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as Sent
from urllib.request import urlopen

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.deadlines import HANG
from tests.services import absent
from tests.services.browser import program
from tests.services.prefork import Child
from tests.web.approval_flows import SERVED
from tests.web.expectations import look_often
from tests.web.kept_page import KeptPage
from tools import web

FLOWS = Path(__file__).with_name("flows.py")
SCREENS = web.ROOT / "build" / "screens"
AXE = web.WEB / "node_modules" / "axe-core" / "axe.min.js"
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)
look_often()


@pytest.fixture(scope="session")
def built() -> Path:
    """The app of this checkout, built if it is missing or has changed."""
    (web.ROOT / "build").mkdir(exist_ok=True)
    with (web.ROOT / "build" / "web.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not web.is_current():
            try:
                web.build(quiet=True)
            except web.BuildError as error:
                absent("web", str(error))
    return web.UI


class WebServer:
    """`holdfast serve` with the flows of these tests."""

    def __init__(
        self,
        folder: Path,
        flows: Path = FLOWS,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        store: str = "",
    ) -> None:
        environment = {name: value for name, value in os.environ.items() if name != web.SKIP}
        environment |= {SERVED: "1", **(env or {})}
        self.store = store or f"sqlite:{folder / 'web.db'}"
        self.folder, self.flows, self.options, self.environment = folder, flows, options, environment
        self.address, self.token, self.sign_in = "", "", ""
        self.start()

    def start(self) -> None:
        """A process with the same store and, after the first start, the same address."""
        port = self.address.rpartition(":")[2] or 0
        words = ["serve", self.flows, "--port", port, "--json", "--store", self.store, *self.options]
        with (self.folder / "serve.log").open("w") as errors:
            self.child = Child("holdfast", words, cwd=Path.cwd(), env=self.environment, stderr=errors)
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        if not line:
            self.stop()
            raise AssertionError((self.folder / "serve.log").read_text())
        said = json.loads(line)
        self.address, self.token, self.sign_in = said["address"], said["token"], said["sign_in"]

    def start_again(self) -> None:
        """After its process has ended."""
        self.child.wait(HANG)
        if self.child.stdout is not None:
            self.child.stdout.close()
        self.start()

    def api(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Sent(self.address + path, data, headers, method=method), timeout=HANG) as answer:
                return json.load(answer)
        except HTTPError as refused:
            if refused.code != 428:
                raise
        headers["If-Match"] = "*"  # whatever is there
        with urlopen(Sent(self.address + path, data, headers, method=method), timeout=HANG) as answer:
            return json.load(answer)

    def claim(self, number: str, flow: str = "claims") -> dict[str, Any]:
        """A run that waits for its decision."""
        run = self.api("POST", "/v1/runs", {"flow": flow, "input": {"number": number}, "wait": 60})
        (hold,) = self.api("GET", f"/v1/holds?run={run['id']}")["items"]
        return hold

    def stop(self) -> None:
        self.child.terminate()
        self.child.wait(HANG)
        if self.child.stdout is not None:
            self.child.stdout.close()


@pytest.fixture(scope="module")
def server(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    found = WebServer(tmp_path_factory.mktemp("web"))
    yield found
    found.stop()


class Told:
    """What pages report as an error. `expected`: texts of errors that the test causes itself."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.expected: set[str] = set()

    def watch(self, context: BrowserContext) -> None:
        context.on("weberror", lambda found: self.add(f"error: {found.error}"))
        context.on("console", self._console)
        context.on("requestfailed", self._request)

    def add(self, text: str, where: object = "") -> None:
        if not any(each in text for each in self.expected):
            self.wrong.append(f"{text} {where}")

    def _console(self, said: ConsoleMessage) -> None:
        # A person who is not in the directory is a 404, which browsers report.
        if said.type == "error" and not said.location["url"].endswith("/directory/me"):
            self.add(said.text, said.location)

    def _request(self, sent: Request) -> None:
        # A page that is left drops what it has not read.
        if sent.failure and "ERR_ABORTED" not in sent.failure:
            self.add(f"Failed to load resource: {sent.failure}", sent.url)


TOLD = Told()


@pytest.fixture(autouse=True)
def told() -> Iterator[Told]:
    """Nothing was wrong on any page of the test."""
    TOLD.wrong, TOLD.expected = [], set()
    yield TOLD
    assert TOLD.wrong == []


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # The container of CI has no sandbox of its own; the pages are ours.
        found = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        plain = found.new_context

        def new_context(**options: Any) -> BrowserContext:
            # Without motion: what is measured is no moment of a transition.
            context = plain(**{"reduced_motion": "reduce", **options})
            TOLD.watch(context)
            return context

        found.new_context = new_context
        yield found
        found.close()


@pytest.fixture(scope="module")
def session(browser: Browser, server: WebServer) -> Any:
    """The cookies of a person who has signed in."""
    context = browser.new_context()
    context.request.get(server.sign_in)  # without a page, which would load the app
    kept = context.cookies()
    context.close()
    return kept


Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def kept(browser: Browser, server: WebServer) -> Iterator[KeptPage]:
    found = KeptPage(server.address)
    yield found
    found.close()


@pytest.fixture
def open_page(browser: Browser, server: WebServer, session: Any, kept: KeptPage) -> Iterator[Opener]:
    """Opens an address of the app as the person who has signed in."""
    contexts: list[BrowserContext] = []
    is_first = True

    def opened(
        path: str = "/", *, width: int = 1280, height: int = 800, scheme: Any = "light", expected: str = "\n"
    ) -> Page:
        """`expected`: a text of errors that the test causes itself."""
        nonlocal is_first
        TOLD.expected.add(expected)
        size: Any = {"width": width, "height": height}
        page = kept.lend() if is_first else None
        if page is None:
            page = browser.new_context(viewport=size, color_scheme=scheme).new_page()
            page.set_default_timeout(PATIENCE)
            if is_first:
                kept.keep(page)
            else:
                contexts.append(page.context)
        else:
            page.set_viewport_size(size)
            page.emulate_media(
                color_scheme=scheme, reduced_motion="reduce", forced_colors="null", media="null"
            )
        is_first = False
        page.context.add_cookies(session)
        page.goto(server.address + path)
        return page

    yield opened
    for context in contexts:
        context.close()
    kept.give_back()


ARRIVED = """() => {
  const shown = window.__TSR_ROUTER__?.state;
  if (shown?.status !== "idle" || shown.resolvedLocation === undefined) return false;
  const { pathname, searchParams } = new URL(shown.resolvedLocation.href, location.origin);
  return pathname === location.pathname
    && String(searchParams) === String(new URLSearchParams(location.search));
}"""


def show(page: Page, path: str) -> None:
    """Another screen of the app on this page, as a link inside of the app leads there: nothing is loaded and
    compiled again."""
    page.evaluate("path => history.pushState(null, '', path)", path)
    page.wait_for_function(ARRIVED)


def sign_in_as(page: Page, server: WebServer, name: str, **grant: list[str]) -> None:
    """Another person, with these roles or rights, in the same browser."""
    token = server.api("POST", "/v1/tokens", {"subject": f"user:{name}", **grant})["token"]
    page.goto("about:blank")  # what is open would be told that its session has ended
    page.context.clear_cookies()
    page.request.post(f"{server.address}/sign-in", form={"token": token})


def picture(page: Page, name: str) -> None:
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"{name}.png")


def violations(page: Page) -> list[str]:
    """What axe finds on the page as it is."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    # What a bar at the edge of the window covers in part is scrolled to.
    covered = "it is partially obscured"
    # Only what is wrong is brought over, and without the selectors of each element, a quarter of the work.
    asked = {"runOnly": LEVELS, "resultTypes": ["violations"], "selectors": False}
    found = page.evaluate("asked => axe.run(document, asked).then(({ violations }) => violations)", asked)
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
        for each in found
        for node in each["nodes"]
        if not (each["id"] == "target-size" and covered in node["failureSummary"])
    ]


WIDER = """() => {
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= room) return [];
  // From right to left it is the other side.
  const found = [...document.querySelectorAll("body *")].filter((each) => {
    const { left, right } = each.getBoundingClientRect();
    return getComputedStyle(each).position !== "absolute" && (right > room + 1 || left < -1);
  }).map((each) => each.tagName + "." + each.className);
  return found.length > 0 ? found.slice(0, 5) : ["the page"];
}"""


def too_wide(page: Page) -> list[str]:
    """Elements that make the page scroll sideways."""
    return page.evaluate(WIDER)


CLIPPED = """() => [...document.querySelectorAll("body *")].filter((each) => {
  const style = getComputedStyle(each);
  const hasText = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const cuts = ["hidden", "clip"].includes(style.overflowX) && style.textOverflow !== "ellipsis"
    && style.webkitLineClamp === "none";
  return hasText && cuts && !each.closest(".away, .brand, svg") && style.position !== "absolute"
    && (each.scrollWidth > each.clientWidth + 1);
}).map((each) => each.className + ": " + each.textContent.slice(0, 60)).slice(0, 5)"""


def clipped(page: Page) -> list[str]:
    """Texts of which a part cannot be seen."""
    return page.evaluate(CLIPPED)


def wrong_in(page: Page, name: str) -> list[str]:
    """Of the page as it is: a picture in light at its own width and one in dark at 320 px, and what is
    wrong in them for people with other eyes, other hands, or a phone."""
    size = page.viewport_size or {"width": 1280, "height": 800}
    picture(page, f"{name}-light")
    found = violations(page) + too_wide(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 320, "height": 640})
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    picture(page, f"{name}-dark-phone")
    found += violations(page) + too_wide(page)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(size)
    return [f"{name}: {each}" for each in found]


def inspect(page: Page, name: str) -> None:
    assert wrong_in(page, name) == []
