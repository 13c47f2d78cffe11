"""How long a person waits for the next picture after a click or a key, in a large run and a large graph."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from playwright.sync_api import Page

from bench.lines import Line
from bench.measure import aimed
from bench.web_page import p95, page_work

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


class Waits(msgspec.Struct, frozen=True):
    """Milliseconds of each: until the next picture, and what the page's thread computed for it and for what
    it led to."""

    pictures: list[float]
    work: list[float]


def interaction_lines(page: Page, run: str, graph: str, steps: int) -> list[Line]:
    in_run = _waits(page, run, ".timeline-rows", _in_run)
    in_graph = _waits(page, graph, ".graph-view", _in_graph)
    return [
        *_lines(f"a click or key in a run of {steps:,} steps", in_run, "U-steps-click"),
        *_lines("a click or key in a graph of 1,000 nodes", in_graph, "U-nodes-click"),
    ]


def _lines(name: str, waits: Waits, target: str) -> list[Line]:
    kinds = {name: waits.pictures, f"work for {name}": waits.work}
    return [
        aimed("U", name, p95(each), "ms", target, note=f"{len(each)} of them, the longest {max(each):.0f}")
        for name, each in kinds.items()
    ]


def _waits(page: Page, address: str, selector: str, acts: Callable[[], list[Interaction]]) -> Waits:
    page.goto(address)
    page.wait_for_selector(selector)
    page.wait_for_timeout(1_500)
    for each in acts():  # what is read and compiled once
        each(page)
        page.wait_for_timeout(REST)
    page.evaluate(_WATCH)
    computed: list[float] = []
    for each in acts():
        with page_work(page) as work:
            each(page)
            page.wait_for_timeout(REST)
        computed.append(work[0] * 1000)
    found: list[float] = page.evaluate("[...window.waits.values()]")
    return Waits(found + [float(SHORTEST)] * (len(computed) - len(found)), computed)


def _key(key: str) -> Interaction:
    return lambda page: page.keyboard.press(key)


def _click(selector: str, place: int = 0) -> Interaction:
    return lambda page: page.locator(selector).nth(place).click()


def _click_at(selector: str, across: float, down: float) -> Interaction:
    """At these shares of its width and height, as it is then."""

    def act(page: Page) -> None:
        box = page.locator(selector).bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] * across, box["y"] + box["height"] * down)

    return act


def _in_run() -> list[Interaction]:
    """Steps that are opened, records before, a place of the slider, the other parts of the page and back."""
    return [
        *(_click(".timeline .lane-name a", place) for place in (0, 2, 4, 6, 8)),
        *(_key("[") for _ in range(8)),
        *(_click_at("#record", share, 0.5) for share in (0.5, 0.1, 0.9)),
        *(_click(f".tabs a[href*='tab={name}']") for name in ("state", "events", "timeline")),
        *(_key("]") for _ in range(4)),
        _key("l"),
    ]


def _in_graph() -> list[Interaction]:
    """Nodes under the pointer, moves and zoom by keys and buttons, records before."""
    return [
        *(_click_at(".graph-view", x, y) for x, y in ((0.3, 0.3), (0.5, 0.5), (0.7, 0.6), (0.4, 0.8))),
        *(_click(".graph-tools button", place) for place in (1, 1, 0, 0, 2)),
        _click_at(".graph-view", 0.02, 0.02),
        *(_key(key) for key in ("ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown")),
        *(_key("[") for _ in range(6)),
        _key("l"),
    ]
