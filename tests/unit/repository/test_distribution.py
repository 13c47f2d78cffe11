from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.covers("PLAIN-NAME-06")
def test_distribution_is_holdfast_flow_and_every_hint_says_so() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert settings["project"]["name"] == "holdfast-flow"
    assert settings["project"]["scripts"] == {"holdfast": "holdfast.cli.main:main"}
    # Another project owns `holdfast` on the package index: a hint to install that would be dangerous.
    wrong = re.compile(r"pip install ['\"]?holdfast(?!-flow)\b")
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py"), ROOT / "README.md"]
    history = (ROOT / "docs" / "adr",)
    assert [
        str(page)
        for page in pages
        if not any(folder in page.parents for folder in history) and wrong.search(page.read_text("utf-8"))
    ] == []
