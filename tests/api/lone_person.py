"""One person with every right, who tries to pass a rule that needs two.

Every move is a call over HTTP or MCP, or uses a link that arrived in a mailbox of hers."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable
from hashlib import sha256
from itertools import product
from typing import Any
from urllib.parse import urlencode

import msgspec

from holdfast import Flow
from holdfast.holds.notify.slack import ACTION, Click
from holdfast.holds.policies.stored import put_policy
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus, RunStatus
from tests.api.harness import SLACK_SECRET, Harness

RULES: dict[str, tuple[dict[str, Any], ...]] = {
    "two of a group": ({"assignee": "group:finance", "approval": {"mode": "quorum", "need": 2}},),
    "two of a group, without the starter": (
        {"assignee": "group:finance", "approval": {"mode": "quorum", "need": 2, "exclude": ["initiator"]}},
    ),
    "one after the other": (
        {"assignee": "user:dana", "approval": {"mode": "sequential", "of": ["user:dana", "role:cfo"]}},
    ),
    "not the starter": ({"assignee": "group:finance", "approval": {"exclude": ["initiator"]}},),
    "not whoever approved before": (
        {"assignee": "group:finance"},
        {"assignee": "group:finance", "approval": {"exclude": ["earlier_approvers"]}},
    ),
    "not a trader": ({"assignee": "user:ada", "approval": {"exclude": ["group:traders"]}},),
    "somebody delegated": (
        {
            "assignee": "delegated_user",
            "approval": {"mode": "quorum", "need": 2, "of": ["delegated_user", "user:dana"]},
        },
    ),
    "two by a rule in the store": ({"assignee": "group:finance"},),
    "two of a queue": (
        {
            "assignee": "group:finance",
            "queue": "money/reviews",
            "approval": {"mode": "quorum", "need": 2, "exclude": ["initiator"]},
        },
    ),
}
GUARD: dict[str, Any] = {
    "name": "guard",
    "rules": [
        {"name": "two", "assign": "group:finance", "approval": {"mode": "quorum", "need": 2}},
    ],
}
"""The rule in the store, written by an operator."""
"""Each is a row of holds before money is paid. Ada starts every run, and is in the group of traders."""
PEOPLE = ("user:ada", "user:dana", "user:sam", "user:kim", "user:ghost", "user:other", "service:robot")
NAMES = ("dana", "sam", "kim", "ghost", "other", "ada")
EVIL = "@evil.example"
"""Mailboxes there are Ada's."""


class LonePerson:
    """`credentials`: tokens in her hands. Every method is one move; numbers choose among what there is."""

    def __init__(self, harness: Harness, rule: str) -> None:
        self.harness = harness
        self._rule = rule
        self.credentials = [harness.tokens["ada"], harness.tokens["ada@acme"]]
        self.runs: list[str] = []
        self.paid: list[str] = []
        self.flow = Flow("payment", effect="pure")
        nodes: list[Any] = []
        for number, asked in enumerate(RULES[rule]):
            given = {"prompt": "Pay?", "options": ["approve", "reject"], "bind": f"said_{number}", **asked}
            nodes.append(self.flow.hold(f"hold_{number}", **given))

        @self.flow.node(effect="pure")
        async def pay(s: dict[str, Any]) -> dict[str, Any]:
            if all(s.get(f"said_{number}") == "approve" for number in range(len(nodes))):
                self.paid.append("paid")
            return {}

        self.flow.chain(*nodes, pay)
        harness.hf.register(self.flow.program())

    # ------------------------------------------------------------------ what the server does by itself
    async def begins(self) -> None:
        if self._rule == "two by a rule in the store":
            await put_policy(await self.harness.hf.open(), "default", GUARD, by="user:local")
        await self.put_deployment(0, 0)
        await self.delegate(4, 0)
        await self.others_decide()
        await self.start(0, 0)
        await self.works()

    async def others_decide(self) -> None:
        """A run that was paid because the others agreed: nothing of it may be paid again."""
        names = {"started_by": "user:lee", "deployment": "till"}
        self.runs = [(await self.flow.run({}, on=self.harness.hf, **names)).run_id]
        for _ in range(2):
            for hold in await self.open_holds():
                for name in ("dana", "sam", "kim"):
                    await self.harness.decide(name, hold.id)
            await self.works()
        # What they did not end is left to them: with one vote of theirs, hers would be the second.
        self.runs = self.runs if self.paid else []
        self.paid.clear()

    async def works(self) -> None:
        """Workers advance every run, and mail is delivered."""
        store = await self.harness.hf.open()
        for run in self.runs:
            row = await store.get_run(run)  # type: ignore[arg-type]
            if row is not None and not row.read_only and row.status not in ENDED:
                await self.flow.resume(run, on=self.harness.hf)
        await (await self.harness.hf.queues()).bridge.work()
        await self.harness.delivers()

    async def open_holds(self) -> list[HoldRow]:
        store = await self.harness.hf.open()
        found = [hold for run in self.runs for hold in await store.holds(run=run, limit=50)]  # type: ignore[arg-type]
        return [hold for hold in found if hold.status is HoldStatus.pending]

    async def call(self, number: int, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """With one of her credentials. Refusals are what she expects."""
        token = self.credentials[number % len(self.credentials)]
        answer = await self.harness.send(token, method, path, body, **more)
        assert answer.status_code < 500, (method, path, answer.text)
        return answer.json() if answer.content and answer.status_code < 400 else None

    # ------------------------------------------------------------------ moves
    async def start(self, by: int, over_mcp: int) -> None:
        deployment = "till"
        if over_mcp % 3 == 2:
            arguments = {"flow": "payment", "input": _answers(by)}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            said = await self.harness.mcp(
                self.credentials[by % len(self.credentials)],
                {**message, "params": {"name": "start_run", "arguments": arguments}},
            )
            made = said and said.get("result", {}).get("structuredContent")
        else:
            body = {"flow": "payment", "input": _answers(by), "deployment": deployment}
            made = await self.call(by, "POST", "/v1/runs", body)
        if made:
            self.runs.append(made.get("id") or made.get("run_id") or made.get("run"))

    async def mint(self, by: int, whom: int) -> None:
        body = {"subject": PEOPLE[whom % len(PEOPLE)], "roles": ["admin"], "groups": ["finance"]}
        made = await self.call(by, "POST", "/v1/tokens", body)
        if made:
            self.credentials.append(made["token"])

    async def put_person(self, by: int, whom: int) -> None:
        name = NAMES[whom % len(NAMES)]
        await self.call(by, "PUT", f"/v1/directory/people/{name}", {"email": f"{name}{EVIL}"})

    async def rename_herself(self, by: int, _: int) -> None:
        await self.call(by, "PUT", "/v1/directory/people/ada", {"email": ""})
        await self.call(by, "PUT", "/v1/directory/people/other", {"email": "ada@acme"})

    async def delete_person(self, by: int, whom: int) -> None:
        await self.call(by, "DELETE", f"/v1/directory/people/{NAMES[whom % len(NAMES)]}")

    async def put_group(self, by: int, kind: int) -> None:
        key = ("groups/finance", "groups/traders", "roles/cfo")[kind % 3]
        members = {"groups/traders": ["dana"]}.get(key, ["dana", "sam", "ada"])
        for extra in ("ghost", "other"):
            known = await self.call(0, "GET", f"/v1/directory/people/{extra}")
            members = [*members, extra] if known and key != "groups/traders" else members
        await self.call(by, "PUT", f"/v1/directory/{key}", {"members": members})

    async def delete_group(self, by: int, kind: int) -> None:
        key = ("groups/finance", "groups/traders", "roles/cfo")[kind % 3]
        await self.call(by, "DELETE", f"/v1/directory/{key}")

    async def put_away(self, whom: int, instead: int) -> None:
        path = f"/v1/directory/people/{NAMES[whom % len(NAMES)]}/away"
        await self.call(0, "PUT", path, {"substitute": NAMES[instead % len(NAMES)]})

    async def put_own_away(self, by: int, instead: int) -> None:
        await self.call(by, "PUT", "/v1/directory/me/away", {"substitute": NAMES[instead % len(NAMES)]})

    async def reassign(self, to: int, by: int) -> None:
        targets = [*(f"user:{name}" for name in NAMES), "group:finance", "role:cfo"]
        for hold in await self.open_holds():
            body = {"assignee": targets[to % len(targets)]}
            await self.call(by, "POST", f"/v1/holds/{hold.id}/reassign", body)

    async def link(self, to: int, by: int) -> None:
        for hold in await self.open_holds():
            body = {"to": f"user:{NAMES[to % len(NAMES)]}"}
            await self.call(by, "POST", f"/v1/holds/{hold.id}/links", body)

    async def chat(self, whom: int, by: int) -> None:
        path = "/v1/inbound/slack/desk/people/U-ADA"
        await self.call(by, "PUT", path, {"person": f"user:{NAMES[whom % len(NAMES)]}"})

    async def put_deployment(self, by: int, kind: int) -> None:
        settings: dict[str, Any] = [
            {},
            {"defaults": {"timeout": "1m", "on_timeout": "default_option"}},
            {"policies": ["none"]},
            {"defaults": {"timeout": "1m", "on_timeout": f"escalate:user:ghost{EVIL}"}},
        ][kind % 4]
        await self.call(by, "PUT", "/v1/deployments/till", {"flow": "payment", **settings})

    async def delegate(self, to: int, by: int) -> None:
        body = {"to": f"user:{NAMES[to % len(NAMES)]}"}
        await self.call(by, "PUT", "/v1/deployments/till/delegation", body)

    async def put_policy(self, by: int, kind: int) -> None:
        rule: dict[str, Any] = [
            {"approval": {"mode": "any"}, "strict_assignee": False},
            {"approval": {"mode": "quorum", "need": 1}, "assign": "user:ada"},
            {"timeout": "1m", "on_timeout": "accept"},
            {"decide": "approve"},
            {"approval": {"mode": "quorum", "need": 1, "of": ["user:ada"]}},
            {"timeout": "1m", "ladder": [{"to": f"user:ghost{EVIL}", "after": "1h"}]},
        ][kind % 6]
        name = ("easy", "guard", "zz")[by % 3]
        await self.call(by, "PUT", f"/v1/policies/{name}", {"rules": [{"name": "all", **rule}]})

    async def delete_policy(self, by: int, kind: int) -> None:
        await self.call(by, "DELETE", f"/v1/policies/{('guard', 'easy')[kind % 2]}")

    async def schedule(self, by: int, _: int) -> None:
        await self.call(by, "PUT", "/v1/schedules/now", {"flow": "payment", "every": "1h"})
        made = await self.call(by, "POST", "/v1/schedules/now/trigger", {})
        if made:
            self.runs.append(made["run"])

    async def branch(self, which: int, how: int) -> None:
        run = self.runs[which % len(self.runs)]
        answers = {f"said_{number}": "approve" for number in range(2)}
        path, body = [
            ("fork", {}),
            ("fork", {"patch": {"scratch": answers}}),
            ("rewind", {"patch": {"scratch": answers}}),
            ("resume", {"mode": "fork"}),
            ("resume", {"input_data": answers}),
            *(("fork", {"seq": seq}) for seq in (1, 2, 3, 4)),
            ("fork", {"seq": 2, "patch": {"scratch": answers}}),
        ][how % 10]
        made = await self.call(how, "POST", f"/v1/runs/{run}/{path}", body)
        if made and made["id"] not in self.runs:
            self.runs.append(made["id"])

    async def branch_graph(self, which: int, how: int) -> None:
        """As the interface of graph checkpoints does it."""
        run = self.runs[which % len(self.runs)]
        found = await self.call(how, "GET", f"/v1/graph/runs/{run}/checkpoint")
        patch = {"scratch": {"said_0": "approve", "said_1": "approve"}} if how % 2 else None
        if found:
            path = f"/v1/graph/checkpoints/{found['id']}/fork"
            made = await self.call(how, "POST", path, {"patch": patch})
            if made and made["runId"] not in self.runs:
                self.runs.append(made["runId"])

    async def move_file(self, which: int, _: int) -> None:
        run = self.runs[which % len(self.runs)]
        exported = await self.harness.send("ada", "GET", f"/v1/runs/{run}/export")
        media = {"Content-Type": "application/octet-stream"}
        query = {"as_new_run": "true"}
        made = await self.call(
            0, "POST", "/v1/runs/import", content=exported.content, headers=media, params=query
        )
        if made and made["id"] not in self.runs:
            self.runs.append(made["id"])

    async def wait(self, minutes: int, _: int) -> None:
        self.harness.clock.advance(minutes=minutes + 1)
        sweeper = (await self.harness.hf.service()).runtime.sweeper
        assert sweeper is not None
        await sweeper.sweep()

    async def attack(self, first: int, how: int) -> None:
        """Every credential, link and click that she has, beginning anywhere."""
        await self.works()
        ways = [*self._calls(how), *self._links(), self._click, self._complete]
        turn = first % len(ways)
        for way in (*ways[turn:], *ways[:turn]):
            for hold in await self.open_holds():
                await way(hold)
        await self.works()

    def _calls(self, how: int) -> list[Callable[[HoldRow], Awaitable[None]]]:
        def deciding(number: int) -> Callable[[HoldRow], Awaitable[None]]:
            async def decide(hold: HoldRow) -> None:
                path, body = _answered(hold, how)
                await self.call(number, "POST", path, body)

            return decide

        return [deciding(number) for number in range(len(self.credentials))]

    def _links(self) -> list[Callable[[HoldRow], Awaitable[None]]]:
        """Each link in a mailbox of hers is used on the hold that it is for."""
        mine = {each.to for each in self.harness.mail.letters if each.to.endswith(EVIL)} | {"ada@acme"}

        def opening(token: str) -> Callable[[HoldRow], Awaitable[None]]:
            async def decide(_: HoldRow) -> None:
                await self.harness.decide_by_link(token)

            return decide

        return [opening(token) for address in sorted(mine) for token in self.harness.mail.links(address)[-3:]]

    async def _complete(self, hold: HoldRow) -> None:
        """The message of the hold in its queue, with each credential."""
        if not hold.terms.queue:
            return
        listed = await self.call(0, "GET", "/v1/queues/money/reviews/messages") or {"items": []}
        named = [each["id"] for each in listed["items"] if each["correlation_id"] == hold.id]
        for number, message in product(range(len(self.credentials)), named):
            path = f"/v1/queues/money/reviews/messages/{message}"
            claimed = await self.call(number, "POST", f"{path}/claim", {"ttl": "1m"})
            if claimed:
                body = {"token": str(claimed["claim_token"]), "result": {"decision": "approve"}}
                await self.call(number, "POST", f"{path}/complete", body)
                await self.call(number, "POST", f"{path}/release", {"token": str(claimed["claim_token"])})

    async def _click(self, hold: HoldRow) -> None:
        """Slack signs the click of her own account."""
        click = Click(hold=hold.id, decision="approve", epoch=hold.epoch, request_hash=hold.request_hash)
        value = msgspec.json.encode(click).decode()
        action = {"action_id": f"{ACTION}:approve", "value": value, "action_ts": f"{hold.version}.0"}
        payload = {"type": "block_actions", "user": {"id": "U-ADA"}, "actions": [action]}
        body = urlencode({"payload": json.dumps(payload)}).encode()
        stamp = str(self.harness.clock.now() // MICROS)
        mac = hmac.new(SLACK_SECRET.encode(), f"v0:{stamp}:".encode() + body, sha256).hexdigest()
        headers = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac}"}
        await self.harness.client.post("/v1/inbound/slack/desk", content=body, headers=headers)


def _answered(hold: HoldRow, how: int) -> tuple[str, Any]:
    """The routes that answer a hold, each in turn."""
    answer = {"decision": "approve", "reason": "I have every right"}
    ways: list[tuple[str, Any]] = [
        (f"/v1/holds/{hold.id}/resolve", answer),
        (f"/v1/holds/{hold.id}/place", answer),
        (f"/v1/holds/{hold.id}/vote", answer),
        (f"/v1/modules/scaicore/checkpoints/{hold.id}/resolve", {"resolution": "approve"}),
        (f"/v1/runs/{hold.run}/input", {"content": "approve", "request_id": hold.id}),
        (f"/v1/runs/{hold.run}/input", {"content": {"decision": "approve"}, "checkpoint_id": hold.id}),
        ("/v1/holds/bulk", {"holds": [hold.id], "decision": "approve", "preview": False}),
        ("/v1/holds/bulk", {"holds": [hold.id], "decision": "approve", "preview": False, "undo": True}),
    ]
    return ways[how % len(ways)]


def _answers(number: int) -> dict[str, str]:
    """The input of a run: empty, or with answers of her own."""
    return {f"said_{each}": "approve" for each in range(2)} if number % 4 == 2 else {}


ENDED = (RunStatus.completed, RunStatus.cancelled, RunStatus.failed)
MOVES = tuple(
    name
    for name, found in vars(LonePerson).items()
    if not name.startswith("_")
    and name not in ("begins", "works", "others_decide", "open_holds", "call")
    and callable(found)
)
