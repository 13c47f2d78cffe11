"""The commands of docs/how-to/back-up-mariadb.md: a dump of a store in use is a whole store elsewhere."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from holdfast import Flow, Holdfast
from tests.services import absent, mariadb

pytestmark = [pytest.mark.anyio, pytest.mark.covers("MB-7")]

PAGE = (Path(__file__).parents[2] / "docs/how-to/back-up-mariadb.md").read_text("utf-8")


def _client(address: str) -> list[str]:
    parts = urlsplit(address)
    return [f"--host={parts.hostname}", f"--port={parts.port or 3306}", f"--user={parts.username}"]


def _run(command: list[str], given: Path | None = None) -> None:
    text = given.read_bytes() if given is not None else b""
    subprocess.run(command, check=True, input=text, timeout=60)


async def test_restored_dump_goes_on_with_its_runs_and_its_feed(address: str, tmp_path: Path) -> None:
    if shutil.which("mariadb-dump") is None or shutil.which("mariadb") is None:
        absent("mariadb-client", "mariadb-dump is not installed")
    flow = Flow("asking", effect="pure")
    flow.hold("approve", prompt="Weiter? 👍", options=["yes", "no"])
    async with Holdfast(address) as hf:
        run = (await flow.run({"raw": bytes(range(256))}, on=hf)).run_id
        before = await (await hf.service()).store.feed(after=0, limit=99)
    (options,) = re.findall(r"^mariadb-dump (.*) --result-file", PAGE, re.MULTILINE)
    name = urlsplit(address).path.lstrip("/")
    dump = tmp_path / "store.sql"
    command = ["mariadb-dump", *_client(address), *options.split(), f"--result-file={dump}", name]
    await asyncio.to_thread(_run, command)
    restored = mariadb.fresh()
    name = urlsplit(restored).path.lstrip("/")
    client = ["mariadb", *_client(restored), "--default-character-set=utf8mb4", name]
    await asyncio.to_thread(_run, client, dump)
    async with Holdfast(restored) as hf:
        store = (await hf.service()).store
        assert await store.feed(after=0, limit=99) == before
        assert (await store.examine(deep=True)).problems == []
        (hold,) = await store.holds(run=run)
        await (await hf.service()).answer(hold.id, "yes")
        result = await flow.resume(run, on=hf)
        assert result.status == "completed"
        later = await store.feed(after=before[-1][0], limit=99)
        assert [pos for pos, *_ in later] == [before[-1][0] + 1 + n for n in range(len(later))] != []
