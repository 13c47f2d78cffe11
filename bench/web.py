"""Row U: the web app in headless Chromium, with a server on SQLite: first paint, scrolling, storms of events.

Everything is a ratio of two measurements of one run: to the plain page, to a short list, to a quiet page.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import apsw
import msgspec
from playwright.sync_api import CDPSession, Page, ViewportSize, sync_playwright

from bench.lines import Line
from bench.measure import Plan, aimed, folder

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
VIEW: ViewportSize = {"width": 1280, "height": 800}
FRAMES = 120
# An address, what is moved there, the script that moves it, and pixels a frame.
Movement = tuple[str, str, str, int]

FLOWS = """
import asyncio
from time import monotonic
from itertools import pairwise
from holdfast import Flow

ask = Flow("ask", effect="pure")
ask.hold("decide", prompt="Refund {{input.number}}?", options=["refund", "reject"], assignee="user:local")

turns = Flow("turns", effect="pure", mode="barrier")

@turns.node
async def turn(s):
    return {"n": s["n"] + 1}

turns.loop(turn, turn, when="n < input.limit", max=20_000)

storm = Flow("storm", effect="pure", mode="barrier")
# Each has five events.
STEPS_A_SECOND = 200
began = []

@storm.node
async def gust(s):
    began or began.append(monotonic())
    ahead = s["n"] / STEPS_A_SECOND - (monotonic() - began[0])
    await asyncio.sleep(max(ahead, 0))
    return {"n": s["n"] + 1}

storm.loop(gust, gust, when="n < input.limit", max=100_000)

async def nothing():
    return {}

def wide(name, rows, columns):
    flow = Flow(name, effect="pure")
    first, last = flow.node(id="first")(nothing), flow.node(id="last")(nothing)
    for column in range(columns):
        found = [flow.node(id=f"n{column:02}-{row:02}")(nothing) for row in range(rows)]
        for before, after in pairwise([first, *found, last]):
            flow.edge(before, after)
    return flow

large = wide("large", 25, 40)
small = wide("small", 8, 6)
"""
# The hold that is there, many times.
_MORE_HOLDS = """
WITH RECURSIVE n (i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO holds (id, run_key, tenant, seq, node, scope, visit, ordinal, type, assignee, assignee_type,
                   assignee_value, priority, created_at, updated_at, request_hash, prompt, options, schema,
                   context, terms, tags)
SELECT printf('00000000-0000-4000-8000-%012d', i), run_key, tenant, seq, node, scope, visit, i, type,
       assignee, assignee_type, assignee_value, priority, created_at + i, updated_at, request_hash,
       'Refund claim ' || i || '?', options, schema, context, terms, tags
FROM n, (SELECT * FROM holds LIMIT 1)"""
# When the first row of the inbox is there.
_WATCH = """
const looking = new MutationObserver(() => {
  if (!document.querySelector(".rows [data-row]")) return;
  window.readableAt ??= performance.now();
});
looking.observe(document, { childList: true, subtree: true });
"""
# Scrolls from the top on, and back from either end: every frame moves, however short the list is.
_SCROLL = """async ([selector, frames, by]) => {
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
_PAN = """async ([selector, frames, by]) => {
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


class Moved(msgspec.Struct, frozen=True):
    """`frame`: the 95th percentile. `work`: what the page's thread computed for a frame. Both in ms."""

    frame: float
    work: float


class AppServer(msgspec.Struct):
    address: str
    token: str
    sign_in: str

    def api(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.address + path, data, headers, method=method)
        with build_opener(ProxyHandler({})).open(request, timeout=120) as answer:
            return json.load(answer)

    def ended(self, flow: str, given: dict[str, Any], *, seconds: float = 120) -> str:
        """A run, once it has ended."""
        run = str(self.api("POST", "/v1/runs", {"flow": flow, "input": given})["id"])
        deadline = monotonic() + seconds
        while self.api("GET", f"/v1/runs/{run}")["status"] not in ("completed", "failed"):
            if monotonic() > deadline:
                raise TimeoutError(f"the run of {flow} did not end")
            sleep(0.1)
        return run


@contextmanager
def app_server(place: Path) -> Iterator[AppServer]:
    (place / "flows.py").write_text(FLOWS)
    environment = {name: value for name, value in os.environ.items() if name != "HOLDFAST_SKIP_UI"}
    environment["HOLDFAST_STORE"] = f"sqlite:{place / 'web.db'}"
    flows = str(place / "flows.py")
    # The worker apart: steps do not take the time of requests.
    with _process(environment, "serve", flows, "--port", "0", "--json", "--no-worker") as server:
        assert server.stdout is not None
        told = json.loads(server.stdout.readline())
        with _process(environment, "worker", flows):
            yield AppServer(told["address"], told["token"], told["sign_in"])


@contextmanager
def _process(environment: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()


def add_holds(place: Path, count: int, *, beyond: int = 0) -> None:
    conn = apsw.Connection(str(place / "web.db"))
    conn.set_busy_timeout(30_000)
    conn.execute(_MORE_HOLDS, (beyond + 1, beyond + count))
    conn.close()


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
        page.goto(server.sign_in)
        server.api("POST", "/v1/runs", {"flow": "ask", "input": {"number": 0}, "wait": 20})
        rounds = 2 if plan.quick else 5
        add_holds(place, 100)
        inbox: Movement = (f"{server.address}/inbox/mine", ".rows", _SCROLL, 60)
        few = [moved(page, *inbox) for _ in range(rounds)]
        add_holds(place, many - 100, beyond=100)
        lines = paints(page, server, rounds)
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
        readable.append(_known(page, "window.readableAt"))
    floor = median(plain)
    return [
        aimed("U", "first paint of the plain page", floor, "ms"),
        aimed("U", "first paint of the inbox by it", median(app) / floor, "x", "U-paint"),
        aimed("U", "first holds readable by it", median(readable) / floor, "x", "U-readable"),
    ]


def _paint(page: Page, address: str) -> float:
    page.goto(address)
    return _known(page, "performance.getEntriesByName('first-paint')[0]?.startTime")


def _known(page: Page, expression: str) -> float:
    """Asked again and again: the policy of the pages forbids Playwright's own way to wait."""
    deadline = monotonic() + 60
    while (found := page.evaluate(expression)) is None:
        if monotonic() > deadline:
            raise TimeoutError(expression)
        page.wait_for_timeout(20)
    return float(found)


def moved(page: Page, address: str, selector: str, script: str, by: int) -> Moved:
    """The frames of a page while it is scrolled or panned."""
    page.goto(address)
    page.wait_for_selector(selector)
    page.wait_for_timeout(1500)
    page.evaluate(script, [selector, FRAMES // 4, by])  # what is computed once
    with _page_work(page) as work:
        frames = page.evaluate(script, [selector, FRAMES, by])
    return Moved(_p95(frames), work[0] * 1000 / FRAMES)


@contextmanager
def _page_work(page: Page) -> Iterator[list[float]]:
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


def _p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]


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
    rows: Any = [(addresses[name], lines, _SCROLL, 25) for name in ("steps", "100 steps")]
    nodes: Any = [(addresses[name], picture, _PAN, 12) for name in ("nodes", "50 nodes")]
    return [
        *movement_lines(f"scrolling {steps:,} steps by 100", alternating(page, rounds, *rows), "U-steps"),
        *movement_lines("panning 1,000 nodes by 50", alternating(page, rounds, *nodes), "U-nodes"),
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


def of_storm(page: Page, server: AppServer, seconds: int) -> list[Line]:
    """The page of a run whose events come as fast as the server can write them, at most 1,000 a second."""
    run = str(server.api("POST", "/v1/runs", {"flow": "storm", "input": {"n": 0, "limit": 100_000}})["id"])
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.goto(f"{server.address}/runs/{run}?tab=events")
    page.wait_for_timeout(3_000)
    sent.clear()
    heap, before = _heap(page), server.api("GET", f"/v1/runs/{run}")["event_seq"]
    began = monotonic()
    busy: list[float] = []
    while monotonic() - began < seconds:
        busy += page.evaluate(_SCROLL, [".none", 60, 0])
    took = monotonic() - began
    rate = (server.api("GET", f"/v1/runs/{run}")["event_seq"] - before) / took
    later = _heap(page)
    server.api("POST", f"/v1/runs/{run}/cancel", {})
    page.goto(f"{server.address}/runs")
    page.wait_for_timeout(2_000)
    idle = page.evaluate(_SCROLL, [".none", FRAMES, 0])
    return [
        aimed("U", "events a second", rate, "/s", note=f"{len(sent) / took:.1f} requests a second"),
        compared("frames in a storm of events by a quiet page", _p95(busy), _p95(idle), "U-storm"),
        aimed("U", f"heap after {seconds} s of it by that after 3 s", later / heap, "x", "U-heap"),
    ]


def _heap(page: Page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    found = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return float(found)


def compared(name: str, value: float, floor: float, target: str) -> Line:
    return aimed("U", name, value / floor, "x", target, note=f"{value:.0f} by {floor:.0f} ms")
