"""The last part: a server with a few example runs, for a browser or, without a terminal, for the demo
itself."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import webbrowser
from collections.abc import Mapping, Sequence
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, ProxyHandler, Request, build_opener

from holdfast.demo.printout import Printout
from holdfast.types.ids import new_run_id

PATIENCE = 30.0
EXAMPLE_FLOWS = Path(__file__).with_name("example_flows.py")


class Example(NamedTuple):
    """`status`: where the run has come to before the demo shows it."""

    flow: str
    status: str
    meaning: str
    input: Mapping[str, Any] = MappingProxyType({})
    breaks: tuple[str, ...] = ()


EXAMPLES = (
    Example(
        "invoice",
        "pending_input",
        "asks you to check a form",
        {"number": "R-2026-118", "supplier": "Nordwerk GmbH"},
    ),
    Example("release", "pending_input", "asks you for a decision", {"version": "4.2.0"}),
    Example("support", "pending_input", "an agent that wants to run a tool"),
    Example("newsletter", "pending_input", "paused at a breakpoint", breaks=("send_letter",)),
    Example("trial", "waiting", "sleeps for two weeks, without a process"),
    Example("mirror", "failed", "failed; it can be resumed once the cause is fixed"),
)
KILLED = "running; its worker was killed, the server's worker resumed it"
MEANINGS = {each.flow: each.meaning for each in EXAMPLES} | {
    "refund": "the one that was killed and finished",
    "reindex": KILLED,
}
DIRECTORY = {"HOLDFAST_DIRECTORY": "store"}
PEOPLE = {"local": "You", "kim": "Kim", "lee": "Lee"}
"""`local` is who signs in with the printed address; the others can be substitutes and be given questions."""
SCHEDULE = {"flow": "newsletter", "cron": "0 8 * * 1"}


class DemoServer:
    """A separate process, started with `holdfast serve`."""

    def __init__(self, flows: Sequence[str], env: dict[str, str], folder: Path) -> None:
        command = [sys.executable, "-m", "holdfast", "serve", *flows, "--port", "0", "--json"]
        self._errors = folder / "serve.log"
        # A file and not a pipe: the demo does not read stderr
        # while the server runs, and a full pipe would block it.
        with self._errors.open("w") as errors:
            self.child = subprocess.Popen(
                command,
                env=env | DIRECTORY,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self.startup: dict[str, Any] = {}
        # Without proxies of the environment: the server is on this machine.
        self._web = build_opener(ProxyHandler({}), HTTPCookieProcessor(CookieJar()))

    def ready(self) -> bool:
        """Whether it listens; if it cannot, it prints the reason and ends."""
        assert self.child.stdout is not None
        # With a limit, because a server that can neither listen nor end would hang the demo.
        if select.select([self.child.stdout], [], [], PATIENCE)[0]:
            line = self.child.stdout.readline()
            self.startup = json.loads(line) if line else {}
        return bool(self.startup)

    def why_not(self) -> str:
        lines = self._errors.read_text().strip().splitlines()
        return lines[-1] if lines else "no reason given"

    def api(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.startup['token']}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.startup["address"] + path, data, headers, method=method)
        with self._web.open(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def page(self) -> str:
        """The inbox without scripts, as a browser gets it that has opened the printed address."""
        found = ""
        for address in (self.startup["sign_in"], f"{self.startup['address']}/plain/"):
            request = Request(address, headers={"Accept": "text/html"})
            with self._web.open(request, timeout=PATIENCE) as answer:
                found = answer.read().decode()
        return found

    def stop(self) -> None:
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        if self.child.stdout is not None:
            self.child.stdout.close()


def show(paper: Printout, flow: str, env: dict[str, str], folder: Path) -> None:
    paper.title("7. The server and its web app, with runs in every state")
    killed = kill_worker(paper, env, folder)
    paper.typed("HOLDFAST_DIRECTORY=store holdfast serve demo/flow.py demo/example_flows.py")
    server = DemoServer([flow, str(EXAMPLE_FLOWS)], env, folder)
    try:
        if not server.ready():
            paper.say(
                f"The server cannot listen on this machine, so this part is skipped: {server.why_not()}"
            )
            return
        _print_runs(paper, started_runs(server, killed))
        if sys.stdin.isatty() and not os.environ.get("CI"):
            _wait(paper, server)
        else:
            _show_page(paper, server)
    finally:
        server.stop()


def kill_worker(paper: Printout, env: dict[str, str], folder: Path) -> str:
    """A run whose worker is killed in the middle of a step; the server's worker will resume it."""
    command = [sys.executable, "-m", "holdfast"]
    run = str(new_run_id())
    start = [*command, "run", f"{EXAMPLE_FLOWS}:reindex", "--detach", "--run-id", run]
    subprocess.run(start, env=env, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    with (folder / "worker.log").open("w") as log:
        worker = subprocess.Popen(
            [*command, "worker", str(EXAMPLE_FLOWS), "--name", "worker-1"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for_step(command, env, run)
    finally:
        worker.kill()
        worker.wait()
    paper.say(f"A worker was in the middle of the run {run[:8]}, and is killed too: kill -9 {worker.pid}")
    return run


def _wait_for_step(command: list[str], env: dict[str, str], run: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        shown = subprocess.run(
            [*command, "show", run, "--json"],
            env=env,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        if any(record["node"] == "index_batch" for record in json.loads(shown.stdout)["records"]):
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"The run {run} did not begin: {shown.stdout.decode()}")
        time.sleep(0.1)


def started_runs(server: DemoServer, killed: str = "") -> list[dict[str, Any]]:
    """The runs, once each is where it should be. `killed`: a run whose worker was killed; it has gone on."""
    reached = server.api("GET", f"/v1/runs/{killed}")["head"] if killed else 0
    # First: a question to a person whom the directory does not have is assigned to nobody.
    for person, name in PEOPLE.items():
        server.api("PUT", f"/v1/directory/people/{person}", {"name": name})
    for each in EXAMPLES:
        server.api("POST", "/v1/runs", {"flow": each.flow, "input": dict(each.input), "breaks": each.breaks})
    server.api("PUT", "/v1/schedules/newsletter", SCHEDULE)
    wanted = {each.flow: each.status for each in EXAMPLES}
    deadline = time.monotonic() + PATIENCE
    while True:
        runs: list[dict[str, Any]] = server.api("GET", "/v1/runs")["items"]
        found = {run["flow"]: run["status"] for run in runs}
        resumed = not killed or any(run["id"] == killed and run["head"] > reached for run in runs)
        if resumed and all(found.get(flow) == status for flow, status in wanted.items()):
            return runs
        if time.monotonic() > deadline:
            raise SystemExit(f"The example runs did not reach the expected state: {found}")
        time.sleep(0.1)


def _print_runs(paper: Printout, runs: list[dict[str, Any]]) -> None:
    rows = [(str(run["id"])[:8], str(run["flow"]), MEANINGS.get(run["flow"], "")) for run in runs]
    paper.table(("run", "flow", "state"), rows)


def has_browser() -> bool:
    """A browser with a window: one in the terminal would take the demo's place there."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _wait(paper: Printout, server: DemoServer) -> None:
    opened = has_browser() and webbrowser.open(server.startup["sign_in"])
    paper.say(
        "Your browser shows the web app. This address signs a browser in, once and within ten minutes:"
        if opened
        else "Open this in a browser. It signs you in, once and within ten minutes:"
    )
    paper.framed(server.startup["sign_in"], "your inbox")
    paper.say(
        f"After that it is {server.startup['address']}. Answer the questions, and watch the runs continue."
    )
    paper.say("Ctrl-C ends the server and the demo.", "dim")
    try:
        server.child.wait()
    except KeyboardInterrupt:
        paper.say("\nThe server is draining.")


def _show_page(paper: Printout, server: DemoServer) -> None:
    """Without a terminal: checks that the page answers, and stops the server."""
    paper.say(
        "A person would open the printed address. There is no terminal here, so the demo opens it itself."
    )
    try:
        page = server.page()
    except HTTPError as error:
        raise SystemExit(f"The page answers {error.code}. This is a bug: please report it.") from error
    asked = [unescape(each) for each in re.findall(r'<p class="title"><a [^>]*>([^<]+)</a>', page)]
    if len(asked) < 2:
        raise SystemExit("The page does not show the open questions. This is a bug: please report it.")
    paper.say(f"{server.startup['address']}/ answers, and asks:")
    for each in asked:
        paper.say(f"  {each}")
