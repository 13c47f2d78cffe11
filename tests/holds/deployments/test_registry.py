"""The registry: versions for good, found by range, yanked and put back, each in its tenant."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import InputError, SkillNotFoundError, SkillPublishedError
from holdfast.holds.deployments import version_ranges
from holdfast.types.skill import SkillTool, digest_of

pytestmark = pytest.mark.anyio

TOOLS: Any = ["look", {"name": "pay", "settings": {"limit": 5}}]


@pytest.mark.covers("HOLD-SKILL-01")
async def test_a_version_is_published_once_and_never_changes(hf: Holdfast) -> None:
    skills = await hf.skills()
    first = await skills.publish(
        "refunds", "1.0.0", instructions="Be kind.", tools=TOOLS,
        description="How to refund.", data={"limit": 100}, by="user:dana@acme",
    )  # fmt: skip

    again = await skills.publish(
        "refunds", "1.0.0", instructions="Be kind.", tools=TOOLS,
        description="How to refund.", data={"limit": 100}, by="user:sam@acme",
    )  # fmt: skip
    with pytest.raises(SkillPublishedError, match=r"refunds@1.0.0 is published already"):
        await skills.publish("refunds", "1.0.0", instructions="Be strict.")

    kept = await skills.get("refunds", "1.0.0")
    assert kept == first == again
    assert kept.tools == (SkillTool("look"), SkillTool("pay", settings={"limit": 5}))
    assert kept.digest == digest_of(kept)
    assert (kept.published_by, kept.instructions) == ("user:dana@acme", "Be kind.")


@pytest.mark.covers("HOLD-SKILL-01")
async def test_one_of_two_publishers_wins_when_both_publish_at_once(hf: Holdfast) -> None:
    skills = await hf.skills()

    found = await asyncio.gather(
        *(skills.publish("refunds", "1.0.0", instructions=f"Say {n}.") for n in range(8)),
        return_exceptions=True,
    )

    won = [each for each in found if not isinstance(each, BaseException)]
    assert len(won) == 1
    assert all(isinstance(each, SkillPublishedError) for each in found if each is not won[0])
    assert await skills.get("refunds", "1.0.0") == won[0]


@pytest.mark.covers("HOLD-SKILL-01")
async def test_a_range_finds_the_newest_version_that_was_not_yanked(hf: Holdfast) -> None:
    skills = await hf.skills()
    for version in ("1.2.0", "1.10.0", "1.9.0", "2.0.0", "2.1.0-rc.1"):
        await skills.publish("refunds", version, instructions=version)

    assert (await skills.resolve("refunds", "^1")).version == "1.10.0"
    assert (await skills.resolve("refunds")).version == "2.0.0"
    assert (await skills.resolve("refunds", "2.1.0-rc.1")).version == "2.1.0-rc.1"
    yanked = await skills.yank("refunds", "1.10.0", reason="wrong limit", by="user:dana@acme")
    assert (yanked.is_yanked, yanked.yanked_by, yanked.yanked_reason) == (
        True,
        "user:dana@acme",
        "wrong limit",
    )
    assert (await skills.resolve("refunds", "^1")).version == "1.9.0"
    assert (await skills.get("refunds", "1.10.0")).instructions == "1.10.0"
    with pytest.raises(SkillNotFoundError, match=r"known versions: .*1\.10\.0 \(yanked\)"):
        await skills.resolve("refunds", "1.10.0")
    await skills.restore("refunds", "1.10.0")
    assert (await skills.resolve("refunds", "^1")).version == "1.10.0"
    assert [skill.version for skill in await skills.list("refunds")] == [
        "1.2.0", "1.9.0", "1.10.0", "2.0.0", "2.1.0-rc.1",
    ]  # fmt: skip


@pytest.mark.covers("HOLD-SKILL-01")
async def test_a_tenant_has_skills_of_its_own(hf: Holdfast) -> None:
    skills = await hf.skills()
    await skills.publish("refunds", "1.0.0", instructions="ours", tenant="acme")
    await skills.publish("refunds", "1.0.0", instructions="theirs", tenant="globex")

    assert (await skills.get("refunds", "1.0.0", tenant="acme")).instructions == "ours"
    assert await skills.list() == []
    with pytest.raises(SkillNotFoundError, match="and no other version"):
        await skills.resolve("refunds")


@pytest.mark.covers("HOLD-SKILL-01")
@pytest.mark.parametrize(
    ("name", "version", "more"),
    [
        ("Refunds!", "1.0.0", {}),
        ("", "1.0.0", {}),
        ("refunds", "1.0", {}),
        ("refunds", "one", {}),
        ("refunds", "1.0.0", {"tools": [{"nome": "pay"}]}),
        ("refunds", "1.0.0", {"tools": [7]}),
        ("refunds", "1.0.0", {"instructions": 7}),
        ("refunds", "1.0.0", {"data": {"x": object()}}),
        ("refunds", "1.0.0", {"instructions": "x" * 1_100_000}),
    ],
)
async def test_what_is_no_skill_is_refused(name: str, version: str, more: dict[str, Any]) -> None:
    async with Holdfast("memory:") as hf:
        skills = await hf.skills()
        with pytest.raises(InputError):
            await skills.publish(name, version, **more)
        assert await skills.list() == []


@pytest.mark.covers("HOLD-SKILL-01")
@pytest.mark.parametrize(
    ("versions", "found"),
    [
        ("", "3.0.1"), ("latest", "3.0.1"), ("*", "3.0.1"), ("^1.2", "1.10.0"), ("~1.2", "1.2.9"),
        ("1.2", "1.2.9"), ("1.*", "1.10.0"), ("1.2.x", "1.2.9"), (">=1.2, <2", "1.10.0"), ("<=1.2", "1.2.9"),
        (">1.2,<2", "1.10.0"), ("<1.2", "1.1.0"), ("^0.3", "0.3.5"), ("^0.0.2", "0.0.2"), ("~1", "1.10.0"),
        ("1.2.0", "1.2.0"), ("^4", None), ("9.9.9", None), (">3.0.1", None),
    ],
)  # fmt: skip
def test_a_range_means_the_versions_that_it_says(versions: str, found: str | None) -> None:
    known = [
        "0.0.2",
        "0.0.3",
        "0.3.1",
        "0.3.5",
        "0.4.0",
        "1.1.0",
        "1.2.0",
        "1.2.9",
        "1.10.0",
        "3.0.1",
        "3.1.0-a",
    ]

    assert version_ranges.newest(versions, known) == found


@pytest.mark.parametrize("versions", ["one", "^", "1.2.3.4", ">=1 <2", "1,,2", "^1.2-rc", "1.0.0 || 2.0.0"])
def test_a_range_that_says_nothing_is_refused(versions: str) -> None:
    with pytest.raises(InputError, match="is not a range of versions"):
        version_ranges.check_range(versions)


def test_a_pre_release_comes_before_its_release() -> None:
    ordered = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0", "1.0.1"]

    assert sorted(set(ordered), key=version_ranges.order_of) == ordered
