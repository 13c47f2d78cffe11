"""Sequences of requests by several people of two tenants, made from the route table: each call uses what the
calls before it created. No sequence leads to a 5xx, to what is another tenant's, to a second decision, or to
an audit that does not verify.

With all tests a few short sequences; in the soak many long ones.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final
from urllib.parse import quote

import httpx2
import msgspec
import msgspec.inspect as shapes
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from holdfast import Holdfast, Worker
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.rights import Access
from holdfast.api.auth.tokens import ApiTokens
from holdfast.api.problems import MEDIA
from holdfast.api.routes.all import THEMES
from holdfast.api.routing import Route
from tests.api.flows import both, refund
from tests.api.test_matrix import filled, name_of
from tests.deadlines import HANG

FEW: Final = settings(
    max_examples=6, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
MANY: Final = settings(FEW, max_examples=400, stateful_step_count=120)

# Streams do not end; those who sign in or out change who asks.
ROUTES: Final = [
    route
    for theme in THEMES
    for route in theme.found
    if "stream" not in route.path and not route.path.endswith("/events") and "/session" not in route.path
]
CHANGES: Final = [route for route in ROUTES if route.method != "GET"]
PEOPLE: Final = {
    "ada": CredentialGrant(subject="user:ada", tenant="acme", roles=("admin",)),
    "ann": CredentialGrant(subject="user:ann", tenant="acme", roles=("approver", "operator")),
    "vic": CredentialGrant(subject="user:vic", tenant="acme", roles=("viewer",)),
    "bea": CredentialGrant(subject="user:bea", tenant="bolt", roles=("admin",)),
    "nobody": None,
}
MARKS: Final = {"acme": "only-acme-knows", "bolt": "only-bolt-knows"}
WORDS: Final = (
    "", "a", "approve", "reject", "yes", "no", "refund", "both", "user:ann", "user:bea", "group:x", "latest",
    "0", "1h", "2099-01-01T00:00:00Z", "\0", "\u202e", "x" * 300, "{{a}}", "../x", "[A] yes",
)  # fmt: skip


# Numbers and not ids: what is drawn must not depend on what was answered.
earlier = st.integers(0, 40).map(lambda number: f"@{number}")
words = st.one_of(earlier, earlier, earlier, st.sampled_from(WORDS))
people = st.sampled_from(["ada", "ada", "ann", "ann", "bea", "vic", "nobody"])


class Api(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.ids: dict[str, list[str]] = {"acme": [], "bolt": []}
        self.holds: list[str] = []
        self.decided: dict[str, Any] = {}
        self.run(self._open())

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    async def _open(self) -> None:
        self.hf = Holdfast("memory:")
        await self.hf.open()
        limits = ApiSettings(pace=0, anonymous_pace=0)
        app = build(self.hf, Authenticator(self.hf), limits, THEMES)
        transport = httpx2.ASGITransport(app=app)
        self.client = httpx2.AsyncClient(transport=transport, base_url="http://localhost", timeout=HANG)
        tokens = ApiTokens(await self.hf.open())
        self.headers: dict[str, dict[str, str]] = {"nobody": {}}
        for name, grant in PEOPLE.items():
            if grant is not None:
                text = (await tokens.create(grant, by="user:test"))[1]
                self.headers[name] = {"Authorization": f"Bearer {text}"}
        self.worker = Worker(refund(), both(), on=self.hf)
        await self.worker.__aenter__()

    def teardown(self) -> None:
        self.run(self._close())
        self.loop.close()

    async def _close(self) -> None:
        await self.client.aclose()
        await self.worker.__aexit__(None, None, None)
        await self.hf.close()

    # ------------------------------------------------------------------ calls that lead somewhere
    @initialize()
    def begin(self) -> None:
        """Open questions in both tenants, so that the first calls find something."""
        for who, flow in (("ada", "refund"), ("ann", "both"), ("bea", "refund")):
            self.start(who, flow)
            self.look(who)

    @rule(who=st.sampled_from(["ada", "ann", "bea"]))
    def look(self, who: str) -> None:
        self.run(self._call(who, self._route("list_holds"), {}, None, {"view": "all"}))

    @rule(who=st.sampled_from(["ada", "ann", "bea"]), flow=st.sampled_from(["refund", "both"]))
    def start(self, who: str, flow: str) -> None:
        given = {"order": MARKS[PEOPLE[who].tenant], "amount": 7} if flow == "refund" else {}
        body = {"flow": flow, "input": given, "wait": 5, "thread": "t"}
        self.run(self._call(who, self._route("create_run"), {}, body))

    @rule(who=people, which=earlier, decision=st.sampled_from(["approve", "yes", "no"]))
    def decide(self, who: str, which: str, decision: str) -> None:
        """Any question of any tenant, open or decided."""
        hold = self.holds[int(which[1:]) % len(self.holds)]
        self.run(self._call(who, self._route("resolve_hold"), {"hold": hold}, {"decision": decision}))

    # ------------------------------------------------------------------ any call at all
    @rule(who=people, route=st.sampled_from(ROUTES), data=st.data())
    def ask(self, who: str, route: Route, data: st.DataObject) -> None:
        names = {each: data.draw(words) for each in route.params}
        body, query = None, {}
        if route.method != "GET" and route.body not in (None, bytes):
            body = data.draw(_values(shapes.type_info(route.body)))
        if route.query is not None and data.draw(st.booleans()):
            query = data.draw(_values(shapes.type_info(route.query)))
        self.run(self._call(who, route, names, body, query))

    # ------------------------------------------------------------------ what always holds
    async def _call(
        self,
        who: str,
        route: Route,
        names: dict[str, str],
        body: Any = None,
        query: dict[str, Any] | None = None,
    ) -> None:
        path = filled(route.path, **{each: quote(name, safe="") for each, name in names.items()})
        content = None if body is None else msgspec.json.encode(body)
        params = {each: _plain(value) for each, value in (query or {}).items() if value is not None}
        answer = await self.client.request(
            route.method, path, headers=self.headers[who], content=content, params=params
        )
        where = f"{who}: {name_of(route)} {names} {body} {query} -> {answer.status_code} {answer.text[:300]}"
        assert answer.status_code < 500 or answer.status_code == 501, where
        if answer.status_code >= 400:
            assert answer.headers["content-type"].startswith(MEDIA), where
            assert {"code", "detail", "status"} <= answer.json().keys(), where
        grant = PEOPLE[who]
        if (
            grant is None
            and isinstance(route.needs, (str,))
            and route.needs not in (Access.public, Access.link)
        ):
            # 404: with this name it is no path at all.
            assert answer.status_code in (401, 404, 405), where
        if grant is not None and who == "vic" and route in CHANGES and "verify" not in route.path:
            # What is a person's own, a viewer may change too.
            allowed = any(part in route.path for part in ("presence", "validate", "/v1/me/"))
            assert answer.status_code >= 400 or allowed, where
        self._note(grant, answer, where)

    def _known(self, value: Any) -> Any:
        """With the ids of earlier answers in place of their numbers."""
        if isinstance(value, str) and value.startswith("@"):
            ids = [*self.ids["acme"], *self.ids["bolt"]]
            return ids[int(value[1:]) % len(ids)] if ids else "nothing"
        if isinstance(value, dict):
            return {self._known(name): self._known(inner) for name, inner in value.items()}
        return [self._known(inner) for inner in value] if isinstance(value, list) else value

    def _note(self, grant: CredentialGrant | None, answer: httpx2.Response, where: str) -> None:
        tenant = grant.tenant if grant is not None else ""
        for other, mark in MARKS.items():
            assert tenant == other or mark not in answer.text, where
        if (
            answer.status_code >= 300
            or tenant not in self.ids
            or "json" not in answer.headers.get("content-type", "")
        ):
            return
        for found in _objects(answer.json()):
            own = found.get("id")
            if isinstance(own, str) and len(own) == 36:
                elsewhere = [each for each in self.ids if each != tenant and own in self.ids[each]]
                assert not elsewhere, where
                if own not in self.ids[tenant]:
                    self.ids[tenant].append(own)
                if "request_hash" in found and own not in self.holds:
                    self.holds.append(own)
            self._note_decision(found, where)

    def _note_decision(self, found: dict[str, Any], where: str) -> None:
        """A decision is made once: by whom and what never changes."""
        if found.get("status") == "resolved" and found.get("resolution") and "request_hash" in found:
            made = (found["resolution"], found["resolved_by"], found["resolved_at"])
            assert self.decided.setdefault(found["id"], made) == made, where

    @rule(who=st.sampled_from(["ada", "bea"]))
    def verify(self, who: str) -> None:
        answer = self.run(self.client.post("/v1/audit/verify", headers=self.headers[who], json={}))
        assert answer.json()["whole"] is True, answer.text

    def _route(self, name: str) -> Route:
        return next(route for route in ROUTES if route.name == name)


def _objects(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(each for inner in value.values() for each in _objects(inner))]
    return [each for inner in value for each in _objects(inner)] if isinstance(value, list) else []


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, list)) else json.dumps(value)


def _values(kind: shapes.Type) -> st.SearchStrategy[Any]:
    """Values that mostly fit: what does not fit is refused before anything happens."""
    if isinstance(kind, shapes.Metadata):
        return _values(kind.type)
    if isinstance(kind, shapes.StructType):
        must = {each.encode_name: _values(each.type) for each in kind.fields if each.required}
        may = {each.encode_name: _values(each.type) for each in kind.fields if not each.required}
        return st.fixed_dictionaries(must, optional=may)
    if isinstance(kind, shapes.UnionType):
        return st.one_of(*(_values(each) for each in kind.types))
    if isinstance(kind, shapes.CollectionType):
        return st.lists(_values(kind.item_type), max_size=2)
    if isinstance(kind, shapes.DictType):
        return st.dictionaries(words, _values(kind.value_type), max_size=2)
    if isinstance(kind, shapes.LiteralType):
        return st.sampled_from(kind.values)
    if isinstance(kind, shapes.EnumType):
        return st.sampled_from([each.value for each in kind.cls])
    numbers = st.sampled_from([0, 1, 2, -1, 2**31, 2**63])
    plain: dict[type, st.SearchStrategy[Any]] = {
        shapes.IntType: numbers,
        shapes.FloatType: st.sampled_from([0.0, 0.1, -1.0]),
        shapes.BoolType: st.booleans(),
        shapes.NoneType: st.none(),
        shapes.DateTimeType: st.just("2099-01-01T00:00:00Z"),
    }
    return plain.get(type(kind), words)


@pytest.mark.covers("SAFE-EDGE-13")
def test_short_sequences_of_requests_keep_the_rules() -> None:
    run_state_machine_as_test(Api, settings=FEW)


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.covers("SAFE-EDGE-13")
def test_long_sequences_of_requests_keep_the_rules() -> None:
    run_state_machine_as_test(Api, settings=MANY)
