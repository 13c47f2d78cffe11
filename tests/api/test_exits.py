"""What a flow declares secret does not leave the process: at every exit that there is.

The values are recognised in whatever holds them: arguments of an agent's tool, names of steps, errors, logs.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import httpx2
import pytest
from anyio import to_thread

import holdfast
from holdfast import Agent, Context, Flow, Holdfast, Secret, tool
from holdfast.agents.scripted import Scripted, tool_call
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.local_token import LocalToken
from holdfast.api.live.sse import event_frame
from holdfast.api.pages.all import PAGES
from holdfast.api.routes.all import THEMES
from holdfast.cli.main import run
from holdfast.holds.notify.channel import Channel, Delivery, send_notice
from holdfast.holds.notify.notice import Notice
from holdfast.holds.policies import webhook_judge
from holdfast.integrations.mcp.http import routes as mcp_routes
from holdfast.telemetry import JsonLines, TextLines
from holdfast.types.hold import Option
from holdfast.types.redaction import redactor, tenant_scope
from holdfast.types.terms import operator
from tests.api.test_matrix import filled
from tests.api.test_visible_text import COMMANDS
from tests.holds.notify.build import a_notice
from tests.integrations.otel.conftest import Exported, exported

__all__ = ["exported"]
pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-11")]

TOKEN: Final = 'tok-"9f81c2<é'
"""With characters that JSON and HTML write in another way."""


@dataclass
class Order:
    name: str
    token: Annotated[str, Secret]
    note: str = ""


@tool(effect="read")
async def charge(token: str, what: str = "") -> str:
    """Charges."""
    return f"charged {token}"


@tool(effect="read", approval=True)
async def refund(token: str) -> str:
    """Refunds."""
    return f"refunded {token}"


def flow() -> Flow:
    made = Flow("order", state=Order, effect="read")
    model = Scripted(tool_call("charge", token=TOKEN), tool_call("refund", token=TOKEN), f"done {TOKEN}")
    agent = Agent("clerk", model=model, tools=[charge, refund])

    @made.node(id="work")
    async def work(s: Order, ctx: Context) -> dict[str, str]:
        ctx.log.warning("working with %s", s.token)
        ctx.emit(f"emitted {s.token}")
        await ctx.step(f"step {s.token}", lambda: f"stepped {s.token}", effect="read")
        said = await agent.run(ctx, f"charge {s.token}")
        return {"note": str(said.value)}

    @made.node(id="fails")
    async def fails(s: Order, ctx: Context) -> None:
        raise ValueError(f"failed with {s.token}")

    made.edge(work, fails)
    return made


class Left:
    """What left the process, by the way it took."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}

    def add(self, way: str, text: str) -> None:
        self.texts.setdefault(way, []).append(text)

    def leaks(self) -> list[str]:
        """Also as JSON or HTML would write it: its middle has no character that they escape."""
        forms = (TOKEN, "9f81c2")
        return [
            f"{way}: {text[max(0, text.find(form) - 150) : text.find(form) + 60]}"
            for way, texts in self.texts.items()
            for text in texts
            for form in forms
            if form in text
        ]


@asynccontextmanager
async def ended(address: str, left: Left, exported: Exported | None = None) -> AsyncIterator[dict[str, str]]:
    """A run that was approved and failed, and one that waits for the approval; in this process no value of
    them is known afterwards, as in a server whose workers are elsewhere."""
    async with Holdfast(address) as hf:
        if exported is not None:
            exported.watch(hf, messages=True)
        made = flow()
        waits = await made.run(Order(name="Ada", token=TOKEN), on=hf)
        other = await made.run(Order(name="Bob", token=TOKEN), on=hf)
        people, me = await hf.holds(), operator("user:local")
        await people.resolve(me, other.holds[0].id, {"decision": "approve"})
        done = await made.resume(other.run_id, on=hf)
        assert done.status == "failed", done
        left.add("error", str(done.error))
        ids = {"run": waits.run_id, "hold": waits.holds[0].id, "failed": other.run_id, "flow": "order"}
    redactor.forget()
    yield ids
    redactor.forget()


async def test_telemetry_and_logs_have_no_secret(
    tmp_path: Path, exported: Exported, caplog: pytest.LogCaptureFixture
) -> None:
    left = Left()
    with caplog.at_level(logging.DEBUG):
        async with ended(f"sqlite:{tmp_path / 'x.db'}", left, exported):
            pass
    for span in exported.spans:
        left.add("otel span", span.to_json())
    for record in caplog.records:
        left.add("log", record.getMessage())
        left.add("log lines", JsonLines().format(record) + TextLines().format(record))
    assert any("step" in text for text in left.texts["otel span"])
    assert not left.leaks()


async def test_no_answer_of_the_server_has_a_secret(tmp_path: Path) -> None:
    left = Left()
    address = f"sqlite:{tmp_path / 'x.db'}"
    async with ended(address, left) as ids, Holdfast(address) as hf:
        own = LocalToken()
        app = build(hf, Authenticator(hf, local=own), ApiSettings(pace=0), [*THEMES, mcp_routes])
        headers = {"Authorization": f"Bearer {own.token}"}
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers
        ) as client:
            for route in [*(each for theme in THEMES for each in theme.found), *PAGES]:
                if route.method != "GET" or "stream" in route.path or "/events" in route.path:
                    continue
                for run in (ids["run"], ids["failed"]):
                    redactor.forget()
                    names = {
                        **ids,
                        "run": run,
                        "checkpoint": ids["hold"],
                        "version": "latest",
                        "id": "latest",
                    }
                    accept = "text/html" if route.tag == "pages" else "application/json"
                    params = {"to": ids["failed"]} if route.path.endswith("/diff") else {}
                    answer = await client.get(
                        filled(route.path, **names), headers={"Accept": accept}, params=params
                    )
                    if "octet-stream" not in answer.headers.get("content-type", ""):
                        left.add(f"{route.path} {answer.status_code}", answer.text)
    assert not left.leaks(), "\n".join(left.leaks()[:20])


async def test_approver_who_sees_a_mask_approves_the_real_value(tmp_path: Path) -> None:
    """Unchanged, and with another argument changed; what they type themselves is taken."""
    called: list[dict[str, str]] = []

    @tool(effect="read", approval=True)
    async def send(token: str, to: str) -> str:
        """Sends."""
        called.append({"token": token, "to": to})
        return "sent"

    made = Flow("sends", state=Order, effect="read")
    agent = Agent("clerk", model=Scripted(tool_call("send", token=TOKEN, to="a"), "done"), tools=[send])

    @made.node(id="work")
    async def work(s: Order, ctx: Context) -> None:
        await agent.run(ctx, "send it")

    answers: list[Any] = [
        None,
        {"arguments": {"token": "***", "to": "b"}},
        {"modifications": {"arguments": {"to": "c"}}},
        {"arguments": {"token": "other-token", "to": "a"}},
    ]
    async with Holdfast(f"sqlite:{tmp_path / 'x.db'}") as hf:
        people = await hf.holds()
        for data in answers:
            asked = await made.run(Order(name="Ada", token=TOKEN), on=hf)
            row = await people.get(operator(), asked.holds[0].id)
            assert json.loads(row.context)["arguments"] == {"token": "***", "to": "a"}
            answer = {"decision": "approve", "response_data": data}
            await people.resolve(operator("user:local"), row.id, answer)
            assert (await made.resume(asked.run_id, on=hf)).completed
    assert called == [
        {"token": TOKEN, "to": "a"},
        {"token": TOKEN, "to": "b"},
        {"token": TOKEN, "to": "c"},
        {"token": "other-token", "to": "a"},
    ]
    redactor.forget()


EXITS: Final = {
    "api/server.py": "answers: api/app.py masks each; live/sse.py and live/websocket.py mask each event",
    "api/http_protocol.py": "refusals of requests that are not HTTP: nothing of runs",
    "api/auth/oidc/provider.py": "requests to the identity provider: nothing of runs",
    "agents/coding/project_folder.py": "files of the folder that the operator gave to a model: its own texts",
    "agents/model_http.py": "what a handler asks a model: the flow decides what the model gets",
    "holds/egress.py": "resolves addresses for http_post.py",
    "holds/notify/apprise_bridge.py": "notices: notify/channel.py masks each",
    "holds/notify/http_post.py": "notices: notify/channel.py masks each; judges: policies/webhook_judge.py",
    "holds/notify/mail.py": "notices: notify/channel.py masks each",
    "integrations/langgraph/ownership.py": "the name of this machine, in the claim of a thread",
    "integrations/mcp/bridge.py": "passes on what a server answered",
    "integrations/mcp/http.py": "answers: mcp/server.py and mcp/resources.py mask each",
    "integrations/mcp/server.py": "masks results of tools",
    "integrations/pydantic_ai/durability.py": "models of the framework make requests; ctx.ask masks",
    "integrations/mcp/stdio.py": "answers: mcp/server.py and mcp/resources.py mask each",
    "integrations/mcp/subscriptions.py": "names of resources: nothing of runs",
    "integrations/otel/exporter.py": "passes facts to spans.py and metrics.py",
    "integrations/otel/metrics.py": "numbers, by names of flows and nodes",
    "integrations/otel/private_names.py": "hands spans of spans.py to the exporters",
    "integrations/otel/setup.py": "makes the exporters",
    "integrations/otel/spans.py": "masks each span",
    "integrations/prometheus/fleet_metrics.py": "numbers, by names of flows and lanes",
    "integrations/prometheus/page.py": "numbers, by names of flows and lanes",
    "integrations/prometheus/store_metrics.py": "numbers",
    "integrations/prometheus/worker_metrics.py": "numbers, by names of flows and nodes",
    "queues/nats.py": "messages: as nats_connection.py",
    "queues/nats_content.py": "names of subjects; reads messages, publishes none",
    "queues/nats_connection.py": "messages: a question, masked when it was asked, or what a flow publishes",
    "runs/driver/runtime.py": "the name of this machine",
    "runs/worker/heartbeat.py": "the name of this machine",
    "runs/worker/health_server.py": "readiness: reasons only on loopback",
    "telemetry.py": "masks each line",
    "checkpoint/keys.py": "the key file, for its owner only",
    "cli/main.py": "opens /dev/null when a pipe is closed",
    "cli/app.py": "opens /dev/null when a pipe is closed",
    "cli/drive_and_print.py": "opens /dev/null when a pipe is closed",
    "integrations/mcp/stdin_lines.py": "only reads",
    "cli/commands/evidence.py": "the pack: questions, masked when they were asked; the page: reports/text.py",
    "cli/commands/postmortem.py": "reports/text.py masks the report",
    "cli/commands/diff.py": "a picture: names of nodes",
    "cli/commands/graph.py": "a picture: names of nodes",
    "cli/commands/audit.py": "signatures of the audit",
    "cli/commands/export.py": "has the values, on purpose: it is a copy of the run",
    "cli/commands/holds/files.py": "an attached file, for a person who may see the hold",
    "cli/commands/new.py": "files of a new project",
    "cli/options/store.py": "where the code of flows is",
    "attractor/directory_sync.py": "a lock of the run directory: nothing is written",
    "attractor/run_files.py": "the run directory: pipelines declare no secrets; it is private to its owner",
    "attractor/detached_commands.py": "the run directory",
    "attractor/tool_hooks.py": "the run directory",
    "attractor/worktree_folders.py": "an empty lock",
    "attractor/backends/tools.py": "files that a model writes",
}
"""Every module through which data leaves the process, and what stands before it. Stores keep the values: they
are not exits."""
INSIDE: Final = ("store/", "client/", "testing/", "torture/", "demo/")
SINKS: Final = re.compile(
    r"^\s*(?:import|from) (?:httpx2?|aiohttp|requests|smtplib|aiosmtplib|socket|ssl|urllib\.request"
    r"|http\.client|apprise|opentelemetry|prometheus_client|websockets|mcp|nats|grpc|boto3|uvicorn)\b"
    r"|open_connection\(|create_server\(|start_server\(|create_datagram_endpoint\("
    r"|\.write_text\(|\.write_bytes\(|\.open\(\"[wax]|os\.open\(|open_private\(|StreamHandler",
    re.MULTILINE,
)


def test_every_exit_is_in_the_table() -> None:
    source = Path(holdfast.__file__).parent
    found = {
        name
        for file in source.rglob("*.py")
        if not (name := str(file.relative_to(source))).startswith(INSIDE) and SINKS.search(file.read_text())
    }
    assert found - set(EXITS) == set(), "a new exit: say what masks secrets before it"
    assert set(EXITS) - found == set(), "no exit any more"


class Heard(Channel):
    """A channel that keeps what it is given."""

    name = "heard"

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    async def send(self, notice: Notice) -> Delivery:
        self.notices.append(notice)
        return Delivery(accepted=True)


async def test_no_channel_gets_a_secret() -> None:
    redactor.learn(TOKEN)
    label = (Option("yes", f"pay {TOKEN}"),)
    notice = a_notice(prompt=f"p {TOKEN}", why=f"w {TOKEN}", outcome=f"o {TOKEN}", options=label)
    heard = Heard()
    await send_notice(heard, notice)
    assert TOKEN not in repr(heard.notices)
    assert heard.notices[0].link == notice.link
    redactor.forget()


class Broken(Heard):
    async def send(self, notice: Notice) -> Delivery:
        raise ValueError(f"hunter22 was refused for {TOKEN}, not other-token")


async def test_failed_delivery_tells_a_tenant_no_secret_of_the_operator_and_nothing_of_another() -> None:
    redactor.learn_for(None, "hunter22")
    redactor.learn_for("acme", TOKEN)
    redactor.learn_for("other", "other-token")
    with tenant_scope("acme"):
        failed = await send_notice(Broken(), a_notice(prompt="p"))
    assert failed.detail == "*** was refused for ***, not other-token"
    redactor.forget()


async def test_judges_streams_and_agents_get_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    redactor.learn(TOKEN)
    sent: list[bytes] = []

    async def post(url: str, body: bytes, *_: Any, **__: Any) -> Any:
        sent.append(body)
        raise ValueError("no answer")

    monkeypatch.setattr(webhook_judge, "post", post)
    judge = webhook_judge.WebhookJudge("https://judge.example/x", secrets=["whsec_" + "A" * 43 + "="])
    with pytest.raises(ValueError, match="no answer"):
        await judge.judge({"prompt": TOKEN, "context": {"a": [TOKEN]}})
    sent.append(event_frame(1, "x", json.dumps({"a": TOKEN}).encode()))
    assert len(sent) == 2
    assert not [each for each in sent if b"9f81c2" in each]
    redactor.forget()


async def test_command_line_and_reports_have_no_secret(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    left = Left()
    address = f"sqlite:{tmp_path / 'x.db'}"
    async with ended(address, left) as ids:
        for name, arguments in COMMANDS.items():
            for more in ([], ["--json"]):
                redactor.forget()
                await to_thread.run_sync(run, [*arguments(ids), *more, "--store", address])
                said = capfd.readouterr()
                left.add(f"{name} {more}", said.out + said.err)
        for form in ("html", "md"):
            redactor.forget()
            place = tmp_path / f"report.{form}"
            words = ["postmortem", ids["failed"], "--out", str(place), "--store", address]
            assert await to_thread.run_sync(run, words) == 0
            left.add(f"postmortem {form}", place.read_text())
    assert not left.leaks(), "\n".join(left.leaks()[:20])
