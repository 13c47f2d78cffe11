"""Holds of which much was told: what matters is found behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import FileDirectory, Lookups, OutsideDirectory, Person
from holdfast.errors import DirectoryUnavailableError, HoldReassignedError, InputError, SettingsError
from holdfast.holds.actions.audit_entries import entry
from holdfast.holds.links.tokens import LinkGrant
from holdfast.types.terms import operator
from tests.holds.scenarios.firm import Firm, person

pytestmark = pytest.mark.anyio


@pytest.mark.covers("RS-5", "RA-1")
async def test_who_had_a_hold_learns_that_it_went_on_however_much_was_informed_of_it(firm: Firm) -> None:
    row = await firm.asks(assignee="user:dana")
    lines = [entry(row, "system:notifier", "notified", 0) for _ in range(1100)]
    await firm.holds.store.append_audit("default", lines)
    await firm.holds.reassign(operator(), row.id, "user:kim")
    with pytest.raises(HoldReassignedError):
        await firm.holds.resolve(person("dana"), row.id, "approve")
    assert len(await firm.holds.history(operator(), row.id)) > 1100


@pytest.mark.covers("HOLD-AUTH-03")
async def test_question_that_a_directory_stumbles_over_does_not_shut_everybody_out() -> None:
    async def find(tenant: str, ref: str) -> Person | None:
        if ref == "odd":
            raise KeyError(ref)
        return Person(id=ref)

    directory = OutsideDirectory(Lookups(person=find))
    with pytest.raises(DirectoryUnavailableError):
        await directory.person("default", "odd")
    assert await directory.person("default", "dana") == Person(id="dana")


@pytest.mark.covers("HOLD-SEC-01")
async def test_link_for_a_purpose_that_there_is_none_is_not_made(firm: Firm) -> None:
    row = await firm.asks(assignee="user:dana")
    with pytest.raises(InputError, match="one of view, decide, reply, not 'everything'"):
        await firm.links.make(row, LinkGrant(to="user:dana", purpose="everything"))


@pytest.mark.covers("HOLD-AUTH-01")
async def test_file_of_people_is_refused_with_a_nameless_one_and_not_named_to_who_is_refused(
    tmp_path: Path,
) -> None:
    file = tmp_path / "people.toml"
    file.write_text('[[people]]\nid = " "\n')
    with pytest.raises(SettingsError, match="id"):
        FileDirectory(file)
    file.write_text('[[people]]\nid = "dana"\n')
    directory = FileDirectory(file)
    assert await directory.person("default", "dana") == Person(id="dana")
    file.write_text("broken [")
    with pytest.raises(DirectoryUnavailableError) as refused:
        await directory.person("default", "dana")
    assert "people.toml" not in str(refused.value)
