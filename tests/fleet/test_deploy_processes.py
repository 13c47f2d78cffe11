"""The commands of the containers of deploy/, as plain processes on a PostgreSQL server: the schema, the first
token, a server and a worker, their probes, a run with a decision, and their end.

Only what containers have of their own is replaced: ports, paths of files, and variables."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tests.deadlines import HANG
from tests.services import postgres, prefork
from tests.services.pgcluster import free_port

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PATIENCE = 60.0

pytestmark = pytest.mark.covers("SAFE-TOOLS-04")


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]


def compose_commands() -> dict[str, list[str]]:
    return {name: compose()[name]["command"] for name in ("migrate", "server", "worker")}


def kubernetes_commands() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in ("migrate", "server", "worker"):
        for each in yaml.safe_load_all((DEPLOY / f"kubernetes/{name}.yaml").read_text("utf-8")):
            if each["kind"] in ("Job", "Deployment"):
                found[name] = each["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


class Fleet:
    """The processes of one deployment, in a folder, on a schema of their own."""

    def __init__(self, folder: Path, commands: dict[str, list[str]]) -> None:
        self.folder = folder
        self.commands = commands
        schema = f"deploy_{secrets.token_hex(4)}"
        self.env = {**os.environ, "HOLDFAST_STORE": postgres.with_setting(postgres.database(), schema=schema)}
        self.ports = {name: free_port() for name in ("http", "server", "worker")}
        self.running: list[prefork.Child] = []

    def command(self, name: str) -> list[str]:
        replaced = {
            "/flows/refund.py": str(ROOT / "examples/refund.py"),
            "/etc/holdfast/sign-in.toml": str(DEPLOY / "sign-in.toml"),
            "$(POD_NAME)": "pod-1",
            "0.0.0.0:9464": f"127.0.0.1:{self.ports.get(name)}",
        }
        words = [replaced.get(each, each) for each in self.commands[name]]
        return [*words, "--port", str(self.ports["http"])] if name == "server" else words

    def start(self, words: list[str]) -> prefork.Child:
        log = (self.folder / f"log-{len(self.running)}.txt").open("w")
        with log:
            child = prefork.Child("holdfast", words, cwd=self.folder, env=self.env, stdout=log, stderr=log)
        self.running.append(child)
        return child

    def finish(self, words: list[str]) -> tuple[int, str]:
        child = self.start(words)
        code = child.wait(PATIENCE)
        return code, (self.folder / f"log-{len(self.running) - 1}.txt").read_text()


@contextmanager
def fleet(folder: Path, commands: dict[str, list[str]]) -> Iterator[Fleet]:
    found = Fleet(folder, commands)
    try:
        yield found
    finally:
        for child in found.running:
            if child.poll() is None:
                child.kill()
            child.wait()


def until(met: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if found := met():
                return found
        except httpx2.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"never: {what}")


def first_token() -> list[str]:
    """The command that the compose file itself names."""
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    (line,) = re.findall(r"run --build --rm cli (tokens create .*)$", text, re.MULTILINE)
    return shlex.split(line)


def probe(name: str, ports: dict[int, int]) -> None:
    """The health check of a service, on the ports of this test."""
    program, *words = compose()[name]["healthcheck"]["test"][1:]
    assert program == "python"
    for port, here in ports.items():
        words = [each.replace(f":{port}/", f":{here}/") for each in words]
    subprocess.run([sys.executable, *words], check=True, timeout=PATIENCE)


@pytest.mark.parametrize("commands", [compose_commands, kubernetes_commands], ids=["compose", "kubernetes"])
def test_containers_commands_make_a_fleet_that_runs_a_flow_to_its_end(
    tmp_path: Path, commands: Callable[[], dict[str, list[str]]]
) -> None:
    with fleet(tmp_path, commands()) as it:
        assert it.finish(it.command("migrate"))[0] == 0
        code, output = it.finish(it.command("server"))
        assert (code, "there is no token yet" in output) == (2, True), output
        code, output = it.finish(first_token())
        assert code == 0, output
        (token,) = re.findall(r"\bhf_[\w-]+", output)
        bearer = {"Authorization": f"Bearer {token}"}
        server, worker = it.start(it.command("server")), it.start(it.command("worker"))
        address = f"http://127.0.0.1:{it.ports['http']}"
        with httpx2.Client(base_url=address, headers=bearer, timeout=HANG) as client:
            until(lambda: client.get("/readyz").status_code == 200, "the server is ready")
            given = {"order_id": "A17", "customer": "c-9", "amount": 250}
            sent = {"flow": "refund", "input": given, "wait": 60}
            run = until(lambda: client.post("/v1/runs", json=sent).json(), "it starts")
            until(lambda: client.get(f"/v1/runs/{run['id']}").json()["status"] == "pending_input", "it asks")
            probe("server", {8420: it.ports["http"]})
            probe("worker", {9464: it.ports["worker"]})
            client.post(f"/v1/runs/{run['id']}/input", json={"content": "approve"}).raise_for_status()
            until(lambda: client.get(f"/v1/runs/{run['id']}").json()["status"] == "completed", "it ends")
            for name in ("server", "worker"):
                page = client.get(f"http://127.0.0.1:{it.ports[name]}/metrics").text
                assert 'holdfast_workers{state="working"} 1.0' in page, name
        for child in (server, worker):
            child.send_signal(signal.SIGTERM)
        assert [child.wait(PATIENCE) for child in (server, worker)] == [0, 0]
