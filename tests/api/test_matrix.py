"""Who may what: every route that a server has, with every kind of credential.

Made from the routes themselves: a new one is in it, and one without a rule fails.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import pytest
from starlette.routing import Mount, WebSocketRoute
from starlette.routing import Route as Place

from holdfast import Flow, Holdfast, Worker
from holdfast.api.aliases import ALIASES
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.rights import ROLES, Access, Right, with_implied
from holdfast.api.live.websocket import PATHS as SOCKETS
from holdfast.api.pages.all import PAGES
from holdfast.api.pages.negotiation import TAG
from holdfast.api.route_index import RouteIndex
from holdfast.api.routes.all import THEMES
from holdfast.api.routing import Route
from tests.api.conftest import Server, serving
from tests.api.documents import REFUND, deploy
from tests.api.sign_in import bearer, token
from tests.deadlines import HANG

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-PROOF-02")]

ROUTES: Final = [*(route for theme in THEMES for route in theme.found), *PAGES]
SAFE: Final = ("GET", "HEAD")
OURS: Final = {"/openapi.json"}
"""Places that are no route: the description of the others."""

PUBLIC: Final = {
    "POST /v1/session", "DELETE /v1/session", "GET /sign-in", "POST /sign-in", "POST /sign-out",
    "GET /sign-in/oidc", "GET /sign-in/oidc/callback", "GET /inbox", "GET /inbox/{hold}",
    "GET /inbox/{view}/{hold}", "GET /links", "POST /links", "GET /static/{name}",
    "GET /client/manifest.json", "GET /client/{name}",
    "GET /client/{digest}/{name}",
    # Made from the code; the same for everybody.
    "GET /v1/schemas/flow/{version}",
    # Those who send here sign what they send.
    "POST /v1/inbound/mail/{way}", "POST /v1/inbound/slack/{way}", "POST /v1/inbound/webhooks/{way}",
    "POST /sign-in/oidc/logout",
}  # fmt: skip
"""What anybody may ask without a credential. Whoever adds to it has thought about it."""
LINKED: Final = {
    "GET /l/{token}", "GET /link/{hold}", "POST /link/{hold}",
    # The token in the path is the credential.
    "POST /v1/callbacks/{token}", "POST /v1/callbacks/{token}/heartbeat",
}  # fmt: skip
SIGNED_IN: Final = {
    "GET /v1/session", "GET /", "GET /v1/me/preferences", "PUT /v1/me/preferences", "POST /v1/session/tenant",
}  # fmt: skip
READING: Final = {
    "POST /v1/audit/verify", "PUT /v1/holds/{hold}/presence", "DELETE /v1/holds/{hold}/presence",
    "POST /v1/flows/{flow:path}/diff", "POST /v1/flows/arrange", "POST /v1/flows/check",
    "POST /v1/holds/{hold}/consequences",
    "POST /v1/runs/{run}/preview",
}  # fmt: skip
"""Changes that a right to read is enough for: they change nothing that is kept."""
SIGNS_IN: Final = {"POST /v1/session", "POST /sign-in", "GET /sign-in/oidc/callback"}
"""Their body is a credential: they answer 401 to one that is not good."""


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


def first_names(needs: Access) -> set[str]:
    return {name_of(route) for route in ROUTES if route.needs is needs}


def test_every_place_of_the_server_is_a_route_with_a_rule() -> None:
    hf = Holdfast("memory:")
    app = build(hf, Authenticator(hf), ApiSettings(), THEMES)
    declared = {(route.method, route.path) for route in ROUTES}
    for place in _places(app.routes):
        if isinstance(place, WebSocketRoute):
            assert place.path in SOCKETS, place.path
        elif place.path not in OURS:
            for method in (place.methods or set()) - {"HEAD"}:
                assert (method, place.path) in declared, f"{method} {place.path} has no rule"
    assert all(isinstance(route.needs, (Right, Access)) for route in ROUTES)


def _places(routes: Any) -> Iterator[Place | WebSocketRoute]:
    for each in routes:
        if isinstance(each, (Mount, RouteIndex)):
            yield from _places(each.routes)
        else:
            assert isinstance(each, (Place, WebSocketRoute)), f"{each} is no place that is known"
            yield each


def test_what_needs_no_right_was_thought_about() -> None:
    assert first_names(Access.public) <= PUBLIC
    assert first_names(Access.link) <= LINKED
    assert first_names(Access.signed_in) <= SIGNED_IN


def test_no_change_is_made_with_a_right_to_read() -> None:
    reading = {
        name_of(route)
        for route in ROUTES
        if route.method not in SAFE and isinstance(route.needs, Right) and route.needs.endswith(":read")
    }
    assert reading <= READING


def test_who_may_decide_is_changed_by_administrators_only() -> None:
    """Else whoever arranges holds could make themselves the one who decides them."""
    theirs = ("/v1/directory/", "/v1/policies/{", "/v1/inbound/slack/{way}/people", "/v1/tokens")
    own = "/v1/directory/me/"  # people say themselves when they are away
    changing = [
        route
        for route in ROUTES
        if route.method not in SAFE and route.path.startswith(theirs) and not route.path.startswith(own)
    ]
    assert len(changing) >= 10
    assert {route.needs for route in changing} == {Right.admin}


# ---------------------------------------------------------------------- every route, every credential


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Server]:
    settings = ApiSettings(pace=0, anonymous_pace=0)
    async with Holdfast(f"sqlite:{tmp_path / 'm.db'}") as hf, serving(hf, settings) as found:
        yield found


async def said_to(client: httpx2.AsyncClient, route: Route, who: dict[str, str]) -> tuple[int, str]:
    """(status, code of the problem or where it leads); streams are left as soon as they begin."""
    path = filled(route.path)
    headers = {**who, "Accept": "text/html" if route.tag == TAG else "application/json"}
    body: dict[str, Any] = {}
    if route.method not in SAFE:
        body = {"data": {"act": "none"}} if route.tag == TAG else {"json": {}}
    async with client.stream(route.method, path, headers=headers, **body) as answer:
        if "event-stream" in answer.headers.get("content-type", ""):
            return answer.status_code, ""
        await answer.aread()
        if answer.status_code in (401, 403) and "json" in answer.headers["content-type"]:
            return answer.status_code, answer.json()["code"]
        return answer.status_code, answer.headers.get("location", "")


def other_paths(route: Route) -> list[str]:
    if route.tag == TAG:
        return []
    return [
        f"{alias.prefix}{route.path[len(alias.target) :]}"
        for alias in ALIASES
        if route.path == alias.target or route.path.startswith(f"{alias.target}/")
    ]


def filled(path: str, **known: str) -> str:
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda found: known.get(found[1], "nothing-of-that-name"), path)


async def test_every_route_keeps_to_its_rule_for_every_credential(hall: Server) -> None:
    """Beside strangers: one that has the right and nothing else, and one that has everything else."""
    store = await hall.hf.open()
    expired = bearer(await token(hall, "user:a", "admin", expires_at=store.now() - 1))
    unknown = bearer(f"hf_{'0' * 12}_{'x' * 43}")
    nothing, service = bearer(await token(hall)), bearer(await token(hall, "service:bot"))
    only = {right: bearer(await token(hall, "service:bot", rights=(right,))) for right in Right}
    rest = {right: bearer(await token(hall, "user:b", rights=_without(right))) for right in Right}
    wrong: list[str] = []
    async with httpx2.AsyncClient(base_url=hall.serving.address, timeout=HANG) as client:

        async def look(route: Route, kind: str, headers: dict[str, str], fits: Callable[..., bool]) -> None:
            said = await said_to(client, route, headers)
            if not fits(route, *said):
                wrong.append(f"{name_of(route)} with {kind}: {said}")

        for at, route in enumerate(ROUTES):
            await look(route, "no credential", {}, _fits_nobody)
            for path in other_paths(route):
                other = msgspec.structs.replace(route, path=path)
                await look(other, "no credential", {}, _fits_nobody)
            await look(route, "a token that is not good", (expired, unknown)[at % 2], _fits_bad)
            if isinstance(route.needs, Right):
                await look(route, "every other right", rest[route.needs], _fits_refused)
                await look(route, "this right alone", only[route.needs], _fits_allowed)
            else:
                await look(route, "no right", (nothing, service)[at % 2], _fits_allowed)
    assert not wrong, "\n".join(wrong)


def _without(right: Right) -> tuple[Right, ...]:
    return tuple(each for each in Right if right not in with_implied(frozenset({each})))


@pytest.mark.covers("SERVER-AUTH-05")
async def test_roles_have_the_rights_that_they_say_and_no_others(hall: Server) -> None:
    one = {route.needs: route for route in ROUTES if route.tag != TAG and isinstance(route.needs, Right)}
    async with httpx2.AsyncClient(base_url=hall.serving.address, timeout=HANG) as client:
        for role in ROLES:
            headers = bearer(await token(hall, f"user:{role}", role))
            for right, route in one.items():
                has = right in CredentialGrant(subject="user:a", roles=(role,)).all_rights
                fits = _fits_allowed if has else _fits_refused
                said = await said_to(client, route, headers)
                assert fits(route, *said), (role, name_of(route), said)


def _fits_nobody(route: Route, status: int, said: str) -> bool:
    if name_of(route) in SIGNS_IN:
        return status in (401, 404, 422)
    if route.needs in (Access.public, Access.link):
        return (status, said) != (401, "unauthenticated") and status < 500
    if route.tag == TAG:
        return status == 303 and said.startswith("/sign-in")
    return (status, said) == (401, "unauthenticated")


def _fits_bad(route: Route, status: int, said: str) -> bool:
    """Refused even where nobody needs a credential: whoever shows one means it."""
    if route.tag == TAG:
        return status == 303 and said.startswith("/sign-in")
    return (status, said) == (401, "unauthenticated")


def _fits_refused(route: Route, status: int, said: str) -> bool:
    return status == 403 and (route.tag == TAG or said == "forbidden")


def _fits_allowed(route: Route, status: int, said: str) -> bool:
    """It gets as far as the handler, which finds nothing of that name."""
    if name_of(route) in SIGNS_IN or route.needs is Access.link:
        return status < 500
    return status < 500 and status != 401 and (status, said) != (403, "forbidden")


# ---------------------------------------------------------------------- another tenant

MARK: Final = "only-acme-knows"
TOLD: Final[dict[str, Any]] = {
    "decision": "approve", "resolution": "approve", "reason": "because", "comment": "so", "text": "so",
    "content": "approve", "to": "user:eve", "assignee": "user:eve", "new_assignee": "user:eve",
    "until": "2099-01-01T00:00:00Z", "expires_at": "2099-01-01T00:00:00Z", "question": "why?", "answer": "so",
    "action": "cancel",
}  # fmt: skip
"""Of these each body takes what it knows: what is refused is refused for the tenant, not for the body."""


def _sent(route: Route, ids: dict[str, str]) -> dict[str, Any]:
    if route.method in SAFE:
        asked = (
            {} if route.query is None else {each.encode_name for each in msgspec.structs.fields(route.query)}
        )
        return {"params": {"to": ids["run"]}} if "to" in asked else {}
    if route.tag == TAG:
        return {"data": TOLD}
    if route.body is None:
        return {}
    if not hasattr(route.body, "__struct_fields__"):
        return {"files": {"file": ("a.txt", b"a")}} if route.body is bytes else {"json": TOLD}
    if route.name == "save_graph_checkpoint":
        return {"json": _graph_checkpoint(ids)}
    known = {field.encode_name for field in msgspec.structs.fields(route.body)}
    return {"json": {name: value for name, value in TOLD.items() if name in known}}


def _graph_checkpoint(ids: dict[str, str]) -> dict[str, Any]:
    state = {"input": {}, "scratch": {}, "artifacts": {}, "diagnostics": {}}
    return {
        "id": ids["checkpoint"], "graphId": "g", "runId": ids["run"], "nodeId": "", "timestamp": 0,
        "state": state, "nodeResults": {}, "visitedNodes": [], "pendingEdges": [],
    }  # fmt: skip


@pytest.mark.covers("SERVER-AUTH-04", "SERVER-BAD-02")
async def test_another_tenant_finds_and_changes_nothing(hall: Server) -> None:
    ids, before = await _acme(hall)
    eve = bearer(await token(hall, "user:eve", "admin", tenant="other", rights=("holds:override",)))
    wrong: list[str] = []
    async with httpx2.AsyncClient(base_url=hall.serving.address, timeout=HANG) as client:
        for route in ROUTES:
            about = [name for name in ids if f"{{{name}" in route.path]
            if route.needs in (Access.public, Access.link):
                continue
            if route.path.endswith("/stream") and not about:
                continue  # endless; its own tests look at what it tells
            path = filled(route.path, **ids)
            accept = {"Accept": "text/html"} if route.tag == TAG else {}
            answer = await client.request(route.method, path, headers=eve | accept, **_sent(route, ids))
            text = answer.text.replace(path, "")
            if MARK in text or (_is_private(about) and answer.status_code != 404):
                wrong.append(f"{name_of(route)}: {answer.status_code} {text[:200]}")
    assert not wrong, "\n".join(wrong)
    assert await _state(hall, ids) == before


async def test_another_tenant_finds_no_document_that_a_worker_in_the_server_has_loaded(hall: Server) -> None:
    text = REFUND.replace("refund", "secretive").replace("Refund {{amount}}?", MARK)
    eve = bearer(await token(hall, "user:eve", "admin", tenant="other"))
    async with Worker(on=hall.hf), httpx2.AsyncClient(base_url=hall.serving.address, timeout=HANG) as client:
        version = (await deploy(hall, text))["version"]
        start = {"flow": "secretive", "input": {"amount": 1}, "wait": 60}
        assert (await hall.json("POST", "/v1/runs", 201, json=start))["status"] == "pending_input"
        assert (await hall.json("GET", "/v1/flows/secretive/check"))["version"] == version
        wrong: list[str] = []
        for route in ROUTES:
            if "{flow" not in route.path or route.needs in (Access.public, Access.link):
                continue
            path = filled(route.path, flow="secretive", version=version)
            accept = {"Accept": "text/html"} if route.tag == TAG else {}
            answer = await client.request(
                route.method, path, headers=eve | accept, **_sent(route, {"run": ""})
            )
            said = answer.text.replace(path, "").replace(f"'{version}'", "")
            if MARK in said or version in said or (route.method == "GET" and answer.status_code != 404):
                wrong.append(f"{name_of(route)}: {answer.status_code} {said[:200]}")
    assert not wrong, "\n".join(wrong)


def _is_private(about: list[str]) -> bool:
    """Threads have names, which two tenants may both use; a list of what is there is then empty."""
    return bool({"run", "hold", "checkpoint", "token"} & set(about))


async def _acme(hall: Server) -> tuple[dict[str, str], Any]:
    """A run of another tenant that waits for somebody, with everything that has an id."""
    flow = Flow("secretive", effect="pure")
    flow.hold("approve", prompt=f"{MARK}?", options=["approve", "reject"], assignee="user:dana")
    done = await flow.run({"word": MARK}, on=hall.hf, tenant="acme", thread="t", started_by="user:dana")
    (hold,) = done.holds
    text = await token(hall, "user:dana", "viewer", tenant="acme")
    ids = {
        "run": done.run_id,
        "hold": hold.id,
        "checkpoint": hold.id,
        "thread": "t",
        "token": text.split("_")[1],
    }
    return ids, await _state(hall, ids)


async def _state(hall: Server, ids: dict[str, str]) -> Any:
    store = await hall.hf.open()
    return await store.hold(ids["hold"]), await store.get_run(ids["run"]), await store.audit_head("acme")
