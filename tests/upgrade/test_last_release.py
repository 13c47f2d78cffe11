"""The code of the last release on the schema of this one: side by side, until the upgrade is finished."""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.store.sql.postgres.migration_files import RELEASED, migrations
from tests.deadlines import HANG
from tests.services import postgres
from tests.upgrade.last_release import environment, unpack

pytestmark = pytest.mark.covers("FLEET-PG-11")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("last"))


class Side:
    """One release on one store."""

    def __init__(self, package: Path | None, address: str, ledger: Path) -> None:
        self.env = environment(package)
        self.address = address
        self.ledger = ledger

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "holdfast", *words, "--store", self.address]
        return subprocess.run(command, env=self.env, cwd="/", capture_output=True, text=True, timeout=60)

    @contextmanager
    def worker(self, *, dies: bool = False) -> Iterator[Callable[[str], None]]:
        """A worker that can be told to start and to answer runs. It ends as it should, or it `dies`."""
        command = [sys.executable, "-m", "tests.upgrade.aside", self.address, str(self.ledger)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, env=self.env, cwd="/", stdin=pipe, stdout=pipe, text=True)
        assert process.stdin is not None
        assert process.stdout is not None
        text, heard = process.stdin, process.stdout

        def tell(what: str) -> None:
            print(what, file=text, flush=True)
            assert heard.readline() == "done\n"

        try:
            assert heard.readline() == "serving\n"
            yield tell
        finally:
            if dies:
                process.kill()
            process.communicate(timeout=HANG)


@pytest.fixture
def sides(old: Path, tmp_path: Path) -> tuple[Side, Side]:
    address = postgres.with_setting(postgres.database(), schema=f"t_{secrets.token_hex(4)}")
    ledger = tmp_path / "ledger.txt"
    return Side(old, address, ledger), Side(None, address, ledger)


def test_archive_is_of_the_release_whose_code_the_halves_spare(old: Path) -> None:
    files = (old / "holdfast" / "store" / "sql" / "postgres" / "schema").glob("*.sql")
    assert max(int(file.name[:4]) for file in files) == RELEASED


def lines(side: Side) -> list[tuple[str, str, str]]:
    text = side.ledger.read_text() if side.ledger.exists() else ""
    return [(order, what, who) for order, what, who in (line.split() for line in text.splitlines())]


def wait_for(side: Side, what: str, numbers: range, seconds: float = HANG) -> None:
    deadline = time.monotonic() + seconds
    wanted = {str(number) for number in numbers}
    while time.monotonic() < deadline:
        if wanted <= {order for order, done, _ in lines(side) if done == what}:
            return
        time.sleep(0.05)
    raise AssertionError(f"not all {what}: {sorted(wanted)}, {lines(side)}")


def wait_until_asked(side: Side, count: int) -> None:
    schema = side.address.partition("schema=")[2]
    asked = f"SELECT count(*) FROM {schema}.holds WHERE status = 'pending'"
    deadline = time.monotonic() + HANG
    while postgres.execute(asked) != [(count,)]:
        assert time.monotonic() < deadline, "not all asked"
        time.sleep(0.05)


def test_runs_begun_by_one_release_end_on_the_other_and_both_work_side_by_side(
    sides: tuple[Side, Side],
) -> None:
    old, new = sides
    # The old release makes the store, and asks.
    with old.worker() as tell_old:
        tell_old("start 1 4")
        wait_until_asked(old, 4)
    # The new one opens it while nothing is finished: answers, brings the runs to their end, and asks.
    with new.worker() as tell_new:
        tell_new("answer 1 4")
        wait_for(new, "shipped", range(1, 5))
        tell_new("start 5 8")
        wait_until_asked(new, 4)
    # And the other way round, on the new schema; then both at once.
    with old.worker() as tell_old:
        tell_old("answer 5 8")
        wait_for(old, "shipped", range(5, 9))
        with new.worker() as tell_new:
            tell_old("start 9 16")
            tell_new("start 17 24")
            wait_until_asked(new, 16)
            tell_new("answer 9 16")
            tell_old("answer 17 24")
            wait_for(new, "shipped", range(1, 25))
    result = lines(new)
    by = {(order, what): who for order, what, who in result}
    assert [by[str(n), "checked"] + by[str(n), "shipped"] for n in range(1, 9)] == ["oldnew"] * 4 + [
        "newold"
    ] * 4
    assert len({(order, what) for order, what, _ in result}) == len(result) == 48, "nothing twice"
    statuses = f"SELECT DISTINCT status FROM {new.address.partition('schema=')[2]}.runs"
    assert postgres.execute(statuses) == [("completed",)]


def test_old_command_line_works_until_the_upgrade_is_finished_and_is_then_refused(
    sides: tuple[Side, Side],
) -> None:
    old, new = sides
    schema = new.address.partition("schema=")[2]
    with old.worker(dies=True) as tell_old:
        tell_old("start 1 1")
        wait_until_asked(old, 1)
        said = new.cli("migrate")
        assert said.returncode == 0, said.stderr
        assert f"added: migration {RELEASED + 1:04d}" in said.stdout
        assert "holdfast migrate --finish" in said.stdout
        assert postgres.execute(f"SELECT max(number) FROM {schema}.migrations") == [(RELEASED,)]
        done = old.cli("doctor")
        assert done.returncode == 0, (done.stdout, done.stderr)
        tell_old("start 2 3")
        wait_until_asked(old, 3)
        refused = new.cli("migrate", "--finish", "--yes")
        assert refused.returncode == 2
        assert "older version may be using" in refused.stderr
        assert "session" in refused.stderr
        assert postgres.execute(f"SELECT max(number) FROM {schema}.migrations") == [(RELEASED,)]

    deadline = time.monotonic() + HANG
    while (done := new.cli("migrate", "--finish")).returncode:
        # It died, and what it had is its own until the lease is over.
        assert "not registered" in done.stderr
        assert time.monotonic() < deadline, done.stderr
    newest = migrations()[-1].number
    assert postgres.execute(f"SELECT max(number) FROM {schema}.migrations") == [(newest,)]
    assert postgres.execute(f"SELECT number FROM {schema}.halves") == []
    late = old.cli("runs")
    assert late.returncode == 4
    assert f"has number {newest}, this version of Holdfast knows those up to {RELEASED}" in late.stderr
    assert "Update Holdfast" in late.stderr
