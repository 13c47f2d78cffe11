"""A real browser for tests: Chromium over its own protocol, with script switched off unless a test wants it.

Everything goes through the DOM and real input events: a page that needs script fails here as it would for a
person who has none.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.deadlines import HANG
from tests.services import absent

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = HANG


def program() -> str:
    """Where it is. Ends the test as skipped, or as failed where a browser is required."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        absent("browser", "no Chromium is installed (apt-get install chromium)")
    return found


class Tab:
    def __init__(self, line: ClientConnection) -> None:
        self._line = line
        self._number = 0
        self._told: list[dict[str, Any]] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self._line.send(json.dumps({"id": self._number, "method": method, "params": params}))
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            said = json.loads(self._line.recv(timeout=PATIENCE))
            if said.get("id") == self._number:
                assert "error" not in said, (method, said["error"])
                return said.get("result", {})
            self._told.append(said)
        raise AssertionError(f"the browser did not answer {method}")

    def _until(self, name: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            if any(each.get("method") == name for each in self._told):
                self._told.clear()
                return
            assert time.monotonic() < deadline, f"the browser never told {name}"
            self._told.append(json.loads(self._line.recv(timeout=PATIENCE)))

    def start(self, *, script: bool = False) -> None:
        for domain in ("Page", "DOM", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setScriptExecutionDisabled", value=not script)

    def look(self, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=width < 600,
        )  # fmt: skip
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def open(self, address: str) -> None:
        self._told.clear()
        self.call("Page.navigate", url=address)
        self._until("Page.loadEventFired")

    def complaints(self, address: str) -> list[str]:
        """What the browser has against a page: policies that block something, files that are not there."""
        self.open(address)
        self.call("Page.getLayoutMetrics")
        return [
            each["params"]["entry"]["text"]
            for each in self._told
            if each.get("method") == "Log.entryAdded" and each["params"]["entry"]["level"] == "error"
        ]

    def find(self, selector: str) -> int:
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        found = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        assert found, f"there is no {selector} on the page:\n{self.text()}"
        return found

    def text(self) -> str:
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        return self.call("DOM.getOuterHTML", nodeId=root)["outerHTML"]

    def type(self, selector: str, text: str) -> None:
        """In place of what stands there."""
        self.call("DOM.focus", nodeId=self.find(selector))
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="a", modifiers=2, commands=["selectAll"])
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            more = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more
            )

    def click(self, selector: str, *, leaves: bool = True) -> None:
        """With the mouse. `leaves`: another page comes."""
        node = self.find(selector)
        self.call("DOM.scrollIntoViewIfNeeded", nodeId=node)
        box = self.call("DOM.getBoxModel", nodeId=node)["model"]["content"]
        x, y = (box[0] + box[4]) / 2, (box[1] + box[5]) / 2
        self._told.clear()
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        if leaves:
            self._until("Page.loadEventFired")

    def width(self) -> float:
        """Of the content: wider than the window means scrolling sideways."""
        return self.call("Page.getLayoutMetrics")["cssContentSize"]["width"]

    def tree(self) -> list[tuple[str, str]]:
        """(role, name) of everything that a screen reader is told."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (each.get("role", {}).get("value", ""), each.get("name", {}).get("value", ""))
            for each in nodes
            if not each.get("ignored")
        ]

    def picture(self, path: Path, *, whole: bool = True) -> None:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        more = {"clip": clip, "captureBeyondViewport": True} if whole else {}
        data = self.call("Page.captureScreenshot", format="png", **more)["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def browsing(*, script: bool = False) -> Iterator[Tab]:
    """One tab of a browser with a profile of its own, ended with the test."""
    found = program()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-browser-"))
    child = subprocess.Popen(
        [
            found, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-extensions", "--disable-background-networking", "--no-proxy-server",
            "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank",
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {"HOME": str(folder)},
        start_new_session=True,  # Debian's program is a script that starts the browser: both are ended
    )  # fmt: skip
    try:
        with connect(_address(folder, child), max_size=None, proxy=None) as line:
            tab = Tab(line)
            tab.start(script=script)
            yield tab
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _address(folder: Path, child: subprocess.Popen[bytes]) -> str:
    """Of its first tab."""
    import urllib.request

    deadline = time.monotonic() + PATIENCE
    port = folder / "DevToolsActivePort"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline and child.poll() is None:
        if port.exists() and (lines := port.read_text().split()):
            tabs = json.load(opener.open(f"http://127.0.0.1:{lines[0]}/json/list", timeout=PATIENCE))
            pages = [each for each in tabs if each["type"] == "page"]
            if pages:
                return pages[0]["webSocketDebuggerUrl"]
        time.sleep(0.05)
    raise AssertionError("the browser did not start")
