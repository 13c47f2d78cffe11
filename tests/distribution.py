"""How the tests are handed to the processes that run them, and where their files are."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
from collections import Counter
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler.loadgroup import LoadGroupScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

MEMORY = "/dev/shm"
ROOM = 2 << 30
# Files with tests that take several seconds of their own: other programs, failovers, whole stores that move.
LONG = frozenset({
    "api/test_browser", "api/test_js_browser", "api/test_js_client", "api/test_openapi_tools",
    "api/test_schemathesis", "cli/test_new", "docs/test_pages", "docs/test_types", "fleet/test_backward",
    "fleet/test_dead", "fleet/test_deploy_schemas", "fleet/test_drift_names", "fleet/test_failover",
    "api/test_chain_property", "fleet/test_outages", "fleet/test_promote", "fleet/test_promote_resume",
    "fleet/test_promote_workers", "fleet/test_prune", "flows/test_scale", "inbox/test_inbox",
    "inbox/test_inbox_hostile", "inbox/test_inbox_life", "inbox/test_inbox_terminal", "mariadb/test_failover",
    "mariadb/test_promote", "mcp/test_conformance", "properties/test_runs", "races/test_deaths",
})  # fmt: skip
# Folders whose files have many short tests: one process has all of a file, and reads the source of its flows
# and makes its fixtures once. Elsewhere a test may take as long as such a file.
SHORT = frozenset({
    "agents", "api", "attractor", "bad_input", "cli", "conformance", "documents", "flows", "handlers",
    "holds", "runtime", "storage", "unit", "versions",
})  # fmt: skip
MANY = 40


class GroupsOnce(LoadGroupScheduling):
    """As `--dist loadgroup`, which counts all tests that a process ever had whenever one of them ends, and
    searches the whole list for each test that it hands out: half a minute with fifteen thousand tests."""

    _places: dict[str, int]

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        nodeid = self.registered_collections[node][item_index]
        group = self._split_scope(nodeid)
        tests = self.assigned_work[node][group]
        tests[nodeid] = True
        if all(tests.values()):
            del self.assigned_work[node][group]
        self._reschedule(node)

    def schedule(self) -> None:
        self._places = {each: n for n, each in enumerate(next(iter(self.registered_collections.values())))}
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return group if group != nodeid else unit_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        group, tests = self.workqueue.popitem(last=False)
        self.assigned_work[node][group] = tests
        node.send_runtest_some([self._places[nodeid] for nodeid, done in tests.items() if not done])


def unit_of(nodeid: str) -> str:
    """What is handed to a process at once, of a test without a group: its file, or the test alone."""
    file = nodeid.partition("::")[0]
    folders = PurePosixPath(file).parts
    is_short = len(folders) > 1 and folders[1] in SHORT and name_of(PurePosixPath(file)) not in LONG
    return file if is_short else nodeid


def name_of(file: PurePath) -> str:
    return f"{file.parent.name}/{file.stem}"


def long_first(items: list[pytest.Item]) -> None:
    """A long test that begins last keeps one process busy while the others have nothing to do. Those with a
    browser begin first: each of their groups is handed to one process, and takes minutes. Then other groups,
    long tests, and files with many."""
    tests = Counter(item.path for item in items)
    is_web = {path: path.parent.name == "web" for path in tests}
    is_long = {path: name_of(path) in LONG for path in tests}
    items.sort(
        key=lambda item: (
            not is_web[item.path],
            item.get_closest_marker("xdist_group") is None,
            not is_long[item.path],
            tests[item.path] < MANY,
        )
    )


def import_by_turns(session: pytest.Session) -> None:
    """Rewriting the assertions of all test files takes longer than importing them (16 of 26 s in a fresh
    clone), and processes that begin with the same file do it all at once, each for itself. Here each begins
    with another part of the files, and finds the rest compiled by the others."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or list(session.config.args) != session.config.getini("testpaths"):
        return
    root = session.config.rootpath
    files = [each.relative_to(root) for each in sorted(Path(root, "tests").rglob("test_*.py"))]
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[first:] + files[:first]:
        # Collecting it says what is wrong with a file, or that it is skipped here.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.with_suffix("").parts))


def keep_files_in_memory() -> None:
    """Nothing here outlives its machine, so no test has to wait for a disk; a kill loses nothing of a file
    in memory either. Where there is no room, or nothing there may be executed, files are where they were."""
    try:
        found = os.statvfs(MEMORY)
    except (OSError, AttributeError):
        return
    roomy = found.f_bavail * found.f_frsize >= ROOM
    if roomy and not found.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


def read_certificates_once() -> None:
    """A client of httpx2 reads the system's certificates when it is made: 30 ms, also for plain HTTP."""
    from functools import cache

    import httpcore2

    httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)


def number_folders_by_count() -> None:
    """pytest looks through all folders of a process for the next free number of a new one, and leaves a link
    beside each: 1 to 3 ms for each test with a `tmp_path`, the more the later."""
    as_usual = pytest.TempPathFactory.mktemp
    numbers = itertools.count()

    def mktemp(self: pytest.TempPathFactory, basename: str, numbered: bool = True) -> Path:
        if not numbered:
            return as_usual(self, basename, numbered)
        path = self.getbasetemp() / f"{basename}-{next(numbers)}"
        path.mkdir(mode=0o700)
        return path

    pytest.TempPathFactory.mktemp = mktemp
