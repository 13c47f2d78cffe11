"""A name that is given twice where one is meant is refused: keys of JSON, parameters, fields of forms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import msgspec.inspect as shapes
import pytest
from msgspec import Raw

import holdfast
from holdfast import Flow, Holdfast
from holdfast.api.inbound.slack import payload_of
from holdfast.api.inbound.webhooks import event_in
from holdfast.api.live.messages import read_message
from holdfast.api.pages.all import PAGES
from holdfast.api.problems import HttpError
from holdfast.api.routes.all import THEMES
from holdfast.api.routing import Route
from holdfast.api.strict_json import decode_strictly, require_unique_keys
from holdfast.integrations.mcp.http import routes as mcp_routes
from tests.api.conftest import Server, serving
from tests.api.test_matrix import filled, name_of
from tests.api.test_unknown_fields import least, sample

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-14")]

ROUTES: Final = [route for theme in THEMES for route in theme.found]
SOURCE: Final = Path(holdfast.__file__).parent
TWICE: Final = Raw(b'{"k":1,"k":2}')


def _texts(route: Route) -> Iterator[tuple[str, bytes]]:
    """(the repeated key, a body that is valid but for it)"""
    body: Any = shapes.type_info(route.body)
    if isinstance(body, shapes.DictType):
        yield "k", bytes(TWICE)
        return
    for field in body.fields:
        others = {name: value for name, value in least(body).items() if name != field.encode_name}
        pair = msgspec.json.encode({field.encode_name: sample(field.type)})[1:-1]
        rest = msgspec.json.encode(others)[1:-1]
        yield field.encode_name, b"{%s}" % b",".join(part for part in (pair, rest, pair) if part)
        for value in _open_values(field.type):
            yield "k", msgspec.json.encode({**others, field.encode_name: value})


def _open_values(kind: shapes.Type) -> Iterator[Any]:
    """Values with a repeated key, where a field takes any key."""
    if isinstance(kind, shapes.AnyType) or (
        isinstance(kind, shapes.DictType) and isinstance(kind.value_type, (shapes.AnyType, shapes.IntType))
    ):
        yield TWICE
    if isinstance(kind, shapes.AnyType):
        yield [{"deep": [TWICE]}]
    elif isinstance(kind, shapes.DictType):
        yield from ({"one": value} for value in _open_values(kind.value_type))
    elif isinstance(kind, shapes.Metadata):
        yield from _open_values(kind.type)
    elif isinstance(kind, shapes.UnionType):
        for inner in kind.types:
            yield from _open_values(inner)
    elif isinstance(kind, shapes.CollectionType):
        yield from ([value] for value in _open_values(kind.item_type))


async def test_every_operation_refuses_a_key_that_is_repeated(server: Server) -> None:
    wrong: list[str] = []
    nested = 0
    for route in ROUTES:
        if route.body in (None, bytes):
            continue
        params = {} if route.query is None else least(shapes.type_info(route.query))
        for key, text in _texts(route):
            nested += key == "k"
            answer = await server.client.request(
                route.method, filled(route.path), params=params, content=text
            )
            if answer.status_code != 422 or f"{key!r} more than once" not in answer.json()["detail"]:
                wrong.append(f"{name_of(route)} {text!r}: {answer.status_code} {answer.text[:200]}")
    assert nested >= 20
    assert not wrong, "\n".join(wrong)


async def test_every_operation_refuses_a_parameter_that_is_repeated(server: Server) -> None:
    wrong: list[str] = []
    lists = 0
    for route in [*ROUTES, *PAGES]:
        known: Any = () if route.query is None else shapes.type_info(route.query)
        fields = {each.encode_name: each.type for each in known.fields} if known else {}
        for name, kind in {**fields, "surplus": None}.items():
            many = isinstance(kind, shapes.CollectionType)
            lists += many
            answer = await server.client.request(
                route.method, filled(route.path), params=[(name, "1"), (name, "1")],
                headers={"Accept": "text/html", "Content-Type": "application/x-www-form-urlencoded"}
                if route in PAGES else {},
            )  # fmt: skip
            refused = answer.status_code == 422 and f"{name}" in answer.text and "once" in answer.text
            if refused == many:
                wrong.append(f"{name_of(route)} {name}: {answer.status_code} {answer.text[:300]}")
    assert lists >= 3
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "fields",
    ["input=%7B%7D&input=%7B%7D", "act=a&input=%7B%7D&act=b", "csrf_token=a&input=%7B%7D&csrf_token=b"],
)
async def test_form_of_a_page_is_refused_with_a_field_twice(server: Server, fields: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await server.client.post("/flows/any", content=fields, headers=headers)
    assert answer.status_code == 422
    assert "more than once" in answer.text


async def test_input_on_a_page_is_refused_with_a_key_twice(server: Server, greeting: Flow) -> None:
    server.hf.register(greeting.program())
    await (await server.hf.service()).store_flow(greeting.program())
    answer = await server.client.post("/flows/greeting", data={"input": '{"name": "a", "name": "b"}'})
    assert answer.status_code == 422
    assert "more than once" in answer.text


def test_messages_of_sockets_webhooks_and_slack_are_refused_with_a_key_twice() -> None:
    with pytest.raises(HttpError, match="'run' more than once"):
        read_message('{"type":"cancel","run":"a","run":"b"}')
    with pytest.raises(HttpError, match="'decision' more than once"):
        event_in(b'{"data":{"decision":"approve","decision":"reject"}}')
    with pytest.raises(HttpError, match="'id' more than once"):
        payload_of(b'payload={"user":{"id":"A","id":"B"}}')


async def test_message_of_an_agent_is_refused_with_a_key_twice() -> None:
    async with Holdfast("memory:") as hf, serving(hf, themes=[*THEMES, mcp_routes]) as server:
        text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}'
        answer = await server.json("POST", "/mcp", 422, content=text)
        assert answer["errors"][0]["field"] == "params.name"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a":1,"\\u0061":2}', "a"),
        ('{"a":{"b":[0,{"c":1,"d":2,"c":1}]}}', "a.b[1].c"),
        ('[[{"":1,"":2}]]', "[0][0]."),
        ('{"a":' + "1" * 5000 + ',"a":1}', "a"),
    ],
)
def test_refusal_names_the_place_of_the_key(text: str, place: str) -> None:
    with pytest.raises(HttpError) as found:
        require_unique_keys(text)
    errors: Any = found.value.facts["errors"]
    assert errors[0]["field"] == place


def test_text_with_each_key_once_is_decoded() -> None:
    assert decode_strictly(b'{"a":{"k":1},"b":{"k":2},"c":[{"k":3},{"k":3}]}', Any)["c"] == [{"k": 3}] * 2
    for broken in (b'{"a":', b'{"a":"\xff"}', b"\xef\xbb\xbf{}"):
        with pytest.raises(HttpError, match="not JSON"):
            decode_strictly(broken, Any)


OWN: Final = {
    # What the server stored or made itself.
    "api/ag_ui/stream.py", "api/auth/sessions.py", "api/auth/tokens.py", "api/live/websocket.py",
    "api/pages/hold.py",
    "api/pages/hold_actions.py", "api/pages/tool_arguments.py", "api/presence.py", "api/projector.py",
    "api/routes/flows.py", "api/routes/hold_settings.py", "api/routes/holds.py", "api/routes/notices.py",
    "api/routes/pipelines.py", "api/routes/preferences.py",
    "api/saved_views.py", "api/schemas/audit.py", "api/schemas/holds.py",
    "api/schemas/runs.py", "integrations/mcp/question_view.py", "integrations/mcp/server.py",
    "integrations/mcp/tool_registry.py",
    # What it gave to a browser, and gets back: cursors, cookies, references to attached files.
    "api/auth/oidc/flow.py", "api/pages/decision_form.py", "api/pages/kept_form.py",
    # Answers of the provider of identities, and of the server that a bridge talks to.
    "api/auth/oidc/provider.py", "integrations/mcp/bridge.py", "integrations/mcp/pending_requests.py",
    # Checks the keys of what it decodes.
    "api/pages/form_fields.py", "api/strict_json.py",
    # Its own buttons, in a message that is checked; and its own table of chat users.
    "api/inbound/slack.py",
    # A second look at a body that was decoded strictly.
    "api/request_body.py",
}  # fmt: skip


def test_every_other_module_decodes_what_callers_send_strictly() -> None:
    found: set[str] = set()
    for folder in ("api", "integrations/mcp"):
        for file in (SOURCE / folder).rglob("*.py"):
            if re.search(r"json\.decode\(|json\.loads\(|JSONDecoder|\.json\(\)", file.read_text()):
                found.add(file.relative_to(SOURCE).as_posix())
    assert found == OWN


def test_forms_are_read_in_one_place() -> None:
    found = {
        file.relative_to(SOURCE).as_posix()
        for file in (SOURCE / "api").rglob("*.py")
        if re.search(r"request\.form\(", re.sub(r"`[^`]*`", "", file.read_text()))
    }
    assert found == {"api/request_body.py"}
