"""How long a person waits for the next picture after a click or a key, in a large run and a large graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

from bench.lines import Line
from bench.measure import aimed
from bench.web_page import p95

SHORTEST = 16
"""Milliseconds: the browser does not report what is shorter."""
REST = 300
"""Milliseconds between two of them, so that what the one reads is not counted for the next."""
# By its own clock, from the input to the picture that shows its effect.
_WATCH = """() => {
  window.waits = new Map();
  new PerformanceObserver((list) => {
    for (const { interactionId: id, duration } of list.getEntries()) {
      if (id) window.waits.set(id, Math.max(duration, window.waits.get(id) ?? 0));
    }
  }).observe({ type: "event", durationThreshold: 16 });
}"""
Interaction = Callable[[Page], None]


def interaction_lines(page: Page, run: str, graph: str, steps: int) -> list[Line]:
    in_run = _waits(page, run, ".timeline-rows", _in_run)
    in_graph = _waits(page, graph, ".graph-view", _in_graph)
    return [
        _line(f"a click or key in a run of {steps:,} steps", in_run, "U-steps-click"),
        _line("a click or key in a graph of 1,000 nodes", in_graph, "U-nodes-click"),
    ]


def _line(name: str, waits: list[float], target: str) -> Line:
    return aimed(
        "U", name, p95(waits), "ms", target, note=f"{len(waits)} of them, the longest {max(waits):.0f}"
    )


def _waits(page: Page, address: str, selector: str, act: Callable[[Page], list[Interaction]]) -> list[float]:
    page.goto(address)
    page.wait_for_selector(selector)
    page.wait_for_timeout(1_500)
    for each in act(page):  # what is read and compiled once
        each(page)
        page.wait_for_timeout(REST)
    page.evaluate(_WATCH)
    done = act(page)
    for each in done:
        each(page)
        page.wait_for_timeout(REST)
    found: list[float] = page.evaluate("[...window.waits.values()]")
    return found + [float(SHORTEST)] * (len(done) - len(found))


def _key(key: str) -> Interaction:
    return lambda page: page.keyboard.press(key)


def _click(selector: str, place: int = 0, **at: Any) -> Interaction:
    return lambda page: page.locator(selector).nth(place).click(**at)


def _in_run(page: Page) -> list[Interaction]:
    """Steps that are opened, records before, a place of the slider, the other parts of the page and back."""
    box = page.locator("#record").bounding_box()
    width = 0 if box is None else box["width"]
    tabs = [_click(f".tabs a[href*='tab={name}']") for name in ("state", "events", "timeline")]
    return [
        *(_click(".timeline .lane-name a", place) for place in (0, 2, 4, 6, 8)),
        *(_key("[") for _ in range(8)),
        *(_click("#record", position={"x": width * share, "y": 8}) for share in (0.5, 0.1, 0.9)),
        *tabs,
        *(_key("]") for _ in range(4)),
        _key("l"),
    ]


def _in_graph(page: Page) -> list[Interaction]:
    """Nodes under the pointer, moves and zoom by keys and buttons, records before."""
    box = page.locator(".graph-view").bounding_box()
    width, height = (0.0, 0.0) if box is None else (box["width"], box["height"])
    places = [{"x": width * x, "y": height * y} for x, y in ((0.3, 0.3), (0.5, 0.5), (0.7, 0.6), (0.4, 0.8))]
    return [
        *(_click(".graph-view", position=place) for place in places),
        *(_click(".graph-tools button", place) for place in (1, 1, 0, 0, 2)),
        lambda page: page.locator(".graph-view").focus(),
        *(_key(key) for key in ("ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown")),
        *(_key("[") for _ in range(6)),
        _key("l"),
    ]
