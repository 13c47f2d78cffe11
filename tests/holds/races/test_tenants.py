"""Two tenants against every operation: what is another's is not there, and nothing of it is touched or told.

The operations are read off the service: one that is new and not named here fails the first test.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Flow, Holdfast
from holdfast.errors import HoldNotFoundError, LinkInvalidError, NotAssignedError
from holdfast.holds.actions.submission import Submission
from holdfast.holds.directory.admin import Registrar
from holdfast.holds.directory.base import Person
from holdfast.holds.directory.stored import TableDirectory
from holdfast.holds.links.keys import LinkKeys
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import LinkGrant, mint
from holdfast.holds.queries.audit import verify_audit
from holdfast.holds.queries.list import VIEWS
from holdfast.holds.service import HoldService
from holdfast.testing.clock import FakeClock
from holdfast.types.hold import HoldFilter, HoldRow
from holdfast.types.ids import new_id
from holdfast.types.status import HoldStatus
from holdfast.types.terms import MANAGE, OVERRIDE, RESOLVE, Actor

pytestmark = pytest.mark.anyio

EVERYTHING = frozenset({MANAGE, RESOLVE, OVERRIDE})
# The same name, the same groups, every right: only the tenant of the credential differs.
HOME = Actor(id="user:dana@acme", tenant="home", rights=EVERYTHING, groups=frozenset({"finance"}))
STRANGER = msgspec.structs.replace(HOME, tenant="away")
SECRET = b"0123456789abcdef"

Call = Callable[[HoldService, Actor, str], Awaitable[Any]]

# Everything that is done to one hold.
ON_A_HOLD: dict[str, Call] = {
    "get": lambda s, who, hold: s.get(who, hold),
    "shadow": lambda s, who, hold: s.shadow(who, hold),
    "why": lambda s, who, hold: s.why(who, hold),
    "require_resolvable": lambda s, who, hold: s.require_resolvable(who, hold, "approve"),
    "history": lambda s, who, hold: s.history(who, hold),
    "evidence": lambda s, who, hold: s.evidence(who, hold),
    "resolve": lambda s, who, hold: s.resolve(who, hold, "approve", reason="I may"),
    "vote": lambda s, who, hold: s.vote(who, hold, "approve"),
    "place": lambda s, who, hold: s.place(who, hold, "approve"),
    "undo": lambda s, who, hold: s.undo(who, hold),
    "cancel": lambda s, who, hold: s.cancel(who, hold),
    "reassign": lambda s, who, hold: s.reassign(who, hold, "user:eve"),
    "extend": lambda s, who, hold: s.extend(who, hold, s.store.now() + 10**13),
    "claim": lambda s, who, hold: s.claim(who, hold, reason="I may"),
    "release": lambda s, who, hold: s.release(who, hold),
    "ask_back": lambda s, who, hold: s.ask_back(who, hold, "Why?", to="agent"),
    "reply": lambda s, who, hold: s.reply(who, hold, "Because."),
    "withdraw_question": lambda s, who, hold: s.withdraw_question(who, hold),
    "comment": lambda s, who, hold: s.comment(who, hold, "Hm."),
    "comments": lambda s, who, hold: s.comments(who, hold),
    "save_draft": lambda s, who, hold: s.save_draft(who, hold, {"decision": "approve"}),
    "draft": lambda s, who, hold: s.draft(who, hold),
    "delete_draft": lambda s, who, hold: s.delete_draft(who, hold),
    "watch": lambda s, who, hold: s.watch(who, hold),
    "unwatch": lambda s, who, hold: s.unwatch(who, hold),
    "snooze": lambda s, who, hold: s.snooze(who, hold, s.store.now() + 10**9),
    "snoozed_until": lambda s, who, hold: s.snoozed_until(who, hold),
    "unsnooze": lambda s, who, hold: s.unsnooze(who, hold),
    "seen": lambda s, who, hold: s.seen(who, hold),
    "attach": lambda s, who, hold: s.attach(who, hold, "paper", "a.txt", b"text"),
    "files": lambda s, who, hold: s.files(who, hold),
    "read_file": lambda s, who, hold: s.read_file(who, hold, "0" * 64),
}
ON_MANY = {"list", "count", "metrics", "bulk", "visible"}
# Named by a tenant, and for whoever works on the store itself.
OF_THE_INSTANCE = {"verify_audit", "sign_head", "answer"}


def operations() -> dict[str, Any]:
    found = inspect.getmembers(HoldService, inspect.isfunction)
    return {name: method for name, method in found if not name.startswith("_")}


class Town:
    """Two tenants on one store; what is home's is open and closed, commented and noted."""

    def __init__(self, hf: Holdfast, clock: FakeClock, holds: HoldService) -> None:
        self.hf, self.clock, self.holds, self.store = hf, clock, holds, holds.store

    async def asks(self, tenant: str, **asked: Any) -> HoldRow:
        flow = Flow("refund", effect="pure")
        given = {"options": ["approve", "reject"], "assignee": HOME.id, "timeout": "1d", **asked}
        flow.hold("approve", prompt="Pay 250 to the secret account?", **given)
        result = await flow.run({}, on=self.hf, tenant=tenant)
        (row,) = await self.store.holds(run=result.run_id)
        return row

    async def everything(self, tenant: str) -> dict[str, Any]:
        """All that a tenant has."""
        holds = await self.store.holds(tenant=tenant, limit=1000)
        return {
            "holds": holds,
            "notes": [await self.store.hold_notes(row.id) for row in holds],
            "audit": await self.store.audit(tenant, limit=1000),
            "outbox": await self.store.list_outbox(tenant=tenant, limit=1000),
            "mail": [await self.store.pending(row.run) for row in holds],
            "runs": [await self.store.get_run(row.run) for row in holds],
        }


@pytest.fixture(params=("memory", "sqlite"))
async def town(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Town]:
    clock = FakeClock()
    address = "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'holds.db'}"
    async with Holdfast(address, clock=clock) as hf:
        found = Town(hf, clock, await hf.holds())
        yield found


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11")
def test_no_operation_is_without_a_test_of_tenants() -> None:
    assert set(operations()) == set(ON_A_HOLD) | ON_MANY | OF_THE_INSTANCE


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11")
def test_a_caller_who_acts_on_a_hold_says_who_they_are() -> None:
    for name in ON_A_HOLD:
        assert list(inspect.signature(operations()[name]).parameters)[1:3] == ["actor", "hold"], name


def told(error: HoldNotFoundError, hold: str) -> tuple[Any, ...]:
    """All that the caller learns, but for the id that they gave themselves."""
    facts = {key: str(value).replace(hold, "ID") for key, value in error.facts.items()}
    return error.code, error.status, error.message.replace(hold, "ID"), error.hint, facts


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11", "RS-8")
@pytest.mark.parametrize("state", ["open", "decided", "withdrawn", "busy"])
async def test_a_stranger_learns_and_changes_nothing_by_any_operation(town: Town, state: str) -> None:
    row = await town.asks("home")
    if state == "decided":
        await town.holds.resolve(HOME, row.id, "approve")
    elif state == "withdrawn":
        await town.holds.cancel(HOME, row.id)
    elif state == "busy":
        await town.holds.ask_back(HOME, row.id, "Which account?", to=STRANGER.id.replace("dana", "eve"))
        await town.holds.claim(HOME, row.id)
        await town.holds.save_draft(HOME, row.id, {"decision": "approve", "comment": "secret"})
        await town.holds.watch(HOME, row.id)
    before = await town.everything("home")
    for name, call in ON_A_HOLD.items():
        with pytest.raises(HoldNotFoundError) as met:
            await call(town.holds, STRANGER, row.id)
        nobodys = new_id()
        with pytest.raises(HoldNotFoundError) as unknown:
            await call(town.holds, STRANGER, nobodys)
        assert told(met.value, row.id) == told(unknown.value, nobodys), name
        assert await town.everything("home") == before, name
    assert not any((await town.everything("away")).values())


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11", "RS-8")
@pytest.mark.parametrize("hold", ["", "x", "../..", "0" * 36, "not-a-uuid", "'; DROP TABLE holds; --"])
async def test_what_is_no_id_is_not_there(town: Town, hold: str) -> None:
    for call in ON_A_HOLD.values():
        with pytest.raises(HoldNotFoundError):
            await call(town.holds, HOME, hold)


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11", "LI-3")
async def test_lists_counts_and_figures_have_nothing_of_another_tenant(town: Town) -> None:
    row = await town.asks("home")
    unrouted = await town.asks("home", assignee=None)
    await town.holds.watch(HOME, row.id)
    await town.holds.snooze(HOME, unrouted.id, town.clock.now() + 10**9)
    asked = [
        HoldFilter(),
        HoldFilter(tenant="home"),
        HoldFilter(tenant="home", ids=(row.id,)),
        HoldFilter(run=(row.run,)),
        HoldFilter(noted=("watch", "dana@acme")),
        HoldFilter(text="secret", status=tuple(HoldStatus), live=False),
    ]
    for where in asked:
        for view in VIEWS:
            assert (await town.holds.list(STRANGER, view=view, where=where)).rows == ()
            assert await town.holds.count(STRANGER, view=view, where=where) == 0
        figures = await town.holds.metrics(STRANGER, where=where)
        assert (figures.holds, figures.pending_by_queue, figures.notifier_failures) == (0, {}, 0)
    assert len((await town.holds.list(HOME, view="all")).rows) == 2


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11", "LI-2")
async def test_a_page_is_no_way_into_another_tenant(town: Town) -> None:
    for _ in range(3):
        await town.asks("home")
        own = await town.asks("away")
    page = await town.holds.list(HOME, view="all", limit=1)
    found = await town.holds.list(STRANGER, view="all", cursor=page.cursor, limit=10)
    assert page.cursor is not None
    assert {each.tenant for each in found.rows} <= {"away"}
    assert own.tenant == "away"


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11")
async def test_bulk_leaves_out_what_is_anothers_and_does_the_rest(town: Town) -> None:
    row, own = await town.asks("home"), await town.asks("away")
    before = await town.everything("home")
    for preview in (True, False):
        done = await town.holds.bulk(STRANGER, [row.id, own.id], "approve", preview=preview)
        assert [(item.done, item.code) for item in done.items] == [(False, "hold_not_found"), (True, None)]
        assert done.items[0].row is None
    assert await town.everything("home") == before
    assert (await town.holds.get(STRANGER, own.id)).status is HoldStatus.resolved


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11", "HOLD-SEC-13")
async def test_each_tenant_has_an_audit_of_its_own(town: Town) -> None:
    row, own = await town.asks("home"), await town.asks("away")
    head = await town.holds.sign_head("away", SECRET)
    await town.holds.resolve(HOME, row.id, "approve")
    assert await town.holds.sign_head("away", SECRET) == head
    for tenant, hold in (("home", row), ("away", own)):
        records = await town.store.audit(tenant, limit=1000)
        assert {each.hold for each in records} == {hold.id}
        assert [each.seq for each in records] == list(range(1, len(records) + 1))
        assert (await verify_audit(town.store, tenant)).whole
    assert await town.store.audit("away", hold=row.id) == []
    assert not (await town.holds.verify_audit("home", against=head)).whole


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11", "HOLD-SEC-01")
async def test_links_of_one_tenant_open_nothing_of_another(town: Town) -> None:
    """Neither with the other's keys, nor by naming the other's hold, nor with what is signed in there."""
    row, own = await town.asks("home"), await town.asks("away")
    links, keys = Links(town.holds.ctx), LinkKeys(town.store, [])
    home, away = await keys.signing("home"), await keys.signing("away")
    now, grant = town.clock.now(), LinkGrant(to=HOME.id, purpose="decide")
    forged = [
        mint(row, grant, away, now),
        mint(msgspec.structs.replace(row, tenant="away"), grant, away, now),
        mint(msgspec.structs.replace(own, tenant="home"), grant, home, now),
    ]
    before = await town.everything("home"), await town.everything("away")
    for token in forged:
        for act in (links.look(token), links.decide(token, Submission(decision="approve"))):
            with pytest.raises(LinkInvalidError):
                await act
    with pytest.raises(HoldNotFoundError):
        await links.revoke(STRANGER, row.id)
    assert (await town.everything("home"), await town.everything("away")) == before


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11")
async def test_somebody_signed_in_elsewhere_decides_nothing_by_a_link_that_leaked(town: Town) -> None:
    row = await town.asks("home")
    links = Links(town.holds.ctx)
    token = await links.make(row, LinkGrant(to=HOME.id, purpose="decide"))
    before = await town.everything("home")
    with pytest.raises(HoldNotFoundError):
        await links.decide(token, Submission(decision="approve"), actor=STRANGER)
    assert await town.everything("home") == before


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11")
async def test_the_same_key_and_the_same_name_mean_something_else_in_each_tenant(town: Town) -> None:
    row, own = await town.asks("home"), await town.asks("away")
    for who, hold in ((HOME, row), (STRANGER, own)):
        done = await town.holds.resolve(who, hold.id, "approve", idempotency_key="k")
        assert (done.replay, done.row.tenant) == (False, who.tenant)
    assert [each.tenant for each in await town.store.list_outbox(tenant="away")] == ["away"] * 2


@pytest.mark.covers("HOLD-PROOF-03", "HOLD-SEC-11")
async def test_a_group_of_the_same_name_is_another_group_in_another_tenant(town: Town) -> None:
    book = Registrar(town.store)
    for tenant, member in (("home", "dana@acme"), ("away", "eve@acme")):
        await book.put_person(tenant, Person(id=member))
        await book.put_group(tenant, "finance", [member])
    row = await town.asks("home", assignee="group:finance")
    holds = HoldService(town.store, directory=TableDirectory(town.store))
    dana, eve = Actor(id="user:dana@acme", tenant="home"), Actor(id="user:eve@acme", tenant="away")
    assert [each.id for each in (await holds.list(dana, view="groups")).rows] == [row.id]
    assert (await holds.list(eve, view="groups")).rows == ()
    with pytest.raises(HoldNotFoundError):
        await holds.resolve(eve, row.id, "approve")
    # Nor by a credential of this tenant: it is only there that she belongs to it.
    with pytest.raises(NotAssignedError):
        await holds.resolve(msgspec.structs.replace(eve, tenant="home"), row.id, "approve")
    assert (await holds.resolve(dana, row.id, "approve")).row.resolved_by == dana.id
