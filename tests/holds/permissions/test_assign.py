from __future__ import annotations

import logging

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.errors import DirectoryUnavailableError, InputError
from holdfast.holds.permissions.assignees import (
    looks_like_email,
    parse_assignee,
    person_key,
    route,
    same_person,
)
from holdfast.types.terms import ASSIGNEE_TYPES, Assignee
from tests.holds.permissions.people import Firm

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("raw", "kind", "value"),
    [
        pytest.param("user:a@x", "user", "a@x", marks=pytest.mark.covers("AS-1")),
        pytest.param("user:42", "user", "42", marks=pytest.mark.covers("AS-1")),
        pytest.param("group:g", "group", "g", marks=pytest.mark.covers("AS-1")),
        pytest.param("role:tenant_admin", "role", "tenant_admin", marks=pytest.mark.covers("AS-1")),
        pytest.param("user:urn:x:1", "user", "urn:x:1", marks=pytest.mark.covers("AS-1")),
        pytest.param("user:user:x", "user", "user:x", marks=pytest.mark.covers("AS-1")),
        pytest.param("alice@acme", "user", "alice@acme", marks=pytest.mark.covers("AS-2")),
        pytest.param("team:x", "user", "team:x", marks=pytest.mark.covers("AS-3")),
        pytest.param("https://x.example/y", "user", "https://x.example/y", marks=pytest.mark.covers("AS-3")),
        pytest.param(None, "unrouted", "", marks=pytest.mark.covers("AS-4")),
        pytest.param("", "unrouted", "", marks=pytest.mark.covers("AS-4")),
        pytest.param(" \t\n", "unrouted", "", marks=pytest.mark.covers("AS-4")),
        pytest.param("user:", "unrouted", "", marks=pytest.mark.covers("AS-4")),
        pytest.param("group:  ", "unrouted", "", marks=pytest.mark.covers("AS-4")),
        pytest.param("  GROUP : finance\n", "group", "finance", marks=pytest.mark.covers("AS-5")),
        pytest.param("Role:CFO", "role", "CFO", marks=pytest.mark.covers("AS-5", "AS-6")),
        pytest.param("User:Dana@ACME.example", "user", "dana@acme.example", marks=pytest.mark.covers("AS-6")),
        pytest.param("user:DanaB", "user", "DanaB", marks=pytest.mark.covers("AS-6")),
        pytest.param("user:a,user:b", "user", "a,user:b", marks=pytest.mark.covers("AS-7")),
        pytest.param("delegated_user", "delegated_user", "", marks=pytest.mark.covers("AS-9")),
        pytest.param(
            "delegated_user: billing", "delegated_user", "billing", marks=pytest.mark.covers("AS-9")
        ),
    ],
)
def test_assignee_is_read_as_written(raw: str | None, kind: str, value: str) -> None:
    assert parse_assignee(raw) == Assignee(kind, value)


@pytest.mark.parametrize(
    "raw", ["user:a@x\r\nBcc: all@x", "user:a\x00b", "group:a\u202eb", "x" * 501, 7, b"user:a"]
)
def test_assignee_that_nobody_could_see_is_refused_with_what_to_write(raw: object) -> None:
    with pytest.raises(InputError) as caught:
        parse_assignee(raw)  # type: ignore[arg-type]
    assert caught.value.hint is not None
    assert "user:NAME" in caught.value.hint


@pytest.mark.covers("AS-6")
def test_people_are_the_same_by_address_in_any_case_and_by_id_exactly() -> None:
    assert same_person("user:Dana@Acme", "dana@ACME")
    assert not same_person("user:Dana", "user:dana")
    assert not same_person("user:billing", "service:billing")


def test_addresses_have_one_at_sign_and_nothing_hidden() -> None:
    assert looks_like_email("alice@acme")
    for text in ("alice", "@acme", "alice@", "a@b@c", "a b@c", "a@b\n", "a@\u200bb"):
        assert not looks_like_email(text), text


_texts = st.one_of(
    st.none(),
    st.text(max_size=60),
    st.builds(
        "{}{}{}:{}{}".format,
        st.sampled_from(["", " ", "\t"]),
        st.sampled_from(["user", "USER", "group", "role", "delegated_user", "team", "unrouted", ""]),
        st.sampled_from(["", " "]),
        st.sampled_from(["", " ", "\n"]),
        st.text(max_size=20),
    ),
)


@pytest.mark.covers("AS-1", "AS-2", "AS-3", "AS-4", "AS-5")
@given(_texts)
@example("user:user:")
@example("İ@x")
def test_any_text_is_read_or_refused_and_reads_the_same_when_written_out(raw: str | None) -> None:
    try:
        found = parse_assignee(raw)
    except InputError:
        return
    assert found.type in ASSIGNEE_TYPES
    assert found.value == found.value.strip()
    assert (found.type == "unrouted") <= (found.value == "")
    if found.value:
        assert parse_assignee(str(found)) == found
    if found.type == "user":
        assert person_key(f"user:{found.value}") == found.value


@given(st.text(alphabet=st.characters(categories=["L", "N", "P"]), min_size=1, max_size=20))
@pytest.mark.covers("AS-1")
def test_value_keeps_every_colon_after_the_first(value: str) -> None:
    assert parse_assignee(f"group:{value}:{value}").value == f"{value}:{value}"


@pytest.mark.covers("AS-8")
@pytest.mark.parametrize("raw", ["user:nobody@acme", "group:ghosts", "role:king", "team:x", "user:gone"])
async def test_hold_for_somebody_unknown_is_unrouted_with_a_reason_and_a_warning(
    raw: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "holdfast"):
        found = await route(raw, "default", Firm())
    assert found.type == "unrouted"
    assert found.value == ""
    assert found.reason in caplog.text
    assert found.reason


@pytest.mark.covers("AS-8")
async def test_hold_for_somebody_known_stays_theirs_and_without_a_directory_the_text_stands() -> None:
    firm = Firm()
    assert await route("user:DANA@acme", "default", firm) == Assignee("user", "dana@acme")
    assert await route("group:finance", "default", firm) == Assignee("group", "finance")
    assert await route("group:ghosts", "default", None) == Assignee("group", "ghosts")
    assert (await route("group:finance", "other", firm)).type == "unrouted"


@pytest.mark.covers("AS-8")
async def test_hold_for_an_empty_group_stays_with_it_and_is_complained_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    firm = Firm(finance=())
    with caplog.at_level(logging.WARNING, "holdfast"):
        found = await route("group:finance", "default", firm)
    assert (found.type, found.value) == ("group", "finance")
    assert "no members" in found.reason
    assert "no members" in caplog.text


async def test_text_stands_when_the_directory_is_out_of_reach() -> None:
    class Down(Firm):
        async def group(self, tenant: str, key: str) -> None:
            raise DirectoryUnavailableError("away")

    assert await route("group:finance", "default", Down()) == Assignee("group", "finance")


@pytest.mark.covers("AS-9")
async def test_delegated_user_is_the_deployments_or_nobody() -> None:
    assert await route("delegated_user", "default", None, delegation="dep-1") == Assignee(
        "delegated_user", "dep-1"
    )
    found = await route("delegated_user", "default", None)
    assert found.type == "unrouted"
    assert "is not delegated" in found.reason
