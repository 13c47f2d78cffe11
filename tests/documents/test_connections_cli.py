"""Connections on the command line: a document, the operator's file, and a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.conftest import Cli
from tests.documents.run import flow_text

SEEN: list[str] = []


class Customers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        SEEN.append(f"{self.path} {self.headers['Authorization']}")
        body = b'{"name": "Ada"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Not on stderr."""


@pytest.fixture
def port() -> Iterator[int]:
    SEEN.clear()
    with HTTPServer(("127.0.0.1", 0), Customers) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.mark.covers("CV-24", "CV-23")
def test_document_runs_from_the_command_line_with_the_connections_of_the_operator(
    cli: Cli, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = tmp_path / "customer.yaml"
    document.write_text(
        flow_text(
            """
            {id: start, type: start}
            {id: customer, type: http, config: {connection: crm, path: "/c/{{id}}"}}
            {id: done, type: end, config: {output: {name: "{{customer.name}}"}}}
            """,
            "start -> customer -> done",
            "input: {properties: {id: {}}, required: [id]}",
        ),
        "utf-8",
    )
    said = cli("check", str(document), "--json")
    assert [each["rule"] for each in said.json["files"][0]["diagnostics"]] == ["connection-unknown"]
    assert said.code != 0

    file = tmp_path / "connections.toml"
    file.write_text(
        f'[connections.crm]\nkind = "http"\nbase_url = "http://127.0.0.1:{port}"\ninternal = true\n'
        'headers = {Authorization = "env:CRM_AUTHORIZATION"}\n',
        "utf-8",
    )
    monkeypatch.setenv("HOLDFAST_CONNECTIONS", str(file))
    monkeypatch.setenv("CRM_AUTHORIZATION", "Bearer of-the-operator")
    assert cli("check", str(document)).code == 0
    ended = cli("run", str(document), "--input", '{"id": 7}', "--json")

    assert ended.json["artifacts"] == {"name": "Ada"}
    assert SEEN == ["/c/7 Bearer of-the-operator"]
    assert "of-the-operator" not in json.dumps(ended.json)
