"""Reference pages are made of the code and are fresh; every link leads somewhere; the site builds."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from holdfast.config import ENVIRONMENT
from holdfast.types.event import EVENTS
from tools import docs, pages
from tools.pages import commands, settings

EVENT = re.compile(r"(run|events|node|edge|loop|walk|branch|join|timer|hold|checkpoint|record)\.[a-z_]+")
SOURCES = (
    "model/events.py", "runs/events.py", "runs/cancel.py", "runs/dead_runs.py",
    "holds/actions/audit_entries.py", "store/recovery.py", "store/lost_history.py", "store/unserved.py",
    "runs/engine_moves.py",
)  # fmt: skip


# With the test of the packages (test_packages_picture.py): all imports are read once.
PAGES = [
    pytest.param(path, marks=pytest.mark.xdist_group("packages")) if path.stem == "packages" else path
    for path in pages.pages()
]


@pytest.mark.covers("TOOL-DOCS-05", "TOOL-DOCS-06", "TOOL-DOCS-07", "TOOL-DOCS-08", "TOOL-DOCS-09")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_reference_page_is_the_one_that_the_code_makes(path):
    assert path.exists()
    assert path.read_text("utf-8") == pages.pages()[path](), "run: python tools/docs.py pages"


@pytest.mark.covers("TOOL-DOCS-01")
def test_every_link_of_every_page_leads_somewhere():
    assert docs.broken_links() == []


@pytest.mark.covers("TOOL-DOCS-01")
def test_a_link_to_nowhere_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One\n\n[a](page.md#one) [b](page.md#two) [c](gone.md) [d](https://x.org)\n\n```\n[e](x.md)\n```\n"
    )
    assert [link for link in docs.links(page) if not docs.is_valid_link(page, link)] == [
        "page.md#two",
        "gone.md",
    ]


@pytest.mark.covers("TOOL-DOCS-01")
def test_every_page_has_a_title_and_a_place_in_the_menu():
    assert docs.pages_outside_menu() == []
    listed = " ".join(docs.menu())
    assert all(f'"{page.relative_to(docs.DOCS).as_posix()}"' in listed for page in docs.DOCS.rglob("*.md"))


@pytest.mark.covers("TOOL-DOCS-01")
def test_the_site_builds():
    done = subprocess.run(
        [sys.executable, "tools/docs.py", "build"], cwd=docs.ROOT, capture_output=True, text=True, timeout=290
    )
    assert done.returncode == 0, done.stdout + done.stderr
    home = (docs.SITE / "index.html").read_text("utf-8")
    assert 'href="tutorial.html"' in home
    assert "fonts.googleapis" not in home


@pytest.mark.covers("TOOL-DOCS-09")
def test_every_variable_of_the_environment_that_the_source_names_is_described():
    assert settings.variables_in_source() == {name for name in ENVIRONMENT if name.startswith("HOLDFAST_")}


@pytest.mark.covers("TOOL-DOCS-09")
def test_every_setting_of_runs_is_described():
    assert "|  |" not in settings.page()


@pytest.mark.covers("TOOL-DOCS-07")
def test_every_event_that_the_source_tells_is_described():
    listed = {found for name in SOURCES for found in _event_names(docs.ROOT / "src/holdfast" / name)}
    ends = {f"run.{status}" for status in ("completed", "failed", "cancelled")}
    assert listed | ends == set(EVENTS)


def _event_names(path):
    literals = (
        node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)
    )
    return {value for value in literals if isinstance(value, str) and EVENT.fullmatch(value)}


@pytest.mark.covers("TOOL-CLI-29")
def test_every_command_has_help_and_examples_that_name_it():
    import typer

    from holdfast.cli.app import app

    for name, found in commands.commands(typer.main.get_command(app)):
        assert found.help, name
        examples = commands.examples(found)
        assert examples, name
        assert all(
            example.startswith(f"holdfast {name}") or f"holdfast {name}" in example for example in examples
        ), name
