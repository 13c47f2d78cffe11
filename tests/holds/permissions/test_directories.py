from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.errors import (
    ConflictError,
    DirectoryUnavailableError,
    InputError,
    NotFoundError,
    SettingsError,
)
from holdfast.holds.directory.absence import Away
from holdfast.holds.directory.admin import Registrar
from holdfast.holds.directory.base import Circle, Directory, Memberships, Person
from holdfast.holds.directory.external import Lookups, OutsideDirectory
from holdfast.holds.directory.file import FileDirectory
from holdfast.holds.directory.stored import TableDirectory
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from tests.holds.permissions.people import LATER, NOW, Firm, actor, hold_for, judge

pytestmark = pytest.mark.anyio

FILE = """
[[people]]
id = "dana"
email = "Dana@acme"
[people.away]
substitute = "sam@acme"
until = 1970-01-01T00:00:02Z

[[people]]
id = "sam"
email = "sam@acme"

[groups]
finance = ["dana"]
[roles]
cfo = ["sam@acme"]

[[tenants.other.people]]
id = "dana"
[tenants.other.groups]
spies = ["dana"]
"""


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    address = "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/people.db"
    opened = await open_store(address)
    yield opened
    await opened.close()


async def in_tables(store: Store) -> tuple[TableDirectory, Registrar]:
    clerk = Registrar(store)
    await clerk.put_person("default", Person(id="dana", email="Dana@acme"))
    await clerk.put_person("default", Person(id="sam", email="sam@acme"))
    await clerk.put_group("default", "finance", ["dana@ACME"])
    await clerk.put_role("default", "cfo", ["sam"])
    await clerk.put_away("default", "dana", Away(substitute="sam@acme", until=LATER))
    await clerk.put_person("other", Person(id="dana"))
    await clerk.put_group("other", "spies", ["dana"])
    return TableDirectory(store), clerk


async def answers_as_any_directory(found: Directory) -> None:
    dana = await found.person("default", "DANA@acme")
    assert dana is not None
    assert dana.id == "dana"
    assert await found.person("default", "nobody") is None
    assert await found.person("elsewhere", "dana") is None
    for ref in ("dana", "user:dana", "dana@acme"):
        assert await found.memberships("default", ref) == Memberships(frozenset({"finance"}))
    assert await found.memberships("default", "sam") == Memberships(frozenset(), frozenset({"cfo"}))
    assert await found.memberships("default", "nobody") == Memberships()
    assert await found.memberships("other", "dana") == Memberships(frozenset({"spies"}))
    assert await found.group("default", "spies") is None
    assert await found.group("default", "Finance") is None
    role = await found.role("default", "cfo")
    assert role is not None
    assert len(role.members) == 1
    assert [each.id for each in await found.stands_in_for("default", "sam", NOW)] == ["dana"]
    assert not await found.stands_in_for("default", "sam", LATER)
    assert not await found.stands_in_for("default", "dana", NOW)
    assert not await found.stands_in_for("default", "nobody", NOW)


# ---------------------------------------------------------------------- a file


@pytest.mark.covers("HOLD-AUTH-01")
async def test_file_answers_as_any_directory_in_toml_json_and_yaml(tmp_path: Path) -> None:
    import json
    import tomllib

    toml = tmp_path / "people.toml"
    toml.write_text(FILE)
    await answers_as_any_directory(FileDirectory(toml))
    as_json = tmp_path / "people.json"
    as_json.write_text(json.dumps(tomllib.loads(FILE), default=lambda at: at.isoformat()))
    await answers_as_any_directory(FileDirectory(as_json))
    as_yaml = tmp_path / "people.yaml"
    as_yaml.write_text(as_json.read_text())  # JSON is YAML
    await answers_as_any_directory(FileDirectory(as_yaml))


@pytest.mark.covers("HOLD-AUTH-01", "AS-11")
async def test_file_is_read_again_when_it_changes_and_trusted_no_more_when_it_is_broken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "people.toml"
    path.write_text(FILE)
    found, dana, hold = FileDirectory(path), actor("user:dana@acme"), hold_for("group", "finance")
    assert (await judge(found, dana, "resolve", hold)).allowed

    replace(path, FILE.replace('finance = ["dana"]', 'finance = ["sam"]'))
    assert (await judge(found, dana, "resolve", hold)).code == "not_assigned"

    replace(path, FILE.replace("[groups]", "[groups"))
    with caplog.at_level(logging.ERROR, "holdfast"):
        refused = await judge(found, actor("user:sam@acme"), "resolve", hold)
    assert not refused.allowed
    assert "is not valid" in refused.why
    assert "no memberships count" in caplog.text

    replace(path, FILE)
    assert (await judge(found, dana, "resolve", hold)).allowed


def replace(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


@pytest.mark.covers("HOLD-AUTH-01")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[people]]\nname = 'x'", "id"),
        ("[groups]\nfinance = ['ghost']", "ghost"),
        ("[[people]]\nid='a'\n[[people]]\nid='a'", "a is defined twice"),
        ("[[people]]\nid='a'\nemail='x@y'\n[[people]]\nid='X@Y'", "x@y is defined twice"),
        ("[[people]]\nid='a'\nage=3", "age"),
        ("[[people]]\nid='a'\n[people.away]\nsubstitute='a'\nuntil=2026-01-01T00:00:00", "timezone"),
        ("[groups", "is not valid"),
    ],
)
def test_file_that_makes_no_sense_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "people.toml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        FileDirectory(path)
    assert says in str(caught.value)
    assert "people.toml" in str(caught.value)


def test_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.toml"):
        FileDirectory(tmp_path / "nowhere.toml")


# ---------------------------------------------------------------------- tables


@pytest.mark.covers("HOLD-AUTH-02")
async def test_tables_answer_as_any_directory(store: Store) -> None:
    found, _ = await in_tables(store)
    await answers_as_any_directory(found)


@pytest.mark.covers("HOLD-AUTH-02", "AS-11")
async def test_a_caller_who_leaves_the_tables_is_a_member_no_more(store: Store) -> None:
    found, clerk = await in_tables(store)
    dana, hold = actor("user:dana@acme"), hold_for("group", "finance")
    assert (await judge(found, dana, "resolve", hold)).allowed
    await clerk.leave("default", "group:finance", "dana")
    assert not (await judge(found, dana, "resolve", hold)).allowed
    await clerk.join("default", "group:finance", "dana")
    await clerk.join("default", "group:finance", "dana@acme")
    assert await found.group("default", "finance") == Circle(key="finance", members=("dana",))
    assert await clerk.delete_person("default", "dana@acme")
    assert not (await judge(found, dana, "resolve", hold)).allowed
    assert await found.person("default", "dana@acme") is None
    assert await found.group("default", "finance") == Circle(key="finance")
    assert not await clerk.delete_person("default", "dana")
    assert await found.memberships("other", "dana") == Memberships(frozenset({"spies"}))


@pytest.mark.covers("HOLD-AUTH-02")
async def test_person_of_the_tables_changes_their_address_and_keeps_their_place(store: Store) -> None:
    found, clerk = await in_tables(store)
    await clerk.put_person("default", Person(id="dana", email="dana@new"))
    assert await found.person("default", "dana@acme") is None
    assert (await found.memberships("default", "dana@new")).groups == {"finance"}
    await clerk.back("default", "dana@new")
    assert not await found.stands_in_for("default", "sam", NOW)
    assert [each.id for each in await found.people("default")] == ["dana", "sam"]
    assert [each.key for each in await found.groups("default")] == ["finance"]
    assert [each.key for each in await found.roles("default")] == ["cfo"]


@pytest.mark.covers("HOLD-AUTH-02")
async def test_tables_take_one_person_for_one_name(store: Store) -> None:
    _, clerk = await in_tables(store)
    for other in (Person(id="eve", email="DANA@acme"), Person(id="dana@acme"), Person(id="eve", email="x")):
        with pytest.raises((ConflictError, InputError)):
            await clerk.put_person("default", other)
    for name in ("", "group:x", "a\nb"):
        with pytest.raises(InputError):
            await clerk.put_person("default", Person(id=name))
    with pytest.raises(NotFoundError, match="eve"):
        await clerk.put_group("default", "finance", ["eve"])
    with pytest.raises(InputError, match="their own substitute"):
        await clerk.put_away("default", "dana", Away(substitute="dana@acme"))
    with pytest.raises(InputError, match="before it starts"):
        await clerk.put_away("default", "dana", Away(substitute="sam", since=2, until=1))
    with pytest.raises(InputError, match="not a group or role"):
        await clerk.join("default", "finance", "dana")


async def test_two_who_join_at_once_both_do(store: Store) -> None:
    found, clerk = await in_tables(store)
    names = [f"p{number}" for number in range(8)]
    for name in names:
        await clerk.put_person("default", Person(id=name))
    await asyncio.gather(*(Registrar(store).join("default", "group:new", name) for name in names))
    circle = await found.group("default", "new")
    assert circle is not None
    assert sorted(circle.members) == names


# ---------------------------------------------------------------------- outside


@pytest.mark.covers("HOLD-AUTH-03")
async def test_outside_directory_is_asked_once_within_its_time_and_again_after_it() -> None:
    clock, firm = FakeClock(), Firm()
    found = OutsideDirectory(firm, ttl=5, clock=clock)
    sam, hold = actor("user:sam@acme"), hold_for("group", "finance")
    assert (await judge(found, sam, "resolve", hold)).allowed
    assert (await judge(found, sam, "resolve", hold)).allowed
    assert firm.asked == 1
    firm.groups["finance"] = ()
    clock.advance(seconds=5)
    assert not (await judge(found, sam, "resolve", hold)).allowed
    firm.groups["finance"] = ("sam",)
    found.forget()
    assert (await judge(found, sam, "resolve", hold)).allowed


@pytest.mark.covers("HOLD-AUTH-03")
async def test_nobody_is_a_member_while_the_outside_directory_is_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, calls = FakeClock(), list[str]()

    async def person(tenant: str, ref: str) -> Person | None:
        calls.append(ref)
        raise ConnectionError("no route to ldap")

    found = OutsideDirectory(Lookups(person=person), ttl=5, clock=clock)
    sam = actor("user:sam@acme", groups=frozenset({"finance"}))
    with caplog.at_level(logging.ERROR, "holdfast"):
        refused = await judge(found, sam, "resolve", hold_for("group", "finance"))
    assert (refused.allowed, refused.code) == (False, "not_assigned")
    assert "directory is unavailable" in refused.why
    assert "no route to ldap" in caplog.text
    with pytest.raises(DirectoryUnavailableError) as caught:
        await found.person("default", "dana")
    assert caught.value.retryable
    assert calls == ["sam@acme"], "what is down is left alone for a while"
    clock.advance(seconds=5)
    with pytest.raises(DirectoryUnavailableError):
        await found.person("default", "dana")
    assert calls == ["sam@acme", "dana"]


@pytest.mark.covers("HOLD-AUTH-03")
async def test_outside_directory_that_does_not_answer_holds_nobody_up() -> None:
    async def person(tenant: str, ref: str) -> Person | None:
        await asyncio.Event().wait()

    found = OutsideDirectory(Lookups(person=person), time_limit=0.01)
    with pytest.raises(DirectoryUnavailableError, match="TimeoutError"):
        await found.person("default", "dana")


@pytest.mark.covers("HOLD-AUTH-03")
async def test_bare_coroutines_are_a_directory() -> None:
    firm = Firm()
    found = Lookups(person=firm.person, memberships=firm.memberships)
    assert (await judge(found, actor("user:sam"), "resolve", hold_for("group", "finance"))).allowed
    assert await found.group("default", "finance") is None
    assert not await found.stands_in_for("default", "sam", NOW)
