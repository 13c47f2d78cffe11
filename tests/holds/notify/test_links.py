"""Links: signed, for one person and one purpose, used up with the decision."""

from __future__ import annotations

import asyncio
import hmac
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode

import msgspec
import pytest

from holdfast.errors import (
    ForbiddenError,
    HoldDecidedError,
    HoldfastError,
    HoldReassignedError,
    LinkInvalidError,
    SettingsError,
)
from holdfast.holds.actions.conflicts import resolution_of
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.submission import Submission
from holdfast.holds.links import tokens
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import (
    LinkGrant,
    LinkKey,
    key_text,
    keys_from_environment,
    mint,
    new_key,
    read,
)
from holdfast.types.clock import MICROS
from holdfast.types.hold import ChangeRefusal, HoldChange
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor, operator
from tests.holds.notify.build import a_row
from tests.holds.notify.scene import scene

pytestmark = pytest.mark.anyio

KEY = LinkKey("k1", b"1" * 32)
NOW = 2_000_000 * MICROS
DANA = "user:dana@acme.example"
APPROVE = Submission(decision="approve")


# ---------------------------------------------------------------------- tokens


@pytest.mark.covers("HOLD-SEC-01", "HOLD-NOTE-06")
def test_token_says_what_it_is_for():
    row = a_row(epoch=3)
    token = mint(row, LinkGrant(to=DANA, purpose="decide", decisions=("approve",)), KEY, NOW)
    claims = read(token, [KEY], NOW)
    assert token.startswith("v1.")
    assert (claims.hold, claims.tenant, claims.to, claims.purpose) == (row.id, "default", DANA, "decide")
    assert (claims.decisions, claims.request_hash, claims.epoch) == (("approve",), row.request_hash, 3)
    assert (claims.iat, claims.key) == (NOW // MICROS, "k1")
    assert claims.exp == claims.iat + tokens.LIFETIME


@pytest.mark.covers("HOLD-SEC-01")
def test_token_ends_with_the_deadline_when_that_comes_before():
    row = a_row(expires_at=NOW + 60 * MICROS)
    token = mint(row, LinkGrant(to=DANA), KEY, NOW)
    assert read(token, [KEY], NOW + 59 * MICROS).exp == (NOW + 60 * MICROS) // MICROS
    with pytest.raises(LinkInvalidError, match="has expired"):
        read(token, [KEY], NOW + 60 * MICROS)


def _with(token: str, **changes: object) -> str:
    version, payload, mac = token.split(".")
    said = msgspec.json.decode(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    text = urlsafe_b64encode(msgspec.json.encode({**said, **changes})).rstrip(b"=").decode()
    return f"{version}.{text}.{mac}"


@pytest.mark.covers("HOLD-SEC-01")
@pytest.mark.parametrize(
    "changes",
    [
        {"to": "user:eve"},
        {"exp": 9_999_999_999},
        {"purpose": "decide"},
        {"epoch": 2},
        {"key": "k9"},
        {"tenant": "other"},
        {"decisions": None},
        {"hold": "x"},
        {"jti": "again"},
    ],
)
def test_token_is_forged_when_anything_in_it_was_changed(changes):
    token = mint(a_row(), LinkGrant(to=DANA, decisions=("reject",)), KEY, NOW)
    with pytest.raises(LinkInvalidError, match="link is not valid"):
        read(_with(token, **changes), [KEY], NOW)


@pytest.mark.covers("HOLD-SEC-01")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda t: "",
        lambda t: t[:-1],
        lambda t: t + "A",
        lambda t: t + "=",
        lambda t: t.replace("v1.", "v0.", 1),
        lambda t: t.replace("v1.", "", 1),
        lambda t: t.rpartition(".")[0] + ".",
        lambda t: t.rpartition(".")[0],
        lambda t: "v1.e30." + t.rpartition(".")[2],
        lambda t: "v1." + "A" * 100_000 + ".AAAA",
        lambda t: t.replace(".", "\u0660."),
        lambda t: " " + t,
    ],
)
def test_token_is_forged_when_it_is_spelled_otherwise(spoil):
    token = mint(a_row(), LinkGrant(to=DANA), KEY, NOW)
    with pytest.raises(LinkInvalidError):
        read(spoil(token), [KEY], NOW)


@pytest.mark.covers("HOLD-SEC-01")
def test_token_is_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or a == b)
    token = mint(a_row(), LinkGrant(to=DANA), KEY, NOW)
    read(token, [KEY], NOW)
    with pytest.raises(LinkInvalidError):
        read(token, [], NOW)
    assert len(compared) == 2


@pytest.mark.covers("HOLD-SEC-01", "HOLD-NOTE-06")
def test_keys_rotate_by_their_names(monkeypatch):
    old, new = new_key(), new_key()
    token = mint(a_row(), LinkGrant(to=DANA), old, NOW)
    monkeypatch.setenv("HOLDFAST_LINK_KEYS", f"{key_text(new)}, {key_text(old)}")
    both = keys_from_environment()
    assert both == (new, old)
    assert read(token, both, NOW).key == old.id
    with pytest.raises(LinkInvalidError):
        read(token, [new], NOW)
    assert str(old.secret) not in repr(old)


@pytest.mark.parametrize("text", ["nonsense", "k1:short", f":{b64encode(b'1' * 32).decode()}", "k1:???"])
def test_keys_that_are_none_are_refused_without_being_shown(text):
    with pytest.raises(SettingsError) as wrong:
        keys_from_environment(text)
    assert text not in str(wrong.value)


# ---------------------------------------------------------------------- what a link can do


async def _scene_link(it, row, **grant):
    doors = Links(HoldContext(it.store))
    return doors, await doors.make(row, LinkGrant(**{"to": DANA, "purpose": "decide", **grant}))


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/holds.db"


@pytest.mark.covers("HOLD-SEC-02", "HOLD-NOTE-06", "HOLD-SEC-03")
async def test_link_decides_once_and_says_how_the_person_came(store):
    async with scene(store=store) as it:
        row = await it.ask()
        doors, token = await _scene_link(it, row)
        assert (await doors.look(token)).way == "decide"
        resolved = await doors.decide(token, APPROVE)
        said = resolution_of(resolved.row)
        assert (said["decision"], said["auth_method"], said["channel"]) == ("approve", "link", "link")
        assert resolved.row.resolved_by == DANA
        assert (await doors.look(token)).way == "over"
        with pytest.raises(HoldDecidedError, match="approve"):
            await doors.decide(token, Submission(decision="reject"))


@pytest.mark.covers("HOLD-SEC-02")
async def test_looking_decides_nothing_however_often_it_is_opened(store):
    async with scene(store=store) as it:
        row = await it.ask()
        doors, token = await _scene_link(it, row)
        for _ in range(5):
            await doors.look(token)
        assert await it.row(row) == row
        assert (await it.actions(row)).count("link_opened") == 5
        assert (await doors.decide(token, APPROVE)).row.status is HoldStatus.resolved


@pytest.mark.covers("HOLD-SEC-02", "HOLD-NOTE-06")
async def test_link_is_used_up_with_its_decision_when_two_post_at_once(store):
    async with scene(store=store) as it:
        for _ in range(20):
            row = await it.ask()
            doors, token = await _scene_link(it, row)
            both = [doors.decide(token, Submission(decision=each)) for each in ("approve", "reject")]
            found = await asyncio.gather(*both, return_exceptions=True)
            assert sorted(isinstance(each, HoldfastError) for each in found) == [False, True]
            (lost,) = [each for each in found if isinstance(each, Exception)]
            assert isinstance(lost, HoldDecidedError)


@pytest.mark.covers("HOLD-SEC-02", "HOLD-NOTE-06")
async def test_link_is_named_in_the_very_change_that_it_was_used_for(store):
    async with scene(store=store) as it:
        row, other = await it.ask(), await it.ask()
        doors, token = await _scene_link(it, row)
        used = (await doors.look(token)).claims.jti
        change = HoldChange(
            hold=other.id, version=other.version, at=it.clock.now(), fields={"claim_until": 1}, link=used
        )
        await doors.decide(token, APPROVE)
        assert await it.store.change_hold(change) is ChangeRefusal.link_used
        assert await it.row(other) == other


@pytest.mark.covers("HOLD-SEC-02", "HOLD-NOTE-06")
@pytest.mark.parametrize("how", ["reassign", "revoke"])
async def test_links_are_void_when_the_hold_went_on_or_they_were_revoked(how):
    async with scene() as it:
        row = await it.ask()
        doors, token = await _scene_link(it, row)
        if how == "reassign":
            await it.holds.reassign(operator(), row.id, "user:sam@acme.example")
        else:
            await doors.revoke(operator(), row.id)
        for act in (doors.look(token), doors.decide(token, APPROVE)):
            with pytest.raises(LinkInvalidError, match="no longer valid"):
                await act
        assert (await it.row(row)).status is HoldStatus.pending
        assert "refused" in await it.actions(row)


@pytest.mark.covers("HOLD-SEC-02")
async def test_link_decides_nothing_when_the_hold_goes_on_in_the_same_moment(monkeypatch):
    async with scene(assignee="group:finance") as it:
        row = await it.ask()
        doors, token = await _scene_link(it, row)
        inner = doors._read

        async def slow(token):
            found = await inner(token)
            await it.holds.reassign(operator(), row.id, DANA)
            return found

        monkeypatch.setattr(doors, "_read", slow)
        with pytest.raises(HoldReassignedError):
            await doors.decide(token, APPROVE)


@pytest.mark.covers("HOLD-SEC-03")
@pytest.mark.parametrize(
    ("hold", "way"),
    [
        ({"priority": "low"}, "decide"),
        ({"priority": "normal"}, "decide"),
        ({"priority": "high"}, "login"),
        ({"priority": "critical"}, "login"),
        ({"priority": "low", "links": "login_required"}, "login"),
        ({"priority": "low", "links": "view_only"}, "view"),
        ({"priority": "high", "links": "decide_low_risk"}, "decide"),
    ],
)
async def test_link_is_as_strong_as_the_hold_lets_it_be(hold, way):
    async with scene(**hold) as it:
        row = await it.ask()
        doors, token = await _scene_link(it, row)
        assert (await doors.look(token)).way == way
        if way == "decide":
            assert (await doors.decide(token, APPROVE)).row.status is HoldStatus.resolved
            return
        with pytest.raises(ForbiddenError):
            await doors.decide(token, APPROVE)
        assert (await it.row(row)).status is HoldStatus.pending
        assert "refused" in await it.actions(row)


@pytest.mark.covers("HOLD-SEC-03")
async def test_link_of_an_important_hold_decides_when_its_own_user_is_signed_in():
    async with scene(priority="critical") as it:
        row = await it.ask()
        doors, token = await _scene_link(it, row)
        eve = Actor(id="user:eve@acme.example", auth_method="session", channel="inbox")
        with pytest.raises(LinkInvalidError, match="another person"):
            await doors.decide(token, APPROVE, actor=eve)
        dana = Actor(id="user:Dana@acme.example", auth_method="session", channel="inbox")
        said = resolution_of((await doors.decide(token, APPROVE, actor=dana)).row)
    assert said["auth_method"] == "session"


@pytest.mark.covers("HOLD-SEC-01")
async def test_link_gives_no_more_than_its_purpose_and_its_decisions():
    async with scene() as it:
        row = await it.ask()
        doors, view = await _scene_link(it, row, purpose="view")
        with pytest.raises(LinkInvalidError, match="only shows"):
            await doors.decide(view, APPROVE)
        _, only_no = await _scene_link(it, row, decisions=("reject",))
        with pytest.raises(LinkInvalidError, match="reject"):
            await doors.decide(only_no, APPROVE)
        _, eve = await _scene_link(it, row, to="user:eve@acme.example")
        with pytest.raises(ForbiddenError):
            await doors.decide(eve, APPROVE)
        assert (await it.row(row)).status is HoldStatus.pending


@pytest.mark.covers("HOLD-SEC-01")
async def test_link_of_one_tenant_opens_nothing_of_another():
    async with scene() as it:
        row = await it.ask()
        doors, token = await _scene_link(it, row)
        foreign = await doors.keys.rotate("other")
        forged = mint(
            msgspec.structs.replace(row, tenant="other"), LinkGrant(to=DANA), foreign, it.clock.now()
        )
        with pytest.raises(LinkInvalidError, match="no longer valid"):
            await doors.look(forged)
        stolen = mint(row, LinkGrant(to=DANA), foreign, it.clock.now())
        with pytest.raises(LinkInvalidError, match="link is not valid"):
            await doors.look(stolen)
        assert (await doors.look(token)).way == "decide"


@pytest.mark.covers("HOLD-NOTE-06")
async def test_keys_in_the_store_rotate_and_are_dropped(store):
    async with scene(store=store) as it:
        row = await it.ask()
        doors, token = await _scene_link(it, row)
        it.clock.advance(seconds=1)
        new = await doors.keys.rotate("default")
        _, later = await _scene_link(it, row)
        assert (await doors.keys.all("default"))[0].id == new.id
        assert (await doors.look(later)).claims.key == new.id
        old = (await doors.look(token)).claims.key
        await doors.keys.delete("default", old)
        with pytest.raises(LinkInvalidError):
            await doors.look(token)
        assert (await doors.look(later)).way == "decide"
