"""What the repository says about itself is so: packages, licence, pages, targets."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src/holdfast"
BIN = ROOT / ".venv/bin"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()

own_environment = pytest.mark.skipif(
    not BIN.exists(), reason="the tests run in an environment of someone else's making"
)


def tool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BIN / words[0], *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=60)


def packages() -> set[str]:
    names = {
        path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    return {name for name in names if not name.startswith("_")}


@own_environment
@pytest.mark.covers("CORE-REPO-01")
def test_packages_import_only_lower_layers() -> None:
    done = tool("lint-imports", "--no-logo", "--no-cache")
    assert done.returncode == 0, done.stdout


@pytest.mark.covers("CORE-REPO-01")
def test_every_package_has_its_layer() -> None:
    layers = re.findall(r"layers =\n((?:    .*\n)+)", (ROOT / ".importlinter").read_text())
    own, clients = (set(re.findall(r"\((\w+)\)", each)) for each in layers)
    assert packages() <= own | {"client"}
    assert packages() <= clients  # all above the client but what it stands on


@own_environment
@pytest.mark.covers("CORE-REPO-03")
@pytest.mark.parametrize("words", [("format", "--check"), ("check",)], ids=lambda words: words[0])
def test_ruff_has_nothing_to_say(words: tuple[str, ...]) -> None:
    done = tool("ruff", *words, "--quiet", ".")
    assert done.returncode == 0, done.stdout


@pytest.mark.covers("CORE-REPO-05")
def test_licence_is_apache_in_file_and_metadata() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text.splitlines()[1]
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert PROJECT["project"]["license-files"] == ["LICENSE"]


@pytest.mark.covers("CORE-REPO-06")
def test_readme_says_what_it_is_and_starts_with_commands_that_exist() -> None:
    text = (ROOT / "README.md").read_text()
    said = text.split("## ", 1)[0]
    assert "Durable workflows in Python" in said
    targets = re.findall(r"\bmake ([a-z]+)\b", text)
    assert {"demo", "test"} <= set(targets)
    assert [name for name in targets if f"\n{name}:" not in MAKEFILE and name not in ("and",)] == []


@pytest.mark.covers("CORE-REPO-07")
def test_the_table_of_packages_has_every_package() -> None:
    order = (ROOT / "CONTRIBUTING.md").read_text().split("## Packages", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in order.splitlines() if line.startswith("|")]
    named = set(re.findall(r"`(\w+)(?:/|\.py|`)", " ".join(row.split("|")[2] for row in rows)))
    assert packages() - named == set()


@pytest.mark.covers("CORE-REPO-08")
def test_changelog_tells_what_is_not_released_yet() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    unreleased = text.split("## [Unreleased]", 1)[1].split("\n## ", 1)[0]
    assert re.search(r"^### (Added|Changed|Fixed|Removed)\n\n- ", unreleased, re.MULTILINE)


@pytest.mark.covers("CORE-REPO-09")
def test_decisions_are_numbered_without_a_gap_and_say_what_was_decided() -> None:
    pages = sorted((ROOT / "docs/adr").glob("*.md"))
    assert len(pages) >= 5
    for number, page in enumerate(pages, 1):
        head, _, rest = page.read_text().partition("\n")
        assert page.name.startswith(f"{number:04d}-")
        assert head.startswith(f"# {number}. ")
        assert len(rest.split()) > 50, f"{page.name} decides nothing"


@pytest.mark.covers("CORE-REPO-10")
@pytest.mark.parametrize(
    ("target", "layer", "work"),
    [("demo", "runtime", "holdfast.demo"), ("test", "dev", "pytest"), ("check", "dev", "tools/check.py")],
)
def test_target_sets_up_its_environment_before_it_works(target: str, layer: str, work: str) -> None:
    # As if typed by hand, also when make itself runs the tests.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", target, f"PYTHON={sys.executable}"],
        cwd=ROOT, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == f"{sys.executable} tools/setup.py {layer}"
    # The demo builds the web app before, if that is not there.
    assert any(work in line for line in lines[1:])


@pytest.mark.covers("CORE-REPO-11")
@pytest.mark.parametrize("breaks", ["", "check", "test", "slow", "partners"])
def test_ci_calls_check_and_test_and_fails_when_one_does(tmp_path: Path, breaks: str) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/run").write_text((ROOT / ".ci/run").read_text())
    fake = tmp_path / "bin/make"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$*" >> "$PWD/called"\n[ "$1" != "{breaks}" ]\n')
    fake.chmod(0o755)
    apt = tmp_path / "bin/apt-get"  # it has one lock for the whole machine
    apt.write_text("#!/bin/sh\n")
    apt.chmod(0o755)
    env = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", ".ci/run"], cwd=tmp_path, env=env, capture_output=True, text=True)
    called = [line.split()[0] for line in (tmp_path / "called").read_text().splitlines()]
    # Tests that failed are run once more, alone; what fails twice has failed.
    tests = [each for name in ("test", "slow") for each in [name] * (2 if breaks == name else 1)]
    assert called == ["check", *tests, "partners"]
    assert (done.returncode == 0) is (breaks == "")


@pytest.mark.covers("CORE-REPO-12")
def test_nothing_in_the_product_imports_the_test_kit() -> None:
    product = [path for path in SOURCE.rglob("*.py") if SOURCE / "testing" not in path.parents]
    assert len(product) > 50
    assert [str(path) for path in product if any(map(of_the_test_kit, imported(path)))] == []


def of_the_test_kit(name: str) -> bool:
    return name == "holdfast.testing" or name.startswith("holdfast.testing.")


def imported(path: Path) -> Iterator[str]:
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if "testing" in text else ():
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.covers("CORE-REPO-02")
def test_types_are_strict_on_src_and_part_of_what_must_pass() -> None:
    """Running it takes too long for a test: `make check` does, and nothing lands without that."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pyright"]
    assert settings["strict"] == ["src", "examples"]
    loose = [
        p for p in (ROOT / "src").rglob("*.py") if re.search(r"# pyright: (basic|standard)", p.read_text())
    ]
    assert loose == []
    assert '"pyright"' in (ROOT / "tools/check.py").read_text()
    assert "stage make check" in (ROOT / ".ci/run").read_text()


def test_the_readme_lists_every_extra() -> None:
    listed = re.search(
        r"^Extras: ((?:`[a-z0-9-]+`(?:, )?)+)\.", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert listed is not None
    assert re.findall("`([a-z0-9-]+)`", listed[1]) == sorted(PROJECT["project"]["optional-dependencies"])
