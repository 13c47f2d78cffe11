"""Moments at the ends of time: every parameter and field that takes one refuses what no clock can show."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.api.openapi import document
from holdfast.api.routes.all import THEMES
from tests.api.people import Hall, hall_of

pytestmark = pytest.mark.anyio

OUTSIDE: Final = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.5-14:00", "0001-01-01T00:00:00+00:01")
EDGES: Final = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z")

SPEC: Final[Any] = msgspec.to_builtins(document([route for theme in THEMES for route in theme.found]))


def moments(
    schema: Any, path: tuple[str, ...] = (), within: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The paths of moments in a schema."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if name not in within:
            yield from moments(SPEC["components"]["schemas"][name], path, (*within, name))
    if schema.get("format") == "date-time":
        yield path
    for word in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(word, ()):
            yield from moments(each, path, within)
    for name, each in schema.get("properties", {}).items():
        yield from moments(each, (*path, name), within)


def described() -> tuple[set[tuple[str, str]], set[tuple[str, str, tuple[str, ...]]]]:
    """(path, parameter) of all that take a moment, and (method, path, field) of bodies."""
    parameters: set[tuple[str, str]] = set()
    bodies: set[tuple[str, str, tuple[str, ...]]] = set()
    for path, operations in SPEC["paths"].items():
        for method, operation in operations.items():
            for each in operation.get("parameters", ()):
                if any(True for _ in moments(each.get("schema", {}))):
                    parameters.add((path, each["name"]))
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            bodies |= {(method.upper(), path, field) for field in moments(content.get("schema", {}))}
    return parameters, bodies


PARAMETERS, BODIES = described()
TO_PUT: Final = {"substitute": "user:sam@acme"}
VIEW: Final = {"title": "mine"}
GIVEN: Final[dict[str, dict[str, Any]]] = {
    "/v1/checkpoints/{checkpoint}/reassign": {"assignee": "user:sam@acme"},
    "/v1/holds/{hold}/reassign": {"assignee": "user:sam@acme"},
    "/v1/holds/{hold}/extend": {},
    "/v1/holds/{hold}/snooze": {},
    "/v1/directory/me/away": TO_PUT,
    "/v1/directory/people/{person}/away": TO_PUT,
    "/v1/policies/simulate": {},
    "/v1/views": VIEW,
    "/v1/views/{view}": VIEW,
}
"""What else the body needs, so that it is refused for the moment."""
DAILY: Final = {"every": "1d"}
MORE: Final = [
    ("POST", "/v1/tokens", ("expires_at",), {"subject": "user:x@acme", "roles": ["viewer"]}),
    *(
        ("PUT", "/v1/schedules/nightly", (name,), {"flow": "refund", **timed, "zone": zone})
        for name, timed in (("at", {}), ("anchor", DAILY), ("start", DAILY), ("end", DAILY))
        for zone in ("UTC", "America/New_York", "Asia/Tokyo")
    ),
]
"""Moments that are texts, which may leave out their zone."""


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf, hall_of(hf) as found:
        yield found


@pytest.mark.parametrize("parameter", sorted(PARAMETERS), ids=" ".join)
async def test_parameter_refuses_a_moment_outside_of_time(hall: Hall, parameter: tuple[str, str]) -> None:
    path, name = parameter
    at = path.replace("{metric}", "runs")
    for moment in OUTSIDE:
        answer = await hall.send("ada", "GET", f"{at}?{name}={quote(moment)}")
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), (moment, answer.text)
        assert name in answer.json()["detail"]
    for moment in EDGES:
        answer = await hall.send("ada", "GET", f"{at}?{name}={quote(moment)}")
        assert answer.status_code in (200, 422), (moment, answer.text)


def with_moment(field: tuple[str, ...], moment: str, body: dict[str, Any]) -> dict[str, Any]:
    first, *rest = field
    return {**body, first: with_moment(tuple(rest), moment, {}) if rest else moment}


CASES: Final = [
    *((method, path, field, GIVEN.get(path)) for method, path, field in sorted(BODIES)),
    *MORE,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join((*case[:2], *case[2], str(case[3]))))
async def test_body_refuses_a_moment_outside_of_time(hall: Hall, case: tuple[Any, ...]) -> None:
    method, path, field, body = case
    assert body is not None, f"say in GIVEN what else the body of {path} needs"
    hold = await hall.asks()
    await hall.ask("ada", "PUT", "/v1/directory/people/user:ada@acme", json={})
    view = (await hall.ask("ada", "POST", "/v1/views", status=201, json={**VIEW, "filters": {}}))["id"]
    at = path.replace("{hold}", hold).replace("{checkpoint}", hold)
    at = at.replace("{person}", "user:dana@acme").replace("{view}", view)
    for moment in OUTSIDE:
        answer = await hall.send("ada", method, at, json=with_moment(field, moment, body))
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), (moment, answer.text)
        assert "years" in answer.json()["detail"], answer.text
    for moment in EDGES:
        answer = await hall.send("ada", method, at, json=with_moment(field, moment, body))
        assert answer.status_code < 500, (moment, answer.text)
        seen = await hall.send("ada", "GET", f"/v1/holds/{hold}")
        assert seen.status_code == 200, (moment, seen.text)


@pytest.mark.parametrize("moment", OUTSIDE)
async def test_page_shows_a_form_with_a_moment_outside_of_time(hall: Hall, moment: str) -> None:
    field = {"type": "string", "format": "date-time", "default": moment}
    hold = await hall.asks(form={"type": "object", "properties": {"due": field}})
    page = await hall.send("ada", "GET", f"/holds/{hold}", headers={"Accept": "text/html"})
    assert page.status_code == 200, page.text
    assert f'value="{moment}"' in page.text.replace("&#43;", "+")
