"""Run directories are private to their owner, and not written for encrypted stores."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.attractor.export import export_directory
from holdfast.errors import InputError
from holdfast.runs.driver.settings import RunSettings
from tests.attractor.run import dot, run
from tests.storage.canary import ring

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-12")]

MARK = "very-private-words"
WHOLE = dot(
    'a [prompt="Think"];'
    't [shape=parallelogram, env.WORD="context.word", tool_command="echo $WORD; env >&2"];'
    "p [shape=component]; x [prompt=X]; y [prompt=Y]; b [shape=tripleoctagon, prompt=Best];",
    "start -> a -> t -> p; p -> x -> b; p -> y -> b; b -> done",
)
GIVEN = {"word": MARK}


def answers(prompt: str) -> str:
    return f"{MARK}: {prompt}"


@pytest.fixture
def open_umask() -> Iterator[None]:
    """As a careless operator has it."""
    before = os.umask(0)
    yield
    os.umask(before)


def shown(root: Path) -> list[Path]:
    """Files with the words in plain text."""
    return [each for each in root.rglob("*") if each.is_file() and MARK.encode() in each.read_bytes()]


def reachable(root: Path) -> list[Path]:
    """What others could open; files that a command writes itself are behind the folder of its stage."""
    return [
        each
        for each in root.rglob("*")
        if stat.S_IMODE(each.stat().st_mode) & 0o077
        and not any(above.name.startswith("tool-") for above in each.parents)
    ]


async def test_only_the_owner_reads_a_run_directory(hf: Holdfast, tmp_path: Path, open_umask: None) -> None:
    found = await run(hf, WHOLE, tmp_path / "deep" / "logs", backend=answers, context=GIVEN)
    assert found.status == "success"
    assert len(shown(tmp_path)) > 5
    assert reachable(tmp_path) == []


async def test_directory_of_an_encrypted_store_is_not_written(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}", keys=ring()) as hf:
        found = await run(hf, WHOLE, logs, backend=answers, context=GIVEN)
        assert found.status == "success"
        assert MARK in found.context["tool.output"]
        assert MARK in found.context["last_response"]
        with pytest.raises(InputError, match="encrypted"):
            await export_directory(await hf.service(), found.run_id, tmp_path / "exported")
    assert shown(tmp_path) == []


async def test_agent_of_a_command_leaves_nothing_on_an_encrypted_store(tmp_path: Path) -> None:
    from holdfast.attractor.backends.cli import CommandBackend

    async with Holdfast(f"sqlite:{tmp_path / 's.db'}", keys=ring()) as hf:
        backend = CommandBackend(f"echo {MARK} {{prompt_file}}")
        found = await run(hf, WHOLE, tmp_path / "logs", backend=backend, context=GIVEN)
        assert MARK in found.context["last_response"]
    assert shown(tmp_path) == []


async def test_operator_may_have_plain_directories_beside_an_encrypted_store(tmp_path: Path) -> None:
    settings = RunSettings(plain_directories=True)
    async with Holdfast(f"sqlite:{tmp_path / 's.db'}", keys=ring(), settings=settings) as hf:
        found = await run(hf, WHOLE, tmp_path / "logs", backend=answers, context=GIVEN)
        assert (tmp_path / "logs" / "checkpoint.json").exists()
        result = await export_directory(await hf.service(), found.run_id, tmp_path / "exported")
        assert "checkpoint.json" in result.files
