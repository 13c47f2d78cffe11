"""The environments of partners (tools/partners.py): what is installed in them, and that their tests run."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.services import absent
from tools import partners, setup
from tools.partners import OPENAI, PARTNERS, Partner

ROOT = Path(__file__).parents[2]
OUTSIDE = [each for each in PARTNERS if each.typed and each.bound == "newest"]
"""Partners that the dev environment does not have at all."""


@pytest.mark.covers("IN-1")
@pytest.mark.parametrize("extra", ["langgraph", "pydantic-ai", "openai-agents"])
def test_the_lowest_and_the_newest_that_an_extra_allows_are_tested(extra: str) -> None:
    """The newest of those in the dev lock is the lock's: `make lock ARGS=--upgrade` takes it."""
    bounds = {each.bound for each in PARTNERS if f"extra:{extra}" in each.asked}
    assert bounds == ({"lowest", "newest"} if extra in setup.UNLOCKED_EXTRAS else {"lowest"})
    if extra not in setup.UNLOCKED_EXTRAS:
        (package, *_) = partners.PROJECT["project"]["optional-dependencies"][extra]
        assert partners.name_of(package) in partners.pins()


@pytest.mark.covers("IN-1", "IN-81")
@pytest.mark.parametrize("partner", PARTNERS, ids=lambda each: each.label)
def test_an_environment_has_the_range_of_its_extra_and_the_lock_for_the_rest(partner: Partner) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    found = partners.requirements(partner)
    own = [
        line
        for each in partner.asked
        for line in (extras[each.removeprefix("extra:")] if each.startswith("extra:") else [each])
    ]
    assert found[: len(own)] == own
    names = [partners.name_of(line) for line in found]
    assert len(names) == len(set(names))
    needed = {partners.name_of(line) for line in partners.PROJECT["project"]["dependencies"]}
    if sys.version_info < (3, 14):
        assert needed <= set(names)
    loose = [line for line in found[len(own) :] if not re.search("==[0-9]", line)]
    assert {partners.name_of(line) for line in loose} == set(partner.free)


def test_what_an_environment_runs_is_there() -> None:
    for partner in PARTNERS:
        for path in (*partner.tests, *partner.pages, *partner.typed):
            assert (ROOT / path.partition("::")[0]).exists(), path
    excluded = partners.PROJECT["tool"]["pyright"]["exclude"]
    assert {path for each in PARTNERS for path in each.typed} <= set(excluded)


def test_partners_are_part_of_what_must_pass() -> None:
    assert "stage make partners" in (ROOT / ".ci/run").read_text()
    assert "tools/partners.py run" in (ROOT / "Makefile").read_text()


def test_an_unknown_partner_is_refused_with_those_that_there_are() -> None:
    command = [sys.executable, "tools/partners.py", "run", "openai"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert said.stderr.startswith("no partner named openai; there are ")


def test_a_partner_that_is_not_on_the_index_is_told_and_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partners, "PLACE", tmp_path)
    monkeypatch.setenv("UV_OFFLINE", "1")
    absent_one = OPENAI._replace(name="nothing", asked=("no-such-distribution-here>=1",))
    why = partners.make(absent_one)
    assert why.startswith("not installed: ")
    assert not partners.is_current(absent_one)


def test_tests_that_are_all_skipped_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this environment, which does not have the partner."""
    monkeypatch.setattr(Partner, "python", Path(sys.executable))
    skipped = OPENAI._replace(pages=(), tests=("tests/integrations/openai_agents/test_kill.py",))
    assert not partners.run_tests(skipped, "-n", "0")


@pytest.mark.covers("USERS-OPENAI")
@pytest.mark.parametrize("partner", OUTSIDE, ids=lambda each: each.name)
def test_the_tests_of_a_partner_outside_the_lock_pass_where_it_is_installed(partner: Partner) -> None:
    """`make partners` runs all of them, also those with many processes."""
    if not partners.is_current(partner):
        absent("partners", f"{partner.name} is not installed: make partners")
    assert partners.run_tests(partner, "-n", "0", "-m", "not soak")
