"""A server with a directory, mailboxes and one administrator who has every right. It is called in this
process, over a store in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec

from holdfast import Flow, Holdfast, Person, Registrar
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.rights import Right
from holdfast.api.auth.tokens import ApiTokens
from holdfast.api.inbound.settings import parse_settings
from holdfast.api.pages.links import csrf_value
from holdfast.api.routes.all import THEMES
from holdfast.holds.notify.channel import ChannelScope, Delivery
from holdfast.holds.notify.notice import Notice
from holdfast.holds.notify.settings import NotifySettings
from holdfast.integrations.mcp.http import routes as agents
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Assignee

EVERY_RIGHT = tuple(Right)
SITE = "https://office.example"
MCP_ACCEPT = "application/json, text/event-stream"
SLACK_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
PEOPLE = ("ada", "dana", "sam", "kim", "lee")


class Mailboxes:
    """A channel that keeps what it is given, by address. An address comes from the store's directory."""

    name = "mail"
    personal = True
    scope = ChannelScope()

    def __init__(self) -> None:
        self.hf: Holdfast | None = None
        self.letters: list[Notice] = []

    async def addresses(self, to: Assignee, tenant: str) -> Sequence[str]:
        assert self.hf is not None
        directory = (await self.hf.holds()).ctx.directory
        if directory is None:
            return (to.value,)
        if to.type == "user":
            person = await directory.person(tenant, to.value)
            return () if person is None or not person.email else (person.email,)
        ask = directory.group if to.type == "group" else directory.role
        circle = await ask(tenant, to.value)
        people = [await directory.person(tenant, each) for each in (circle.members if circle else ())]
        return [each.email for each in people if each is not None and each.email]

    async def admins(self) -> Sequence[str]:
        return ()

    async def send(self, notice: Notice) -> Delivery:
        self.letters.append(notice)
        return Delivery(accepted=True)

    def links(self, address: str) -> list[str]:
        """The tokens of the links that were sent to this address, oldest first."""
        found = [each.link for each in self.letters if each.to == address]
        return [link.rpartition("/l/")[2] for link in found if "/l/" in link]


class Harness:
    def __init__(
        self,
        hf: Holdfast,
        clock: FakeClock,
        transport: httpx2.ASGITransport,
        client: httpx2.AsyncClient,
        mail: Mailboxes,
        authenticator: Authenticator,
    ) -> None:
        self.hf = hf
        self.transport = transport
        self.clock = clock
        self.client = client
        self.mail = mail
        self.tokens: dict[str, str] = {}
        self.authenticator = authenticator
        self.flows: dict[str, Flow] = {}
        self.paid: list[str] = []

    async def send(self, who: str, method: str, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        """`who`: a name from the start, or the text of a token."""
        token = self.tokens.get(who, who)
        if body is not None:
            more["json"] = body
        return await self.client.request(
            method, path, headers={"Authorization": f"Bearer {token}", **more.pop("headers", {})}, **more
        )

    async def ask(
        self, who: str, method: str, path: str, body: Any = None, *, status: int = 200, **more: Any
    ) -> Any:
        answer = await self.send(who, method, path, body, **more)
        assert answer.status_code == status, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    async def mcp(self, who: str, message: dict[str, Any]) -> dict[str, Any] | None:
        """One message to the agents' interface."""
        answer = await self.send(who, "POST", "/mcp", message, headers={"Accept": MCP_ACCEPT})
        lines = [each[6:] for each in answer.text.splitlines() if each.startswith("data: {")]
        text = lines[-1] if lines else answer.text
        return json.loads(text) if answer.status_code == 200 and text else None

    async def mint(self, who: str, subject: str, **more: Any) -> str:
        """A token that one caller makes for somebody."""
        body = {"subject": subject, "roles": ["member"], **more}
        return str((await self.ask(who, "POST", "/v1/tokens", body, status=201))["token"])

    def forget_tokens(self) -> None:
        """The server reads them again."""
        self.authenticator._tokens = None

    async def decide(self, who: str, hold: str, decision: str = "approve", **more: Any) -> httpx2.Response:
        return await self.send(who, "POST", f"/v1/holds/{hold}/resolve", {"decision": decision, **more})

    async def decide_by_link(self, token: str, decision: str = "approve") -> bool:
        """As a browser without a session does. Whether it was accepted."""
        async with httpx2.AsyncClient(transport=self.client._transport, base_url=SITE) as browser:
            page = await browser.get(f"/l/{token}", follow_redirects=True)
            if page.status_code != 200 or "csrf_token" not in page.text:
                return False
            form = {"csrf_token": csrf_value(token), "decision": decision}
            sent = await browser.post(page.url.path, data=form)
            return sent.status_code < 400

    async def asks(
        self, *, started_by: str | None = "user:ada", deployment: str | None = None, **asked: Any
    ) -> HoldRow:
        """A run that waits at a hold."""
        flow = Flow("refund", effect="pure")
        given = {"prompt": "Pay {{amount}}?", "options": ["approve", "reject"], **asked}
        flow.hold("approve", **given)
        names = {"started_by": started_by, "deployment": deployment}
        (hold,) = (await flow.run({"amount": 250}, on=self.hf, **names)).holds
        self.flows[hold.id] = flow
        return await self.row(hold.id)

    async def starts(self, who: str, **asked: Any) -> str:
        """A run that somebody starts over HTTP, and that a worker advances to its hold."""
        flow = Flow(f"flow-{len(self.flows)}", effect="pure")
        flow.hold("approve", **{"prompt": "Pay?", "options": ["approve", "reject"], **asked})
        self.hf.register(flow.program())
        made = await self.ask(who, "POST", "/v1/runs", {"flow": flow.name, "input": {}}, status=201)
        await flow.resume(made["id"], on=self.hf)
        self.flows[made["id"]] = flow
        return str(made["id"])

    async def open_holds(self, run: str) -> list[str]:
        found = await (await self.hf.open()).holds(run=run, limit=100)  # type: ignore[arg-type]
        return [each.id for each in found if each.status is HoldStatus.pending]

    async def audit(self) -> list[dict[str, Any]]:
        found = await (await self.hf.open()).audit("default", limit=1000)
        return [
            {"actor": each.actor, "action": each.action, "data": msgspec.json.decode(each.data)}
            for each in found
        ]

    async def row(self, hold: str) -> HoldRow:
        found = await (await self.hf.open()).hold(hold)  # type: ignore[arg-type]
        assert found is not None
        return found

    async def delivers(self) -> None:
        deliverer = (await self.hf.service()).runtime.deliverer
        assert deliverer is not None
        await deliverer.deliver()


@asynccontextmanager
async def harness_of(
    *, directory: str | None = "store", slack: bool = False, store: str = "memory:", **more: Any
) -> AsyncIterator[Harness]:
    clock, mail = FakeClock(), Mailboxes()
    notify = NotifySettings(base_url=SITE)
    async with Holdfast(
        store, clock=clock, directory=directory, channels=[mail], notify=notify, **more
    ) as hf:
        mail.hf = hf
        opened = await hf.open()
        if directory is not None:
            people = Registrar(opened)
            for name in PEOPLE:
                await people.put_person("default", Person(id=name, email=f"{name}@acme"))
            await people.put_group("default", "finance", ["dana", "sam"])
            await people.put_group("default", "traders", ["ada"])
            await people.put_role("default", "cfo", ["kim"])
        way = {"name": "desk", "kind": "slack", "secrets": [SLACK_SECRET]}
        inbound = parse_settings({"way": [way]} if slack else {})
        authenticator = Authenticator(hf)
        app = build(hf, authenticator, ApiSettings(inbound=inbound), [*THEMES, agents])
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url=SITE) as client:
            harness = Harness(hf, clock, transport, client, mail, authenticator)
            made = ApiTokens(opened)
            for name in PEOPLE:
                rights = EVERY_RIGHT if name == "ada" else ()
                grant = CredentialGrant(subject=f"user:{name}", roles=("member",), rights=rights)
                harness.tokens[name] = (await made.create(grant, by="user:local"))[1]
            by_address = CredentialGrant(subject="user:ada@acme", roles=("member",), rights=EVERY_RIGHT)
            harness.tokens["ada@acme"] = (await made.create(by_address, by="user:local"))[1]
            also = CredentialGrant(subject="user:kim", roles=("admin",))
            harness.tokens["kim-admin"] = (await made.create(also, by="user:local"))[1]
            yield harness
