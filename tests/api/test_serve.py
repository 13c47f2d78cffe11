"""`holdfast serve` as a process: whole by itself, many on one store, patient with it, and drained."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.deadlines import HANG
from tests.proxy import ProxyProcess
from tests.services import postgres, prefork
from tests.unit.store.sqlite_files import plain

PATIENCE = HANG
FLOW = """
import asyncio
from holdfast import Flow

slow = Flow("slow", effect="pure")

@slow.node
async def work(s):
    await asyncio.sleep(s.get("seconds", 0))
    return {"done": True}

asks = Flow("asks", effect="pure")
asks.hold("ask", prompt="Go on?", options=["yes", "no"])

@asks.node
async def after(s):
    return {"went": True}

asks.edge("ask", after)
"""


class Serve:
    """A server process, and what it told on its one line."""

    def __init__(self, folder: Path, *args: str, store: str | None = None) -> None:
        self.folder = folder
        flow = folder / "flows.py"
        flow.write_text(FLOW)
        command = ["serve", flow, "--port", "0", "--json", *args]
        environment = {**os.environ, "HOLDFAST_STORE": store or f"sqlite:{folder / 's.db'}"}
        self.errors = folder / f"errors-{time.monotonic_ns()}.txt"
        with self.errors.open("w") as errors:
            self.child = prefork.Child("holdfast", command, cwd=Path.cwd(), env=environment, stderr=errors)
        self.told: dict[str, Any] = {}

    def ready(self) -> Serve:
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        assert line, self.errors.read_text()
        self.told = json.loads(line)
        return self

    def client(self) -> httpx2.Client:
        bearer = {"Authorization": f"Bearer {self.told['token']}"}
        return httpx2.Client(base_url=self.told["address"], headers=bearer, timeout=PATIENCE)

    def end(self) -> int:
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        code = self.child.wait(PATIENCE)
        if self.child.stdout is not None:
            self.child.stdout.close()
        return code


@contextmanager
def served(folder: Path, *args: str, store: str | None = None) -> Iterator[Serve]:
    found = Serve(folder, *args, store=store)
    try:
        yield found
    finally:
        if found.child.poll() is None:
            found.child.kill()
        found.child.wait()
        if found.child.stdout is not None:
            found.child.stdout.close()


def until(met: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := met():
            return found
        time.sleep(0.05)
    raise AssertionError(f"never: {what}")


def started(client: httpx2.Client, flow: str, **given: Any) -> str:
    answer = client.post("/v1/runs", json={"flow": flow, "input": given})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def is_done(client: httpx2.Client, run: str) -> Callable[[], bool]:
    return lambda: client.get(f"/v1/runs/{run}").json()["status"] == "completed"


def shown_by_sql(file: Path) -> int:
    """Checkpoints that are there whole."""
    with plain(file) as raw:
        return raw.execute("SELECT count(*) FROM checkpoints WHERE node_states IS NOT NULL").get


@pytest.mark.covers("SERVER-API-01", "SERVER-SEED-06")
def test_serve_alone_is_whole_with_a_store_and_a_worker_of_its_own(tmp_path: Path) -> None:
    metrics = _free_port()
    with served(tmp_path, "--metrics", str(metrics)) as server:
        server.ready()
        assert server.told["worker"] is True
        with server.client() as client:
            assert client.get("/healthz").json() == {"alive": True}
            assert client.get("/readyz").json() == {"ready": True}
            run = started(client, "asks")
            found = until(lambda: re.search(r"/holds/([0-9a-f-]{36})", client.get("/").text), "it is shown")
            decided = client.post(f"/holds/{found[1]}", data={"decision": "yes"})
            assert decided.status_code == 303
            until(is_done(client, run), "the run goes on behind the decision")
            until(lambda: shown_by_sql(tmp_path / "s.db") == 2, "plain SQL shows the question and the end")
            output = client.get(f"http://127.0.0.1:{metrics}/metrics").text
            assert "holdfast_store_up 1.0" in output
        # The printed address signs a browser in, once.
        with httpx2.Client(follow_redirects=True, headers={"Accept": "text/html"}) as browser:
            page = browser.get(server.told["sign_in"])
            assert "Waiting for you" in page.text
            assert "code=" not in str(page.url)
        with httpx2.Client() as late:
            assert late.get(server.told["sign_in"]).status_code == 401
        assert server.end() == 0


def test_server_with_functions_runs_a_document_that_calls_them(tmp_path: Path) -> None:
    functions = tmp_path / "serve_functions.py"
    functions.write_text("def double(n):\n    return 2 * n\n")
    document = {
        "holdfast": "1.0",
        "name": "twice",
        "nodes": [
            {"id": "start", "type": "start"},
            {"id": "m", "type": "python", "config": {"function": "double", "args": {"n": 21}}},
            {"id": "z", "type": "end"},
        ],
        "edges": [{"source": "start", "target": "m"}, {"source": "m", "target": "z"}],
    }
    with served(tmp_path, "--functions", str(functions)) as server:
        server.ready()
        with server.client() as client:
            sent = client.post("/v1/flows", json={"document": document})
            assert (sent.status_code, sent.json()["problems"]) == (201, [])
            run = client.post("/v1/runs", json={"flow": "twice", "wait": 60}).json()
            assert client.get(f"/v1/runs/{run['id']}/result?wait=60").json()["artifacts"] == {"m": 42}
        assert server.end() == 0


@pytest.mark.covers("SERVER-API-01")
def test_a_server_that_is_asked_to_stop_lets_requests_and_steps_end(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.ready()
        with server.client() as client:
            run = started(client, "slow", seconds=2)
            until(lambda: client.get(f"/v1/runs/{run}").json()["status"] == "running", "the step runs")
            stream = threading.Thread(target=_listen, args=(server, run), daemon=True)
            stream.start()
            time.sleep(0.3)
            assert server.end() == 0
            stream.join(PATIENCE)
            assert not stream.is_alive()
        with served(tmp_path) as again, again.ready().client() as client:
            until(is_done(client, run), "the step that ran was finished or is done again")


def _listen(server: Serve, run: str) -> None:
    with server.client() as client:
        try:
            with client.stream("GET", f"/v1/runs/{run}/stream") as answer:
                for _ in answer.iter_lines():
                    pass
        except httpx2.HTTPError:
            pass


@pytest.mark.covers("SERVER-API-02")
def test_servers_on_postgresql_share_everything_and_carry_no_state(tmp_path: Path) -> None:
    store = postgres.with_setting(postgres.database(), schema="serve")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with served(tmp_path / "a", "--no-worker", store=store) as a, served(tmp_path / "b", store=store) as b:
        a.ready()
        b.ready()
        assert (a.told["worker"], b.told["worker"]) == (False, True)
        with a.client() as first, b.client() as second:
            run = started(first, "asks")
            found = until(lambda: second.get("/v1/holds?view=all").json()["items"], "the other one sees it")
            assert first.post(f"/holds/{found[0]['id']}", data={"decision": "yes"}).status_code == 303
            until(is_done(second, run), "the other server's worker goes on")
            # A session that began at one is known to the other.
            with httpx2.Client(follow_redirects=True, headers={"Accept": "text/html"}) as browser:
                browser.get(a.told["sign_in"])
                assert run[:8] in browser.get(f"{b.told['address']}/").text
        assert a.end() == 0
        with b.client() as second:
            assert second.get("/readyz").status_code == 200


@pytest.mark.covers("R-44-http")
def test_a_server_whose_store_is_away_listens_says_so_and_becomes_ready(tmp_path: Path) -> None:
    real = postgres.with_setting(postgres.database(), schema="away")
    parts = urlsplit(real)
    port = _free_port()
    with ProxyProcess(f"{parts.hostname}:{parts.port or 5432}") as proxy:
        proxy.tell("refuse")
        with served(tmp_path, "--port", str(port), store=proxy.between(real)) as server:
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
                missing = until(lambda: _asked(client, "/readyz"), "it listens")
                assert missing.status_code == 503
                assert missing.json()["ready"] is False
                assert client.get("/healthz").status_code == 200
                refused = client.get("/v1/runs")
                assert refused.status_code == 503
                assert refused.headers["retry-after"]
                assert refused.json()["code"] == "not_ready"
                proxy.tell("pass")
                until(lambda: client.get("/readyz").status_code == 200, "it is ready once the store is there")
            server.ready()
            assert server.end() == 0


def test_a_server_that_waits_for_its_store_can_be_stopped(tmp_path: Path) -> None:
    port, nobody = _free_port(), f"postgresql://nobody@127.0.0.1:{_free_port()}/x"
    with served(tmp_path, "--port", str(port), store=nobody) as server:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            # 503: it is ours, and no other server that was given the port since it was found free.
            until(lambda: (found := _asked(client, "/readyz")) and found.status_code == 503, "it listens")
        assert server.end() == 0


def test_servers_that_cannot_start_say_why(tmp_path: Path) -> None:
    with socket.socket() as taken, ExitStack() as all_of_them:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        cases = {
            f"holdfast: cannot listen on 127.0.0.1:{port}": ("--port", port),
            "there is no token yet": ("--host", "0.0.0.0"),
            "is not an address to listen on": ("--no-worker", "--metrics", "nowhere"),
            f"cannot listen on 127.0.0.1:{port}": ("--no-worker", "--metrics", port),
            "cannot be read": ("--sign-in", "no/such/file.toml"),
        }
        servers: dict[str, Serve] = {}
        for number, (words, args) in enumerate(cases.items()):
            (folder := tmp_path / str(number)).mkdir()
            servers[words] = all_of_them.enter_context(served(folder, *args))
        for words, server in servers.items():
            assert server.child.wait(PATIENCE) == 2
            assert words in server.errors.read_text()


def _asked(client: httpx2.Client, path: str) -> httpx2.Response | None:
    try:
        return client.get(path)
    except httpx2.TransportError:
        return None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.parametrize("mode", [(), ("--no-worker",)], ids=["with-a-worker", "without"])
@pytest.mark.covers("SERVER-API-01", "SAFE-TOOLS-05")
def test_requests_are_counted_and_timed_by_route_and_status(tmp_path: Path, mode: tuple[str, ...]) -> None:
    metrics = _free_port()
    with served(tmp_path, *mode, "--metrics", str(metrics)) as server, server.ready().client() as client:
        run = started(client, "slow")
        for _ in range(3):
            assert client.get(f"/v1/runs/{run}").status_code == 200
        assert client.get("/v1/runs/nothing").status_code == 404
        assert client.get("/no/such/path").status_code == 404
        output = client.get(f"http://127.0.0.1:{metrics}/metrics").text
    for line in (
        'holdfast_http_requests_total{method="GET",route="/v1/runs/{run}",status="200"} 3.0',
        'holdfast_http_requests_total{method="GET",route="/v1/runs/{run}",status="404"} 1.0',
        'holdfast_http_requests_total{method="POST",route="/v1/runs",status="201"} 1.0',
        'holdfast_http_requests_total{method="GET",route="",status="404"} 1.0',
        'holdfast_http_request_duration_seconds_count{method="GET",route="/v1/runs/{run}"} 4.0',
    ):
        assert line in output, line
    assert run not in output


@pytest.mark.covers("SAFE-TOOLS-05")
def test_server_without_a_worker_has_metrics_of_the_fleet_and_health(tmp_path: Path) -> None:
    port = _free_port()
    with (
        served(tmp_path, "--no-worker", "--metrics", str(port)) as server,
        server.ready().client() as client,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}") as probe,
    ):
        started(client, "slow")
        assert probe.get("/healthz").json() == client.get("/healthz").json() == {"alive": True}
        assert probe.get("/readyz").json() == client.get("/readyz").json() == {"ready": True}
        whole, own = probe.get("/metrics").text, probe.get("/metrics/worker").text
        for line in ("holdfast_store_up 1.0", 'holdfast_backlog_runs{lane="default"} 1.0'):
            assert line in whole, line
        assert 'holdfast_workers{state="working"} 0.0' in whole
        assert "holdfast_backlog_runs{" not in own
        assert "holdfast_http_requests_total{" in own
        assert "holdfast_worker_busy_runs" not in whole + own
        assert server.end() == 0


@pytest.mark.covers("SAFE-STORE-01")
@pytest.mark.parametrize("options", [(), ("--no-worker", "--lease", "1s")], ids=["worker", "no_worker"])
def test_server_ends_when_its_file_is_removed(tmp_path: Path, options: tuple[str, ...]) -> None:
    with served(tmp_path, "--drain", "600", *options) as server:
        server.ready()
        with server.client() as client:
            run = started(client, "asks")
            with client.stream("GET", f"/v1/runs/{run}/stream") as stream:
                lines = stream.iter_lines()
                next(lines)
                (tmp_path / "s.db").unlink()
                with suppress(httpx2.TransportError):  # it may have ended
                    assert client.get("/readyz").status_code == 503
                    assert client.post("/v1/runs", json={"flow": "asks"}).status_code == 503
                for _ in lines:
                    pass
        assert server.child.wait(PATIENCE) == 4
        told = server.errors.read_text()
        assert told.rstrip().splitlines()[-1].startswith("holdfast: the file")
        assert "Traceback" not in told
