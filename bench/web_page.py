"""What is done with a page of the web app to measure it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from playwright.sync_api import CDPSession, Page, ViewportSize

from bench.lines import Line
from bench.measure import aimed

VIEW: ViewportSize = {"width": 1280, "height": 800}
# Scrolls from the top on, and back from either end: every frame moves, however short the list is.
SCROLL = """async ([selector, frames, by]) => {
  const isLonger = (each) => each.scrollHeight > each.clientHeight + 10;
  const scrolled = [...document.querySelectorAll(selector)].find(isLonger) ?? document.scrollingElement;
  const times = [];
  let before = await new Promise(requestAnimationFrame);
  for (let count = 0, to = by; count < frames; count += 1) {
    const was = scrolled.scrollTop;
    scrolled.scrollTop += to;
    if (scrolled.scrollTop === was) {
      to = -to;
      scrolled.scrollTop += to;
    }
    const now = await new Promise(requestAnimationFrame);
    times.push(now - before);
    before = now;
  }
  return times;
}"""
# Drags the picture of a graph to and fro.
PAN = """async ([selector, frames, by]) => {
  const moved = document.querySelector(selector);
  const { left, top, width, height } = moved.getBoundingClientRect();
  const told = (on, name, to) => on.dispatchEvent(new PointerEvent(name, {
    bubbles: true, button: 0, clientX: left + width / 2 - to, clientY: top + height / 2 - to }));
  told(moved, "pointerdown", 0);
  const times = [];
  let before = await new Promise(requestAnimationFrame);
  for (let count = 0; count < frames; count += 1) {
    const place = count % 40;
    told(window, "pointermove", by * (place < 20 ? place + 1 : 41 - place));
    const now = await new Promise(requestAnimationFrame);
    times.push(now - before);
    before = now;
  }
  told(window, "pointerup", 0);
  return times;
}"""


def known(page: Page, expression: str) -> float:
    """Asked again and again: the policy of the pages forbids Playwright's own way to wait."""
    deadline = monotonic() + 60
    while (found := page.evaluate(expression)) is None:
        if monotonic() > deadline:
            raise TimeoutError(expression)
        page.wait_for_timeout(20)
    return float(found)


@contextmanager
def page_work(page: Page) -> Iterator[list[float]]:
    """Seconds that the page's main thread computed: other programs of the machine do not change them much."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    found: list[float] = []
    began = _task_time(session)
    yield found
    found.append(_task_time(session) - began)
    session.detach()


def _task_time(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")


def heap(page: Page) -> float:
    """Bytes that are used after a collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    found = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return float(found)


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]


def compared(name: str, value: float, floor: float, target: str) -> Line:
    return aimed("U", name, value / floor, "x", target, note=f"{value:.0f} by {floor:.0f} ms")
