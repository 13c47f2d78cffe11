"""The page while events come: how soon one is seen, frames in a storm, and memory after those of an hour."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from statistics import median
from time import monotonic
from typing import Any

from playwright.sync_api import Page

from bench.lines import Line
from bench.measure import aimed
from bench.web_page import SCROLL, compared, heap, known, p95
from bench.web_server import AppServer

FRAMES = 120
HOUR_EVENTS = 36_000
"""Of a run: ten a second."""
HOUR_CHANGES = 3_600
"""Of holds: one a second."""
QUARTERS = 4
# When a picture shows an element with this text.
_SEE = """([selector, text]) => {
  window.seenAt = null;
  const look = () => {
    if (![...document.querySelectorAll(selector)].some((each) => each.textContent.includes(text))) return;
    watch.disconnect();
    requestAnimationFrame(() => { window.seenAt = Date.now(); });
  };
  const watch = new MutationObserver(look);
  watch.observe(document.body, { childList: true, subtree: true, characterData: true });
  look();
}"""


def live_lines(page: Page, server: AppServer, rounds: int) -> list[Line]:
    """From the moment that the server has for it to the picture that shows it."""
    kinds = {
        "a new hold": _new_hold,
        "an ended run in the list": _in_list,
        "an ended run on its page": _on_page,
    }
    found = {name: [each for _ in range(rounds) for each in act(page, server)] for name, act in kinds.items()}
    note = ", ".join(f"{name} {median(each):.0f}" for name, each in found.items())
    slow = p95([delay for each in found.values() for delay in each])
    return [aimed("U", "a live event is on the page", slow, "ms", "U-live", note=note)]


def _new_hold(page: Page, server: AppServer) -> list[float]:
    page.goto(f"{server.address}/inbox/mine")
    _live(page)
    delays: list[float] = []
    for number in range(1, 5):
        page.evaluate(_SEE, [".fresh", f"{number} new"])
        run = _asking(server)
        (hold,) = server.api("GET", f"/v1/holds?run={run}")["items"]
        delays.append(known(page, "window.seenAt") - _ms(hold["created_at"]))
        page.wait_for_timeout(1_000)
    return delays


def _in_list(page: Page, server: AppServer) -> list[float]:
    page.goto(f"{server.address}/runs")
    return [
        _ended(page, server, run, f"tr:has(a[href*='{run}'])") for run in (_asking(server), _asking(server))
    ]


def _on_page(page: Page, server: AppServer) -> list[float]:
    run = _asking(server)
    page.goto(f"{server.address}/runs/{run}")
    return [_ended(page, server, run, ".run-head")]


def _ended(page: Page, server: AppServer, run: str, selector: str) -> float:
    _live(page)
    page.wait_for_selector(selector)
    page.wait_for_timeout(1_500)  # nothing of the events before is still on its way
    page.evaluate(_SEE, [selector, "Completed"])
    (hold,) = server.api("GET", f"/v1/holds?run={run}")["items"]
    server.api("POST", f"/v1/holds/{hold['id']}/resolve", {"decision": "refund"})
    seen = known(page, "window.seenAt")
    return seen - _ms(server.api("GET", f"/v1/runs/{run}")["ended_at"])


def _asking(server: AppServer) -> str:
    given = {"flow": "ask", "input": {"number": 1}, "wait": 20}
    return str(server.api("POST", "/v1/runs", given)["id"])


def _live(page: Page) -> None:
    page.wait_for_selector(".live.live-live")
    page.wait_for_timeout(1_500)


def _ms(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp() * 1000


def of_storm(page: Page, server: AppServer, seconds: int) -> list[Line]:
    """The page of a run whose events come as fast as the server can write them, at most 1,000 a second."""
    run = _storm(server)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.goto(f"{server.address}/runs/{run}?tab=events")
    page.wait_for_timeout(3_000)
    sent.clear()
    first, before = heap(page), _events(server, run)
    began = monotonic()
    busy: list[float] = []
    while monotonic() - began < seconds:
        busy += page.evaluate(SCROLL, [".none", 60, 0])
    took = monotonic() - began
    rate = (_events(server, run) - before) / took
    later = heap(page)
    server.api("POST", f"/v1/runs/{run}/cancel", {})
    page.goto(f"{server.address}/runs")
    page.wait_for_timeout(2_000)
    idle = page.evaluate(SCROLL, [".none", FRAMES, 0])
    return [
        aimed("U", "events a second", rate, "/s", note=f"{len(sent) / took:.1f} requests a second"),
        compared("frames in a storm of events by a quiet page", p95(busy), p95(idle), "U-storm"),
        aimed("U", f"heap after {seconds} s of it by that after 3 s", later / first, "x", "U-heap"),
    ]


def _storm(server: AppServer) -> str:
    given = {"flow": "storm", "input": {"n": 0, "limit": 100_000}}
    return str(server.api("POST", "/v1/runs", given)["id"])


def _events(server: AppServer, run: str) -> int:
    return int(server.api("GET", f"/v1/runs/{run}")["event_seq"])


def of_hour(page: Page, server: AppServer, share: float) -> list[Line]:
    """As many events as in an hour of a busy server, as fast as they come."""
    return [
        _hour_line(
            "the page of a run", f"{share * HOUR_EVENTS:,.0f} events", _hour_of_run(page, server, share)
        ),
        _hour_line("the inbox", f"{share * HOUR_CHANGES:,.0f} changes", _hour_of_inbox(page, server, share)),
    ]


def _hour_line(name: str, events: str, found: list[float]) -> Line:
    note = f"{events}; MB: {', '.join(f'{each / 1e6:.1f}' for each in found)}"
    return aimed(
        "U", f"heap of {name} after an hour by a quarter", found[-1] / found[0], "x", "U-hour", note=note
    )


def _quarters(page: Page, goes_to: Callable[[float], Any]) -> list[float]:
    """The heap after each quarter."""
    found: list[float] = []
    for quarter in range(1, QUARTERS + 1):
        goes_to(quarter / QUARTERS)
        page.wait_for_timeout(3_000)
        found.append(heap(page))
    return found


def _hour_of_run(page: Page, server: AppServer, share: float) -> list[float]:
    run = _storm(server)
    page.goto(f"{server.address}/runs/{run}?tab=events")
    events = share * HOUR_EVENTS

    def until(part: float) -> None:
        deadline = monotonic() + 300
        while _events(server, run) < events * part:
            if monotonic() > deadline:
                raise TimeoutError("the events of an hour did not come")
            page.wait_for_timeout(250)

    found = _quarters(page, until)
    server.api("POST", f"/v1/runs/{run}/cancel", {})
    return found


def _hour_of_inbox(page: Page, server: AppServer, share: float) -> list[float]:
    holds = [server.api("GET", f"/v1/holds?run={_asking(server)}")["items"][0]["id"] for _ in range(20)]
    page.goto(f"{server.address}/inbox/mine")
    _live(page)
    done = 0

    def until(part: float) -> None:
        nonlocal done
        while done < share * HOUR_CHANGES * part:
            act = "release" if done // len(holds) % 2 else "claim"
            server.api("POST", f"/v1/holds/{holds[done % len(holds)]}/{act}", {})
            done += 1

    return _quarters(page, until)
