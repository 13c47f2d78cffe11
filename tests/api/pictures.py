"""The pictures of the pages in the documentation, taken from the demo's own server by a real browser.

python -m tests.api.pictures docs/assets
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from holdfast.demo import server as demo_server
from tests.services.browser import Tab, browsing

FLOW = Path(demo_server.__file__).with_name("flow.py")
MOST = 150_000


def main(folder: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="holdfast-pictures-") as place:
        env = os.environ | {"HOLDFAST_DEMO": place, "HOLDFAST_STORE": f"sqlite:{place}/demo.db"}
        server = demo_server.DemoServer([str(FLOW), str(demo_server.EXAMPLE_FLOWS)], env, Path(place))
        try:
            assert server.ready(), server.why_not()
            given = {"order": "A18", "customer": "c-7", "amount": 50}
            server.api("POST", "/v1/runs", {"flow": "refund", "input": given})
            demo_server.started_runs(server)
            with browsing() as tab:
                take(tab, server, folder)
        finally:
            server.stop()
    for picture in sorted(folder.glob("page-*.png")):
        print(picture, picture.stat().st_size)
        assert picture.stat().st_size < MOST
    return 0


def take(tab: Tab, server: demo_server.DemoServer, folder: Path) -> None:
    runs = {run["flow"]: run["id"] for run in server.api("GET", "/v1/runs")["items"]}
    holds = {hold["flow"]: hold["id"] for hold in server.api("GET", "/v1/holds?view=all")["items"]}
    address = server.told["address"]
    tab.look(width=1000, height=700)
    tab.open(server.told["sign_in"])
    tab.picture(folder / "page-home.png")
    tab.look(width=390, height=844)
    tab.open(f"{address}/holds/{holds['invoice']}")
    tab.picture(folder / "page-hold.png", whole=False)
    tab.look(width=1000, height=900, dark=True)
    tab.open(f"{address}/runs/{runs['mirror']}")
    tab.picture(folder / "page-run.png")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
