"""A hold says which of its exclusions exclude nobody."""

from __future__ import annotations

import pytest

from tests.api.harness import harness_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHECK-16")]
GROUP = "group:tradrs has no effect as an exclusion: the directory does not have it"
STARTER = "no initiator is excluded, because the starter of the run is not known (started_by)"


@pytest.mark.parametrize(
    ("exclude", "started_by", "said"),
    [
        (["group:tradrs"], "user:ada", [GROUP]),
        (["group:tradrs", "initiator"], None, [STARTER, GROUP]),
        (["group:traders", "role:cfo", "user:nobody", "initiator"], "user:ada", []),
    ],
)
async def test_hold_names_an_excluded_group_that_the_directory_does_not_have(
    exclude: list[str], started_by: str | None, said: list[str]
) -> None:
    async with harness_of() as harness:
        hold = await harness.asks(
            assignee="group:finance", approval={"exclude": exclude}, started_by=started_by
        )
        shown = await harness.ask("kim-admin", "GET", f"/v1/holds/{hold.id}")
    assert shown["why"] == "; ".join(("flow refund asks group:finance", *said))


async def test_hold_says_that_its_question_lacks_a_value_and_is_silent_about_details() -> None:
    async with harness_of() as harness:
        hold = await harness.asks(assignee="group:finance", prompt="Pay {{ammount}}?", context={"x": "{{y}}"})
        shown = await harness.ask("kim-admin", "GET", f"/v1/holds/{hold.id}")
    assert shown["why"] == "flow refund asks group:finance; prompt: {{ammount}} has no value"


async def test_excluded_groups_are_not_looked_up_without_a_directory() -> None:
    async with harness_of(directory=None) as harness:
        hold = await harness.asks(assignee="group:finance", approval={"exclude": ["group:tradrs"]})
    assert hold.terms.warnings == ()
