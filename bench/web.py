"""Row U: the web app in headless Chromium, with a server on SQLite: sizes, first paint, scrolling, clicks and
keys, events.

Speeds are ratios of two measurements of one run, to the plain page, to a short list, to a quiet page; except
those that people wait for, which have a limit in milliseconds.
"""

from __future__ import annotations

import json
import shutil
from statistics import median
from typing import Any

import msgspec
from playwright.sync_api import Page, sync_playwright

from bench.lines import Line
from bench.measure import Plan, aimed, folder
from bench.web_events import live_lines, of_hour, of_storm
from bench.web_interactions import interaction_lines
from bench.web_page import PAN, SCROLL, VIEW, compared, known, p95, page_work
from bench.web_server import AppServer, add_holds, app_server
from bench.web_sizes import size_lines

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
FRAMES = 120
PATIENCE = 120_000
"""Milliseconds: the server may still be reading the steps that were opened before."""
# An address, what is moved there, the script that moves it, and pixels a frame.
Movement = tuple[str, str, str, int]

# When the first row of the inbox is there.
_WATCH = """
const looking = new MutationObserver(() => {
  if (!document.querySelector(".rows [data-row]")) return;
  window.readableAt ??= performance.now();
});
looking.observe(document, { childList: true, subtree: true });
"""


class Moved(msgspec.Struct, frozen=True):
    """`frame`: the 95th percentile. `work`: what the page's thread computed for a frame. Both in ms."""

    frame: float
    work: float


def row_u(plan: Plan) -> list[Line]:
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        return [aimed("U", "no Chromium is installed", None, "")]
    many, steps, seconds = (5_000, 1_000, 5) if plan.quick else (100_000, 10_000, 30)
    with folder() as place, app_server(place) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--enable-precise-memory-info"]
        )
        context = browser.new_context(viewport=VIEW)
        context.add_init_script(_WATCH)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(server.sign_in)
        server.api("POST", "/v1/runs", {"flow": "ask", "input": {"number": 0}, "wait": 20})
        rounds = 2 if plan.quick else 5
        lines = [*size_lines(), *live_lines(page, server, rounds)]
        lines += of_hour(page, server, share=0.1 if plan.quick else 1.0)
        add_holds(place, 100)
        inbox: Movement = (f"{server.address}/inbox/mine", ".rows", SCROLL, 60)
        few = [moved(page, *inbox) for _ in range(rounds)]
        add_holds(place, many - 100, beyond=100)
        lines += paints(page, server, rounds)
        lots = [moved(page, *inbox) for _ in range(rounds)]
        name = f"scrolling {many:,} holds by 100"
        lines += movement_lines(name, (middle(lots), middle(few)), "U-holds")
        lines += of_runs(page, server, steps, rounds)
        lines += of_storm(page, server, seconds)
        browser.close()
    return lines


def paints(page: Page, server: AppServer, rounds: int) -> list[Line]:
    hold = server.api("GET", "/v1/holds?limit=1")["items"][0]["id"]
    plain: list[float] = []
    app: list[float] = []
    readable: list[float] = []
    for _ in range(rounds):
        plain.append(_paint(page, f"{server.address}/plain/holds/{hold}"))
        app.append(_paint(page, f"{server.address}/inbox/mine"))
        readable.append(known(page, "window.readableAt"))
    floor = median(plain)
    return [
        aimed("U", "first paint of the plain page", floor, "ms"),
        aimed("U", "first paint of the inbox by it", median(app) / floor, "x", "U-paint"),
        aimed("U", "first holds readable by it", median(readable) / floor, "x", "U-readable"),
    ]


def _paint(page: Page, address: str) -> float:
    page.goto(address)
    return known(page, "performance.getEntriesByName('first-paint')[0]?.startTime")


def moved(page: Page, address: str, selector: str, script: str, by: int) -> Moved:
    """The frames of a page while it is scrolled or panned."""
    page.goto(address)
    page.wait_for_selector(selector)
    page.wait_for_timeout(1500)
    page.evaluate(script, [selector, FRAMES // 4, by])  # what is computed once
    with page_work(page) as work:
        frames = page.evaluate(script, [selector, FRAMES, by])
    return Moved(p95(frames), work[0] * 1000 / FRAMES)


def alternating(page: Page, rounds: int, large: Movement, small: Movement) -> tuple[Moved, Moved]:
    """Both in turn: what else the machine does is the same for both. The medians."""
    found: tuple[list[Moved], list[Moved]] = ([], [])
    for _ in range(rounds):
        for kept, each in zip(found, (large, small), strict=True):
            kept.append(moved(page, *each))
    return middle(found[0]), middle(found[1])


def middle(found: list[Moved]) -> Moved:
    return Moved(median(each.frame for each in found), median(each.work for each in found))


def movement_lines(name: str, found: tuple[Moved, Moved], target: str) -> list[Line]:
    large, small = found
    return [
        compared(f"frames while {name}", large.frame, small.frame, target),
        aimed(
            "U", f"work for a frame while {name}", large.work / small.work, "x", target,
            note=f"{large.work:.1f} by {small.work:.1f} ms",
        ),
    ]  # fmt: skip


def of_runs(page: Page, server: AppServer, steps: int, rounds: int) -> list[Line]:
    runs = {
        name: server.ended(flow, given)
        for name, flow, given in (
            ("100 steps", "turns", {"n": 0, "limit": 100}), ("steps", "turns", {"n": 0, "limit": steps}),
            ("50 nodes", "small", {}), ("nodes", "large", {}),
        )
    }  # fmt: skip
    addresses = {
        name: f"{server.address}/runs/{run}?tab={'graph' if 'nodes' in name else 'timeline'}"
        for name, run in runs.items()
    }
    lines, picture = ".timeline-rows", ".graph-view"
    long = {
        name: longest_task(page, addresses[name], seen)
        for name, seen in (("steps", lines), ("nodes", picture))
    }
    rows: Any = [(addresses[name], lines, SCROLL, 25) for name in ("steps", "100 steps")]
    nodes: Any = [(addresses[name], picture, PAN, 12) for name in ("nodes", "50 nodes")]
    return [
        *movement_lines(f"scrolling {steps:,} steps by 100", alternating(page, rounds, *rows), "U-steps"),
        *movement_lines("panning 1,000 nodes by 50", alternating(page, rounds, *nodes), "U-nodes"),
        *interaction_lines(page, addresses["steps"], addresses["nodes"], steps),
        aimed("U", f"longest task of a run of {steps:,} steps", long["steps"], "ms", "U-steps-task"),
        aimed("U", "longest task of a graph of 1,000 nodes", long["nodes"], "ms", "U-nodes-task"),
    ]


def longest_task(page: Page, address: str, selector: str) -> float:
    """Of a page that is read for the second time, in milliseconds of its thread; the median of three. Those
    that other programs held up are as long as what they computed."""
    browser = page.context.browser
    assert browser is not None
    found: list[float] = []
    for _ in range(4):
        browser.start_tracing(page=page, categories=["toplevel", "disabled-by-default-devtools.timeline"])
        page.goto(address)
        page.wait_for_selector(selector)
        page.wait_for_timeout(1_500)
        found.append(_longest(json.loads(browser.stop_tracing())["traceEvents"]))
    return median(found[1:])


def _longest(events: list[dict[str, Any]]) -> float:
    mains = {
        (each["pid"], each["tid"])
        for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
    tasks = [each for each in events if each["name"] == "RunTask" and (each["pid"], each["tid"]) in mains]
    return max((each.get("tdur", each.get("dur", 0)) / 1000 for each in tasks), default=0.0)
