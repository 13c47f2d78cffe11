"""The suite itself: all of it runs over all stores here, and anybody's store can run it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from holdfast.store.open import open_store
from holdfast.store.rows import Capability
from holdfast.testing import conformance
from tests.conformance.conftest import KITS, STORES
from tests.services import mariadb, postgres

HERE = Path(__file__).parent
FOREIGN = '''
import pytest
from holdfast.store.memory import MemoryStore
from holdfast.testing.conformance.kit import StoreKit
from holdfast.testing.conformance.settle import SettleSuite


class Mine(MemoryStore):
    """A store that somebody wrote; `forgets` makes it a bad one."""

    def settle_now(self, batches):
        {forgets}
        return super().settle_now(batches)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def kit():
    stores = []

    async def opened(clock):
        if not stores:
            stores.append(Mine(clock))
        return stores[0]

    kit = StoreKit(opened)
    await kit.start()
    yield kit
    await kit.stop()


class TestSettle(SettleSuite):
    pass
'''


def suites() -> dict[str, list[type]]:
    """The classes of tests of each topic."""
    found: dict[str, list[type]] = {}
    for topic in conformance.ALL:
        module = import_module(f"holdfast.testing.conformance.{topic}")
        found[topic] = [
            value
            for name, value in vars(module).items()
            if name.endswith("Suite") and value.__module__ == module.__name__
        ]
    return found


@pytest.mark.covers("CORE-STORE-02", "CORE-STORE-03", "FLEET-PG-01", "MB-7", "PLATFORM-MARIADB-01")
def test_every_topic_is_run_over_every_store() -> None:
    assert {"memory", "sqlite", "postgres", "mariadb"} <= set(STORES) == set(KITS)
    modules = {path.stem: import_module(f"tests.conformance.{path.stem}") for path in HERE.glob("test_*.py")}
    run = {
        base
        for module in modules.values()
        for name, value in vars(module).items()
        if name.startswith("Test") and isinstance(value, type)
        for base in value.__mro__[1:]
    }
    assert [topic for topic, found in suites().items() if not run.issuperset(found)] == []


@pytest.mark.covers("CORE-STORE-07")
def test_every_topic_of_the_package_is_named() -> None:
    folder = Path(conformance.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "kit"}
    assert modules - set(conformance.ALL) <= {"flows", "langgraph_ownership", "transports"}
    assert all(suites().values())


@pytest.mark.covers("CORE-STORE-07")
@pytest.mark.parametrize(("forgets", "code"), [("pass", 0), ("batches = batches[:0]", 1)])
def test_store_of_somebody_else_is_judged_by_the_suite(tmp_path: Path, forgets: str, code: int) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["holdfast.testing.plugin"]')
    (tmp_path / "test_mine.py").write_text(FOREIGN.replace("{forgets}", forgets))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-W",
            "error",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:schemathesis",
            "-p",
            "no:langsmith_plugin",
            ".",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code, done.stdout


@pytest.mark.anyio
@pytest.mark.covers("CORE-STORE-01")
async def test_each_store_says_what_it_can_do_and_no_more(tmp_path: Path) -> None:
    """What a claim means is in the suite, which skips the tests of what is not claimed."""
    server = await open_store(postgres.with_setting(postgres.database(), schema="suite"))
    assert server.capabilities == Capability.durable | Capability.shared | Capability.notifies
    await server.close()
    polled = await open_store(mariadb.database("suite"))
    assert polled.capabilities == Capability.durable | Capability.shared
    await polled.close()
    memory, file = await open_store("memory:"), await open_store(f"sqlite:{tmp_path / 'c.db'}")
    assert memory.capabilities == Capability.inline
    assert file.capabilities == Capability.durable | Capability.shared | Capability.inline
    await file.close()
    asked = "".join(path.read_text() for path in Path(conformance.__file__).parent.glob("*.py"))
    assert all(f"kit.needs(Capability.{name})" in asked for name in ("durable", "shared", "inline"))
