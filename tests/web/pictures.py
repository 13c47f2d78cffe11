"""The pictures of the web app and of the plain pages in the documentation, taken from the demo's own server.

python -m tests.web.pictures docs/assets
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from holdfast.demo import server as demo_server
from holdfast.demo.printout import Printout
from tests.services.browser import program

FLOW = Path(demo_server.__file__).with_name("flow.py")
MOST = 150_000
PATIENCE = 60_000


def main(folder: Path) -> int:
    expect.set_options(timeout=PATIENCE)
    with tempfile.TemporaryDirectory(prefix="holdfast-pictures-") as place:
        env = os.environ | {
            "HOLDFAST_DEMO": place, "HOLDFAST_STORE": f"sqlite:{place}/demo.db", "HOLDFAST_LEASE": "2s"
        }  # fmt: skip
        killed = demo_server.kill_worker(Printout(), env, Path(place))
        server = demo_server.DemoServer([str(FLOW), str(demo_server.EXAMPLE_FLOWS)], env, Path(place))
        try:
            assert server.ready(), server.why_not()
            given = {"order": "A18", "customer": "c-7", "amount": 50}
            server.api("POST", "/v1/runs", {"flow": "refund", "input": given})
            demo_server.started_runs(server, killed)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
                take(browser, server, folder)
                browser.close()
        finally:
            server.stop()
    for picture in sorted([*folder.glob("page-*.png"), *folder.glob("app-*.png")]):
        print(picture, picture.stat().st_size)
        assert picture.stat().st_size < MOST
    return 0


def take(browser: Browser, server: demo_server.DemoServer, folder: Path) -> None:
    address = server.startup["address"]
    runs = {run["flow"]: run["id"] for run in server.api("GET", "/v1/runs")["items"]}
    holds = {hold["flow"]: hold["id"] for hold in server.api("GET", "/v1/holds?view=all")["items"]}
    first = browser.new_page()
    first.goto(server.startup["sign_in"])
    kept = first.context.cookies()

    def opened(path: str, *, width: int = 1200, height: int = 760, scheme: Any = "light") -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.add_cookies(kept)  # pyright: ignore[reportArgumentType]
        page = context.new_page()
        page.goto(address + path)
        return page

    page = opened(f"/inbox/mine/{holds['support']}")
    expect(page.locator("h2.hold-title")).to_be_visible()
    shoot(page, folder / "app-inbox.png")
    page = opened(f"/runs/{runs['mirror']}?tab=timeline", scheme="dark")
    expect(page.get_by_text("copy_files").first).to_be_visible()
    shoot(page, folder / "app-run.png")
    page = opened("/runs")
    expect(page.get_by_role("row", name="reindex").or_(page.get_by_text("reindex")).first).to_be_visible()
    shoot(page, folder / "app-runs.png")
    page = opened("/operations/metrics")
    expect(page.locator("canvas").first).to_be_visible()
    shoot(page, folder / "app-operations.png")
    shoot(opened("/plain/", width=1000, height=700), folder / "page-home.png")
    shoot(opened(f"/plain/holds/{holds['invoice']}", width=390, height=844), folder / "page-hold.png")
    shoot(
        opened(f"/plain/runs/{runs['mirror']}", width=1000, height=900, scheme="dark"),
        folder / "page-run.png",
    )


def shoot(page: Page, file: Path) -> None:
    page.wait_for_timeout(1_500)
    page.screenshot(path=file)
    page.context.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
