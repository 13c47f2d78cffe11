"""Nodes of type `http`, against a real server on this machine."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from holdfast import Holdfast
from holdfast.documents import http_node
from holdfast.documents.connections import (
    Connections,
    ConnectionSettings,
    HttpConnection,
    SecretSpec,
    TenantConnections,
    read_connections,
)
from holdfast.errors import ConnectionUnknownError, SettingsError
from tests.documents.run import flow_text, graph, problems, rules, start
from tests.holds.notify.servers import HttpServer, http_server

EDGES = "start -> call -> done"


def call(config: str, head: str = "input: {properties: {id: {}, note: {}, to: {}}}") -> str:
    return flow_text(
        f"""
        {{id: start, type: start}}
        {{id: call, type: http, config: {config}}}
        {{id: done, type: end}}
        """,
        EDGES,
        head,
    )


def allowing(server: HttpServer, **more: Any) -> ConnectionSettings:
    return ConnectionSettings(allow=(f"127.0.0.1:{server.port}",), timeout=5, **more)


def connected(server: HttpServer, **more: Any) -> ConnectionSettings:
    base = HttpConnection(base_url=f"http://127.0.0.1:{server.port}/v1", internal=True, **more)
    return ConnectionSettings(connections={"crm": base}, timeout=5)


JSON = {"content-type": "application/json"}


async def test_http_node_binds_the_body_and_has_its_status_beside_it(hf: Holdfast) -> None:
    async with http_server() as server:
        server.says(200, headers={**JSON, "set-cookie": "a=b"}, body='{"name": "Ada"}')
        text = call('{connection: crm, path: "/c/{{id}}", query: {q: "{{note}}", gone: null, n: [1, 2]}}')
        ended = await start(hf, text, {"id": "a/b c", "note": "x&y"}, settings=connected(server))

    assert ended.status == "completed"
    assert ended.state["call"] == {"name": "Ada"}
    assert ended.state["call_response"]["status"] == 200
    assert "set-cookie" not in ended.state["call_response"]["headers"]
    # A value stays one part of the path, and of the query.
    assert server.seen[0].path == "/v1/c/a%2Fb%20c?q=x%26y&n=1&n=2"
    assert "idempotency-key" not in server.seen[0].headers


async def test_http_node_sends_json_with_the_key_of_the_visit_when_it_posts(hf: Holdfast) -> None:
    text = call(
        '{method: POST, connection: crm, path: /r, body: {id: "{{id}}"}, retry: {attempts: 2, delay: 0}}'
    )
    async with http_server() as server:
        server.says(503)
        server.says(201, headers=JSON, body='{"ok": true}')
        ended = await start(hf, text, {"id": 7}, settings=connected(server))

    assert ended.state["call"] == {"ok": True}
    first, second = server.seen
    assert first.json == {"id": 7}
    assert first.headers["content-type"] == "application/json"
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


def test_http_node_reads_with_get_and_acts_with_other_methods() -> None:
    effects = {
        method: next(
            node.effect for node in graph(call(f"{{method: {method}, url: 'https://a.example'}}")).nodes
            if node.id == "call"
        )
        for method in ("GET", "HEAD", "POST", "DELETE")
    }  # fmt: skip

    assert effects == {"GET": "read", "HEAD": "read", "POST": "external", "DELETE": "external"}


@pytest.mark.parametrize(
    ("status", "expect", "ends"),
    [(404, "2xx", "failed"), (404, "[2xx, 404]", "completed"), (302, "2xx", "failed")],
)
async def test_http_node_fails_when_the_status_is_not_expected(
    hf: Holdfast, status: int, expect: str, ends: str
) -> None:
    async with http_server() as server:
        server.says(status, headers={"location": f"{server.url}/other"}, body="no such customer")
        text = call(f"{{method: POST, connection: crm, path: /, expect: {expect}, retry: {{attempts: 3}}}}")
        ended = await start(hf, text, settings=connected(server))

    assert ended.status == ends
    # The server refused it: a retry would not help, a redirect is not followed, and nothing is in doubt.
    assert len(server.seen) == 1
    if ends == "failed":
        assert f"HTTP {status}" in ended.error.message


async def test_http_node_is_in_doubt_when_the_server_fails_after_a_post(hf: Holdfast) -> None:
    async with http_server() as server:
        server.says(500)
        waiting = await start(
            hf, call("{method: POST, connection: crm, path: /}"), settings=connected(server)
        )

    assert [hold.type for hold in waiting.holds] == ["in_doubt"]


async def test_http_node_fails_when_the_response_is_too_long(hf: Holdfast) -> None:
    async with http_server() as server:
        server.says(200, body="x" * 101)
        ended = await start(
            hf, call("{connection: crm, path: /, max_bytes: 100}"), settings=connected(server)
        )

    assert ended.status == "failed"
    assert "more than 100 bytes" in ended.error.message


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("[" + "1," * 250_000 + "1]", "it has more than 250,000 values"),
        ('{"a": [' + "[1]," * 125_000 + "1]}", "it has more than 250,000 values"),
        ("[" * 66 + "1" + "]" * 66, "it is nested more than 64 levels deep"),
        ("[" * 700 + "1" + "]" * 700, "it is nested more than 64 levels deep"),
        ("[" * 50_000 + "]" * 50_000, "it is nested more than 64 levels deep"),
        ('{"a": 1e400}', "the number 1e400 is too large"),
        ("-1e400", "the number -1e400 is too large"),
    ],
    ids=["values", "lists", "66-levels", "700-levels", "50000-levels", "number", "negative"],
)
async def test_http_node_fails_with_the_reason_when_the_response_is_too_much(
    hf: Holdfast, body: str, why: str
) -> None:
    async with http_server() as server:
        server.says(200, body=body, headers=JSON)
        ended = await start(hf, call("{connection: crm, path: /, bind: got}"), settings=connected(server))

    assert ended.status == "failed"
    assert ended.error.message == f"the response cannot be read as JSON: {why}."


async def test_long_response_is_read_in_a_thread_and_a_short_one_at_once(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[bool] = []
    read = http_node._content

    def content(response: Any) -> Any:
        readers.append(threading.current_thread() is threading.main_thread())
        return read(response)

    monkeypatch.setattr(http_node, "_content", content)
    for body in ("[1]", "[" * 60 + "1" + "]" * 60, "[" + "1," * 50_000 + "1]"):
        async with http_server() as server:
            server.says(200, body=body, headers=JSON)
            ended = await start(hf, call("{connection: crm, path: /, bind: got}"), settings=connected(server))
        assert ended.completed
        assert ended.state["got"] == json.loads(body)
    assert readers == [True, True, False]


# ------------------------------------------------------------------ secrets
@pytest.mark.covers("CV-23", "PLATFORM-NODE-02")
async def test_secret_reaches_the_server_and_never_the_journal(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_KEY", "hunter-2-value")
    text = call(
        '{connection: crm, path: /, headers: {Authorization: {secret: crm, prefix: "Bearer "}}, '
        "query: {api_key: {secret: crm}}}"
    )
    async with http_server() as server:
        server.says(200, headers={**JSON, "x-echo": "hunter-2-value"}, body='{"you": ["hunter-2-value"]}')
        settings = connected(server)
        ended = await start(
            hf, text, settings=ConnectionSettings(
                connections=settings.connections, secrets={"crm": "env:CRM_KEY"}
            ),
        )  # fmt: skip

    assert server.seen[0].headers["authorization"] == "Bearer hunter-2-value"
    assert "api_key=hunter-2-value" in server.seen[0].path
    assert ended.state["call"] == {"you": ["***"]}
    store = (await hf.service()).store
    stored = b"".join(record.payload for record in await store.read(ended.run_id))
    assert b"***" in stored
    assert b"hunter-2-value" not in stored


SECRET = "s3cret/+ &<k\u00e9y>\"'\\"
ECHOES = {
    "quote": quote(SECRET, safe=""),
    "quote with slashes": quote(SECRET),
    "quote in lower case": quote(SECRET, safe="").lower(),
    "quote_plus": quote_plus(SECRET),
    "html": escape(SECRET),
    "html text": escape(SECRET, quote=False),
    "json": json.dumps(SECRET)[1:-1],
    "base64": b64encode(SECRET.encode()).decode(),
    "base64 of a pair": b64encode(f"ann:{SECRET}".encode()).decode(),
    "base64 for addresses": urlsafe_b64encode(f"u:{SECRET}".encode()).decode(),
}


@pytest.mark.parametrize("form", ECHOES)
@pytest.mark.parametrize("status", [200, 403])
async def test_secret_that_is_sent_back_in_another_form_is_masked(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch, form: str, status: int
) -> None:
    monkeypatch.setenv("CRM_KEY", SECRET)
    async with http_server() as server:
        server.says(status, body=f"[{ECHOES[form]}]")
        text = call(f"{{url: '{server.url}', query: {{key: {{secret: crm}}}}}}")
        ended = await start(hf, text, settings=allowing(server, secrets={"crm": "env:CRM_KEY"}))
    shown = ended.state["call"] if status == 200 else ended.error.message
    assert "***" in shown
    assert ECHOES[form][6:-6] not in shown


async def test_secret_that_the_shown_part_of_a_response_would_cut_is_masked(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_KEY", "hunter" * 200)
    async with http_server() as server:
        server.says(403, body="no: " + "hunter" * 200)
        text = call(f"{{url: '{server.url}', headers: {{X-Key: {{secret: crm}}}}}}")
        ended = await start(hf, text, settings=allowing(server, secrets={"crm": "env:CRM_KEY"}))
    assert "hunter" not in ended.error.message


async def test_secret_is_sent_only_to_the_hosts_that_its_owner_lists(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_KEY", "hunter-2-value")
    async with http_server() as server:
        kept = SecretSpec(value="env:CRM_KEY", hosts=("crm.example.com",))
        text = call(f"{{url: '{server.url}', headers: {{X-Key: {{secret: crm}}}}}}")
        ended = await start(hf, text, settings=allowing(server, secrets={"crm": kept}))

    assert ended.status == "failed"
    assert "may not be sent to 127.0.0.1" in ended.error.message
    assert server.seen == []


@pytest.mark.covers("CV-23", "PLATFORM-NODE-02")
@pytest.mark.parametrize(
    ("wrong", "fixed", "rule"),
    [
        ("headers: {Authorization: Bearer abc}", "headers: {Authorization: {secret: crm}}", "secret-literal"),
        ("headers: {Cookie: session=abc}", "headers: {Cookie: {secret: crm}}", "secret-literal"),
        ("headers: {x-api-key: abc}", "headers: {x-api-key: {secret: crm}}", "secret-literal"),
        ("query: {access_token: abc}", "query: {access_token: {secret: crm}}", "secret-literal"),
        ('headers: {X: "{{secret.crm}}"}', "headers: {X: {secret: crm}}", "secret-literal"),
        ("headers: {X: {secret: crn}}", "headers: {X: {secret: crm}}", "secret-unknown"),
        ("method: POST, body: {key: {secret: crm}}", "method: POST, body: {key: 1}", "secret-place"),
        ("headers: {Host: x}", "headers: {X-Host: x}", "http-header"),
        ("headers: {'a b': x}", "headers: {ab: x}", "http-header"),
        ("expect: ok", "expect: [2xx, 404]", "http-expect"),
        ("body: {a: 1}", "method: PUT, body: {a: 1}", "http-body"),
    ],
)
def test_request_with_a_secret_in_it_is_refused_when_it_is_checked(wrong: str, fixed: str, rule: str) -> None:
    settings = ConnectionSettings(secrets={"crm": "env:CRM"})
    for text, expected in ((wrong, [rule]), (fixed, [])):
        assert rules(call(f"{{url: 'https://a.example/x', {text}}}"), settings=settings) == expected


@pytest.mark.covers("CV-23", "PLATFORM-NODE-02")
@pytest.mark.parametrize(
    ("wrong", "fixed"),
    [
        ("{password: abc}", "{password: '{{id}}'}"),
        ("{a: [{apiKey: abc}]}", "{a: [{api_keys: abc}]}"),
        ("{x: AKIAABCDEFGHIJKLMNOP}", "{x: AKIA}"),
        ("{x: ['Use Bearer 0123456789abcdefghijk']}", "{x: ['The bearer of the card']}"),
        ("""'{"api_key": "abc"}'""", """'{"api_key": "{{id}}", "id": "abc"}'"""),
        ("'user=u&client_secret=abc'", "'client_secret={{id}}&user=u'"),
    ],
)
def test_secret_in_the_data_of_a_node_is_refused_when_it_is_checked(wrong: str, fixed: str) -> None:
    """The same rule for a body, a variable that is set, the arguments of a function and a message."""
    nodes = {
        "http": "{{method: POST, url: 'https://a.example/x', body: {data}}}",
        "set": "{{values: {{k: {data}}}}}",
        "queue_publish": "{{queue: work, scope: s, payload: {{k: {data}}}}}",
        "end": "{{output: {{k: {data}}}}}",
    }
    for kind, config in nodes.items():
        for data, expected in ((wrong, ["secret-literal"]), (fixed, [])):
            if data.startswith("'") and kind != "http":
                continue  # a text that is a body
            last = f"{{id: m, type: {kind}, config: {config.format(data=data)}}}"
            ends = last if kind == "end" else f"{last}\n{{id: z, type: end}}"
            ways = "a -> m" if kind == "end" else "a -> m -> z"
            text = flow_text(f"{{id: a, type: start}}\n{ends}", ways, "input: {properties: {id: {}}}")
            assert rules(text) == expected, (kind, data)


@pytest.mark.covers("CV-23")
def test_secret_in_the_default_of_a_variable_is_refused_when_it_is_checked() -> None:
    for default, expected in (
        ("{api_key: {default: abc}}", ["secret-literal"]),
        ("{key: {default: a}}", []),
        ("{pw: {type: string, default: hunter2, secret: true}}", ["secret-literal"]),
        ("{pw: {type: array, default: [1], secret: true}}", ["secret-literal"]),
        ("{pw: {type: string, default: '', secret: true}}", []),
        ("{pw: {type: string, secret: true}}", []),
    ):
        text = flow_text("{id: a, type: start}\n{id: z, type: end}", "a -> z", f"variables: {default}")
        assert rules(text) == expected


@pytest.mark.parametrize(
    ("wrong", "fixed", "rule"),
    [
        ("{}", "{url: 'https://a.example'}", "http-one-of"),
        ("{url: 'https://a.example', path: /x}", "{connection: crm, path: /x}", "http-one-of"),
        ("{connection: crm}", "{connection: crm, path: /x}", "http-one-of"),
        ("{connection: crm, path: x}", "{connection: crm, path: /x}", "http-path"),
        ("{connection: crn, path: /x}", "{connection: crm, path: /x}", "connection-unknown"),
        ("{url: 'http://a.example'}", "{url: 'https://a.example'}", "egress-refused"),
        ("{url: 'https://a.example:22/{{id}}'}", "{url: 'https://a.example/{{id}}'}", "egress-refused"),
        ("{url: 'https://169.254.169.254/'}", "{url: 'https://8.8.8.8/'}", "egress-refused"),
        ("{url: 'https://[::1]/{{id}}'}", "{url: 'https://[2606:4700::1111]/{{id}}'}", "egress-refused"),
        ("{url: 'https://u:p@a.example'}", "{url: 'https://a.example'}", "secret-literal"),
        ("{url: 'https://a.example?api_key=1'}", "{url: 'https://a.example?key=1'}", "secret-literal"),
        (
            "{url: 'https://{{id}}/', headers: {X: {secret: crm}}}",
            "{url: 'https://a.example/{{id}}', headers: {X: {secret: crm}}}",
            "secret-target",
        ),
    ],
)
@pytest.mark.covers("CV-24")
def test_address_that_cannot_be_reached_is_refused_when_it_is_checked(
    wrong: str, fixed: str, rule: str
) -> None:
    settings = ConnectionSettings(
        secrets={"crm": "env:CRM"}, connections={"crm": HttpConnection(base_url="https://a.example")}
    )
    assert rule in rules(call(wrong), settings=settings)
    assert rules(call(fixed), settings=settings) == []


def test_problem_of_a_connection_names_the_nearest() -> None:
    settings = ConnectionSettings(connections={"crm": HttpConnection(base_url="https://a.example")})
    [problem] = problems(call("{connection: crn, path: /x}"), settings=settings)

    assert (problem.rule, problem.field) == ("connection-unknown", "connection")
    assert "crm" in (problem.fix or "")


# ------------------------------------------------------------------ egress
@pytest.mark.parametrize("to", ["http://127.0.0.1:{port}/", "https://localhost:{port}/", "https://[::1]/"])
async def test_address_from_the_data_reaches_no_internal_host(hf: Holdfast, to: str) -> None:
    async with http_server() as server:
        given = {"to": to.format(port=server.port)}
        ended = await start(hf, call('{url: "{{to}}"}'), given, settings=ConnectionSettings())

    assert ended.status == "failed"
    assert "egress_refused" in ended.error.message
    assert server.seen == []


@pytest.mark.parametrize("given", ["../admin", "..", "%2e%2e"])
async def test_value_in_a_path_reaches_no_other_resource(hf: Holdfast, given: str) -> None:
    async with http_server() as server:
        ended = await start(hf, call('{connection: crm, path: "/c/{{id}}"}'), {"id": given},
                            settings=connected(server))  # fmt: skip

    assert [each.path for each in server.seen if ".." in each.path.split("/")] == []
    assert ended.status == "failed" or server.seen[0].path.startswith("/v1/c/")


@pytest.mark.parametrize(
    "path",
    ["/..%2fadmin", "/..%2Fadmin", "/.%2e%2fadmin", "/..;/admin", "/..;a=b/admin", "/%2e%2e%5cadmin",
     "/\\..\\admin", "/%252e%252e/admin", "/..%252fadmin", "/..%00/admin", "/.%09./admin", "/a%2f..%2fadmin"],
)  # fmt: skip
@pytest.mark.parametrize("place", ["whole", "value"])
async def test_path_with_dots_in_another_form_is_not_sent(hf: Holdfast, path: str, place: str) -> None:
    shown = '"{{to}}"' if place == "whole" else '"/c/{{to}}"'
    async with http_server() as server:
        text = call(f"{{connection: crm, path: {shown}}}")
        ended = await start(hf, text, {"to": path}, settings=connected(server))
        # Dots that are a part of a name, and an encoded slash, are fine.
        fine = await start(hf, call('{connection: crm, path: "/c/{{to}}"}'), {"to": "..a/b..;/v1.0"},
                           settings=connected(server))  # fmt: skip
    assert ended.status == "failed"
    assert "egress_refused" in ended.error.message
    assert (fine.status, len(server.seen)) == ("completed", 1)


async def test_path_from_the_data_stays_at_the_host_of_its_connection(hf: Holdfast) -> None:
    async with http_server() as server:
        ended = await start(hf, call('{connection: crm, path: "{{to}}"}'), {"to": "@evil.example/"},
                            settings=connected(server))  # fmt: skip

    assert ended.status == "failed"
    assert "does not begin with /" in ended.error.message


async def test_header_with_a_line_break_is_not_sent(hf: Holdfast) -> None:
    async with http_server() as server:
        ended = await start(
            hf, call('{connection: crm, path: /, headers: {X-Note: "{{note}}"}}'), {"note": "a\r\nHost: b"},
            settings=connected(server),
        )  # fmt: skip

    assert ended.status == "failed"
    assert server.seen == []


# ------------------------------------------------------------------ connections
@pytest.mark.covers("CV-24")
async def test_run_goes_on_when_its_connection_is_there_again(hf: Holdfast, tmp_path: Path) -> None:
    async with http_server() as server:
        file = tmp_path / "connections.toml"
        file.write_text("", "utf-8")
        known = Connections(file)
        with pytest.raises(ConnectionUnknownError, match="'crm'"):
            known.http("default", "crm")

        table = f'[connections.crm]\nkind = "http"\nbase_url = "{server.url}"\n'
        file.write_text(table, "utf-8")

        assert known.http("default", "crm").base_url == server.url


async def test_node_without_its_connection_fails_and_may_be_retried(hf: Holdfast) -> None:
    text = call("{connection: crm, path: /, retry: {attempts: 2, delay: 0}}")
    from holdfast.documents.program import handlers_for

    handlers = handlers_for(Connections(ConnectionSettings()))
    ended = await start(hf, text, handlers=handlers)

    assert ended.status == "failed"
    assert ended.error.code == "connection_unknown"


@pytest.mark.covers("CV-24")
def test_names_of_a_tenant_count_before_those_of_all() -> None:
    shared, own = HttpConnection(base_url="https://a.example"), HttpConnection(base_url="https://b.example")
    known = Connections(
        ConnectionSettings(
            connections={"crm": shared, "bank": shared},
            tenants={"acme": TenantConnections(connections={"crm": own})},
        )
    )

    assert known.http("acme", "crm") == own
    assert known.http("acme", "bank") == shared
    assert known.http("other", "crm") == shared


@pytest.mark.covers("CV-24")
async def test_names_that_are_not_shared_serve_the_default_tenant_alone(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "hunter-2-value")
    async with http_server() as server:
        given = allowing(server, secrets={"key": "env:KEY"}, shared=False)
        text = call(f"{{url: '{server.url}', headers: {{X-Key: {{secret: key}}}}}}")
        assert rules(text, settings=given) == []
        ended = await start(hf, text, settings=given, tenant="acme")
        assert (ended.status, ended.error.code) == ("failed", "connection_unknown")
        assert server.seen == []
        assert (await start(hf, text, settings=given)).status == "completed"
    known = Connections(given)
    assert (known.secret_names("acme"), known.secret_names()) == (frozenset(), frozenset({"key"}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[secrets]\na = "plain"', "neither env:NAME nor file:PATH"),
        ('[connections.a]\nkind = "ftp"\nbase_url = "x"', "kind"),
        ('[connections.a]\nkind = "http"\nbase_url = "x"', "is not a URL"),
        ("[", "is not TOML"),
    ],
)
def test_file_of_connections_that_cannot_be_read_says_why(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "connections.toml"
    file.write_text(text, "utf-8")

    with pytest.raises(SettingsError, match=words):
        read_connections(file)


# ------------------------------------------------------------------ responses
@asynccontextmanager
async def answering(*parts: bytes) -> AsyncIterator[HttpServer]:
    """A server that sends exactly these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield HttpServer(port=server.sockets[0].getsockname()[1])


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ((OK, b"Transfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n5;x=y\r\npedia\r\n0\r\n\r\n"), "Wikipedia"),
        ((OK, b"\r\nuntil the end"), "until the end"),
        ((b"HTTP/1.1 100 Continue\r\n\r\n", OK, b"Content-Length: 2\r\n\r\nhi"), "hi"),
        ((b"HTTP/1.1 204 No\r\n\r\n",), None),
    ],
)
async def test_body_is_read_in_every_form_that_http_has(
    hf: Holdfast, parts: tuple[bytes, ...], found: Any
) -> None:
    async with answering(*parts) as server:
        ended = await start(hf, call("{connection: crm, path: /}"), settings=connected(server))

    assert ended.state["call"] == found


@pytest.mark.parametrize(
    "parts",
    [
        (OK, b"Transfer-Encoding: chunked\r\n\r\n-4\r\nWiki\r\n0\r\n\r\n"),
        (OK, b"Transfer-Encoding: chunked\r\n\r\n4\r\nWikipedia\r\n0\r\n\r\n"),
        (OK, b"Transfer-Encoding: chunked\r\n\r\n4\r\nWi"),
        (OK, b"Transfer-Encoding: chunked\r\n\r\n0x4\r\nWiki\r\n0\r\n\r\n"),
        (OK, b"Transfer-Encoding: chunked\r\n\r\n" + b"4" * 70_000),
        (OK, b"Content-Length: 9\r\n\r\nshort"),
        (OK, b"Content-Length: -1\r\n\r\n"),
        (OK, b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi"),
        (OK, b"Content-Type: application/json\r\nContent-Length: 3\r\n\r\nNaN"),
        (OK, b"Content-Type: text/plain\r\nContent-Length: 1\r\n\r\n\xff"),
        (b"SSH-2.0-OpenSSH\r\n\r\n",),
        (b"",),
    ],
)
async def test_response_that_is_damaged_fails_the_node(hf: Holdfast, parts: tuple[bytes, ...]) -> None:
    async with answering(*parts) as server:
        ended = await start(hf, call("{connection: crm, path: /}"), settings=connected(server))

    assert ended.status == "failed"
    assert ended.error.code == "http_response"


async def test_post_that_reached_no_server_may_be_retried_and_is_not_in_doubt(hf: Holdfast) -> None:
    async with http_server() as server:
        settings = connected(server)
    text = call("{method: POST, connection: crm, path: /}")
    ended = await start(hf, text, settings=settings)

    assert ended.status == "failed"
    assert ended.error.code == "http_not_sent"


@pytest.mark.covers("CV-23")
@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("base_url: 'https://u:pw@bank.example'", "/base_url"),
        ("base_url: 'https://bank.example?api_key=1'", "/base_url"),
        ("headers: {Authorization: Bearer abc}", "/headers/Authorization"),
        ("password: hunter2", "/password"),
        ("note: 'sk-abcdefghijklmnopqrstuvwxyz0123456789'", "/note"),
        ("headers: {Authorization: {secret: bank}}", None),
        ("base_url: 'https://bank.example'", None),
    ],
)  # fmt: skip
def test_credential_in_the_connections_of_a_document_is_refused(given: str, path: str | None) -> None:
    head = f"config: {{connections: {{bank: {{kind: http, {given}}}}}}}"
    text = flow_text("{id: a, type: start}\n{id: z, type: end}", "a -> z", head)
    found = [(each.rule, each.path) for each in problems(text)]
    assert found == ([] if path is None else [("secret-literal", f"/config/connections/bank{path}")])
