from __future__ import annotations

import gc
import os
import re
from typing import Any

import pytest
from hypothesis import settings

from tests.distribution import (
    GroupsOnce,
    import_by_turns,
    keep_files_in_memory,
    long_first,
    number_folders_by_count,
    read_certificates_once,
)
from tests.reporting import MinutesPerFolder, PlainNodeIds, receive_interrupts
from tests.services.sqlite_files import copy_new_files
from tests.slow import is_slow

# The machine may be busy: a slow example is not a wrong one. The per-test timeout still holds.
settings.register_profile("default", deadline=None, print_blob=True, max_examples=50)
settings.register_profile("soak", settings.get_profile("default"), max_examples=2000)
settings.load_profile("default")
# Whether the web app is built in this checkout decides no test: those of the app ask for it.
os.environ["HOLDFAST_SKIP_UI"] = "1"
pytest.register_assert_rewrite("tests.crash.judge")
receive_interrupts()
keep_files_in_memory()
read_certificates_once()
copy_new_files()
number_folders_by_count()
# Thousands of collected tests live until the end of the run: the garbage collector would walk through all of
# them again and again (about a quarter of the time of short tests).
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    # With xdist the reports of all workers arrive at the controller: count there, and only there.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(PlainNodeIds())
        config.pluginmanager.register(MinutesPerFolder())


# On PostgreSQL these run with all tests, the other flows with the soak: a server takes its time.
ON_POSTGRES = (
    "conformance", "fleet", "asks", "codes_core", "effects", "long_lists", "resume", "worker", "two_workers",
    "inbound_attacks", "corpus_stores", "deleted_threads", "coding_killed",
    "unserved_events",
)  # fmt: skip
# Of these only what has one of the parameters.
SOME_ON_POSTGRES = {
    "random_kills": {"bare", "sub"},
    "points_documents": {"inside_settle", "after_answer"},
    "lease_lost": {"bare", "script"},
    "two_processes": {"resolve and resolve"},
    "kill": {"before_put_writes", "hold_not_open", "answer_stored"},
    "commands": {"all"},
    "ownership": {"postgres"},
    "callbacks": {"after_intent", "after_answer"},
    "suite": {"0"},
}


# On MariaDB, the same.
ON_MARIADB = (
    "conformance", "mariadb", "asks", "resume", "inbound_attacks", "corpus_stores", "deleted_threads",
)  # fmt: skip
SOME_ON_MARIADB = {
    "random_kills": {"bare"},
    "points_documents": {"inside_settle", "after_answer"},
    "lease_lost": {"bare"},
    "two_processes": {"resolve and resolve"},
    "commands": {"all"},
}
SOME = {"postgres": (ON_POSTGRES, SOME_ON_POSTGRES), "mariadb": (ON_MARIADB, SOME_ON_MARIADB)}


# In these folders a test that runs on SQLite runs in memory with the soak: what a store promises is proved on
# every store by tests/conformance, and whole flows by the files that are named here.
ONCE = frozenset({"agents", "bad_input", "flows", "holds", "runtime", "versions"})
IN_MEMORY_TOO = frozenset({"alike", "asks", "flow_list", "model", "resume", "two_folds", "worker"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    found = {item.nodeid for item in items}
    for item in items:
        if is_slow(item):
            item.add_marker(pytest.mark.slow)
        if has_twin_on_sqlite(item, found):
            item.add_marker(pytest.mark.soak)
        parameters = set(item.name.partition("[")[2].rstrip("]").split("-"))
        for store in parameters & SOME.keys():
            whole, some = SOME[store]
            stem = item.path.stem.removeprefix("test_")
            always = item.path.parent.name in whole or stem in whole
            if not always and not parameters & some.get(stem, set()):
                item.add_marker(pytest.mark.soak)
    long_first(items)


def has_twin_on_sqlite(item: pytest.Item, found: set[str]) -> bool:
    """Runs in memory, beside the same test on SQLite."""
    test, _, parameters = item.nodeid.partition("[")
    if "memory" not in parameters or item.path.stem.removeprefix("test_") in IN_MEMORY_TOO:
        return False
    folder = item.path.relative_to(item.config.rootpath).parts[1]
    twin = test + re.sub(r"(?<=[\[-])memory(?=[\]-])", "sqlite", f"[{parameters}")
    return folder in ONCE and twin != item.nodeid and twin in found


def pytest_collection(session: pytest.Session) -> None:
    import_by_turns(session)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupsOnce | None:
    return GroupsOnce(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    # Each 700 new objects by default: 4 % of the time of short tests.
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


@pytest.fixture(scope="module")
def small_heap() -> None:
    """`gc.collect()` looks only at what the tests of this module made: after some thousand tests of others it
    takes most of a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Holdfast runs on asyncio; the plugin would otherwise run each test on trio too."""
    return "asyncio"
