"""The picture of the packages has every package, and its core is the one that CONTRIBUTING names."""

from __future__ import annotations

import re

import pytest

from tools import docs
from tools.pages import packages


def test_picture_has_every_package_of_the_source() -> None:
    folders = {path.name for path in packages.SOURCE.iterdir() if (path / "__init__.py").exists()}
    modules = {path.stem for path in packages.SOURCE.glob("*.py") if not path.stem.startswith("_")}
    shown = {name.partition(".")[0] for name in (*packages.CORE, *packages.REST)}
    assert shown == folders | modules


@pytest.mark.xdist_group("packages")  # with the test of the page: all imports are read once
def test_core_of_the_picture_imports_nothing_of_the_rest() -> None:
    imports = packages.package_imports()
    assert {name: imports[name] - set(packages.CORE) for name in packages.CORE} == {
        name: set() for name in packages.CORE
    }


@pytest.mark.covers("PLAIN-CORE-02")
def test_contributing_names_the_core_of_the_picture_and_both_pages_show_it() -> None:
    text = (docs.ROOT / "CONTRIBUTING.md").read_text("utf-8")
    line = next(line for line in text.splitlines() if line.startswith("The **core**"))
    assert set(re.findall(r"`([a-z.]+)`", line)) == set(packages.CORE)
    assert "(docs/assets/packages.svg)" in text
    assert "(docs/assets/packages.svg)" in (docs.ROOT / "README.md").read_text("utf-8")
