"""Where a directory knows the people: it is asked when somebody acts, and not before."""

from __future__ import annotations

import pytest

from holdfast.errors import InputError, NotAssignedError
from holdfast.holds.directory.absence import Away
from holdfast.holds.directory.admin import Registrar
from holdfast.holds.directory.base import Person
from holdfast.holds.directory.stored import TableDirectory
from holdfast.holds.service import HoldService
from holdfast.types.status import HoldStatus
from holdfast.types.terms import Actor
from tests.holds.actions.scene import ADMIN, Scene, said

pytestmark = pytest.mark.anyio

SAM, FINN, FAY = (Actor(id=f"user:{name}@acme") for name in ("sam", "finn", "fay"))


@pytest.fixture
async def people(scene: Scene) -> Registrar:
    store = scene.holds.store
    registrar = Registrar(store)
    for name in ("sam", "finn", "fay", "ada"):
        await registrar.put_person("default", Person(id=name, email=f"{name}@acme"))
    await registrar.put_group("default", "finance", ["sam", "finn", "fay"])
    scene.holds = HoldService(store, directory=TableDirectory(store))
    return registrar


@pytest.mark.covers("AS-11", "HOLD-SEC-09")
async def test_who_has_left_the_group_may_not_decide_any_more(scene: Scene, people: Registrar) -> None:
    row = await scene.asks(assignee="group:finance")
    assert [each.id for each in (await scene.holds.list(SAM, view="groups")).rows] == [row.id]
    await people.leave("default", "group:finance", "sam")
    boasting = Actor(id="user:sam@acme", groups=frozenset({"finance"}))
    with pytest.raises(NotAssignedError):
        await scene.holds.resolve(boasting, row.id, "approve")
    assert (await scene.holds.list(boasting, view="groups")).rows == ()
    done = await scene.holds.resolve(FINN, row.id, "approve")
    assert said(done.row)["members"]["groups"] == ["finance"]


@pytest.mark.covers("RS-10")
async def test_a_quorum_of_a_group_ends_when_its_members_cannot_reach_it(
    scene: Scene, people: Registrar
) -> None:
    terms = {"mode": "quorum", "need": 2, "of": ["group:finance"]}
    row = await scene.asks(assignee="group:finance", options=["approve", "reject", "later"], approval=terms)
    await scene.holds.vote(SAM, row.id, "approve")
    await scene.holds.vote(FINN, row.id, "later")
    ended = await scene.holds.vote(FAY, row.id, "reject")
    assert (ended.row.status, said(ended.row)["decision"]) == (HoldStatus.resolved, "reject")


@pytest.mark.covers("AS-8", "RA-3")
async def test_whom_the_directory_does_not_know_gets_nothing(scene: Scene, people: Registrar) -> None:
    row = await scene.asks(assignee="user:sam@acme")
    for who in (SAM, ADMIN):
        with pytest.raises(InputError, match="is not in the directory"):
            await scene.holds.reassign(who, row.id, "user:nobody@acme")
    assert (await scene.holds.get(SAM, row.id)).assignee == "user:sam@acme"


@pytest.mark.covers("HOLD-LIFE-01")
async def test_a_substitute_decides_on_behalf_of_who_is_away(scene: Scene, people: Registrar) -> None:
    row = await scene.asks(assignee="user:sam@acme")
    with pytest.raises(NotAssignedError):
        await scene.holds.resolve(FAY, row.id, "approve")
    await people.put_away("default", "sam", Away(substitute="fay"))
    assert [each.id for each in (await scene.holds.list(FAY)).rows] == [row.id]
    # And is told so; the others are told only of whom it is asked.
    assert await scene.holds.why(FAY, row.id) == (
        f"flow {row.flow} asks user:sam@acme; you are the substitute of user:sam"
    )
    assert await scene.holds.why(SAM, row.id) == f"flow {row.flow} asks user:sam@acme"
    assert await scene.holds.why(ADMIN, row.id) == f"flow {row.flow} asks user:sam@acme"
    done = said((await scene.holds.resolve(FAY, row.id, "approve")).row)
    assert (done["authority"], done["on_behalf_of"], done["resolved_by"]) == (
        "substitute",
        "user:sam",
        "user:fay@acme",
    )
