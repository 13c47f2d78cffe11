"""Every snippet of the documentation runs (snippets.py says how)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.snippets import Page, blocks, fresh
from tools import docs, partners

# A page that is a test file as a whole has a test of its own.
ELSEWHERE = {"docs/how-to/test-your-flows.md"}
PAGES = [
    page.relative_to(docs.ROOT).as_posix()
    for page in docs.sources()
    if page.relative_to(docs.ROOT).as_posix() not in ELSEWHERE and any(True for _ in blocks(page))
]


@pytest.mark.covers("TOOL-DOCS-10")
@pytest.mark.parametrize("name", PAGES)
def test_every_snippet_of_a_page_runs(name, tmp_path, monkeypatch):
    partners.require_for(name)
    monkeypatch.chdir(tmp_path)
    fresh(tmp_path, docs.ROOT)
    Page(docs.ROOT / name, tmp_path).run()


def page_of(tmp_path: Path, text: str) -> Page:
    path = tmp_path / "page.md"
    path.write_text(text)
    return Page(path, tmp_path)


@pytest.mark.covers("TOOL-DOCS-10")
def test_a_page_shares_its_names_and_may_await(tmp_path):
    text = "```python\nimport asyncio\nx = 1\n```\n\n```python\nawait asyncio.sleep(0)\nassert x == 1\n```\n"
    assert page_of(tmp_path, text).run() == 2


@pytest.mark.covers("TOOL-DOCS-10")
@pytest.mark.parametrize(
    "text",
    [
        "```python\nassert 1 == 2\n```\n",
        "<!-- run\nassert 1 == 2\n-->\n",
        "```sh\n$ false\n```\n",
        "```sh\n$ echo one\ntwo\n```\n",
        "```json\n{\n```\n",
        "```ruby\nputs 1\n```\n",
    ],
)
def test_a_snippet_that_does_not_work_fails_its_page(tmp_path, text):
    with pytest.raises((AssertionError, ValueError)):
        page_of(tmp_path, text).run()
