"""The apply-patch scenarios of openai/codex, where its checkout is given: HOLDFAST_TEST_CODEX=FOLDER."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from holdfast import ToolError
from tests.agents.coding import tree, use

FOLDER = os.environ.get("HOLDFAST_TEST_CODEX", "")
SCENARIOS = "codex-rs/apply-patch/tests/fixtures/scenarios"
PARTIAL = "015_failure_after_partial_success_leaves_changes"
"""There a patch that fails leaves what it did before; ours checks all of it before it writes anything."""


def scenarios() -> list[str]:
    return sorted(each.name for each in Path(FOLDER, SCENARIOS).iterdir() if each.is_dir()) if FOLDER else []


@pytest.mark.covers("CP2-P4")
@pytest.mark.skipif(not FOLDER, reason="HOLDFAST_TEST_CODEX does not name a checkout of openai/codex")
def test_there_are_all_scenarios_of_the_checkout() -> None:
    assert len(scenarios()) >= 25


@pytest.mark.covers("CP2-P4")
@pytest.mark.parametrize("name", scenarios())
def test_a_scenario_of_codex_leaves_the_files_that_it_expects(name: str, tmp_path: Path) -> None:
    source = Path(FOLDER, SCENARIOS, name)
    if (source / "input").exists():
        shutil.copytree(source / "input", tmp_path, dirs_exist_ok=True)
    before = tree(tmp_path)
    expected = tree(source / "expected") if name != PARTIAL else before
    patch = (source / "patch.txt").read_bytes().decode()
    if expected == before:
        with pytest.raises(ToolError):
            use(tmp_path, "apply_patch", patch=patch)
    else:
        use(tmp_path, "apply_patch", patch=patch)
    assert tree(tmp_path) == expected
