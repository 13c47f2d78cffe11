"""The code of the last release on the schema of this one: side by side, until the upgrade is finished."""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.store.sql.postgres.halves import RELEASED, migrations
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

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "tests.upgrade.aside", self.address, str(self.ledger), *words]

    def do(self, what: str, first: int, last: int) -> None:
        command = self.command(what, str(first), str(last))
        done = subprocess.run(command, env=self.env, cwd="/", capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "holdfast", *words, "--store", self.address]
        return subprocess.run(command, env=self.env, cwd="/", capture_output=True, text=True, timeout=60)

    @contextmanager
    def worker(self) -> Iterator[None]:
        process = subprocess.Popen(
            self.command("serve"), env=self.env, cwd="/", stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "serving\n"
        try:
            yield
        finally:
            process.terminate()
            process.communicate(timeout=20)


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


def wait_for(side: Side, what: str, numbers: range, seconds: float = 30) -> None:
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
    deadline = time.monotonic() + 30
    while postgres.execute(asked) != [(count,)]:
        assert time.monotonic() < deadline, "not all asked"
        time.sleep(0.05)


def test_runs_begun_by_one_release_end_on_the_other_and_both_work_side_by_side(
    sides: tuple[Side, Side],
) -> None:
    old, new = sides
    # The old release makes the store, and asks.
    with old.worker():
        old.do("start", 1, 4)
        wait_until_asked(old, 4)
    # The new one opens it while nothing is finished: answers, and brings the runs to their end.
    new.do("answer", 1, 4)
    with new.worker():
        wait_for(new, "shipped", range(1, 5))
        new.do("start", 5, 8)
        wait_until_asked(new, 4)
    # And the other way round, on the new schema.
    old.do("answer", 5, 8)
    with old.worker():
        wait_for(old, "shipped", range(5, 9))
        # Both at once.
        with new.worker():
            old.do("start", 9, 16)
            new.do("start", 17, 24)
            wait_until_asked(new, 16)
            new.do("answer", 9, 16)
            old.do("answer", 17, 24)
            wait_for(new, "shipped", range(1, 25))
    told = lines(new)
    by = {(order, what): who for order, what, who in told}
    assert [by[str(n), "checked"] + by[str(n), "shipped"] for n in range(1, 9)] == ["oldnew"] * 4 + [
        "newold"
    ] * 4
    assert len({(order, what) for order, what, _ in told}) == len(told) == 48, "nothing twice"
    statuses = f"SELECT DISTINCT status FROM {new.address.partition('schema=')[2]}.runs"
    assert postgres.execute(statuses) == [("completed",)]


def test_old_command_line_works_until_the_upgrade_is_finished_and_is_then_refused(
    sides: tuple[Side, Side],
) -> None:
    old, new = sides
    schema = new.address.partition("schema=")[2]
    old.do("start", 1, 1)
    said = new.cli("migrate", "--dry-run")
    assert said.returncode == 0, said.stderr
    assert f"would be added  {RELEASED + 1:04d}" in said.stdout
    assert postgres.execute(f"SELECT max(number) FROM {schema}.migrations") == [(RELEASED,)]
    said = new.cli("migrate")
    assert (said.returncode, "--finish" in said.stdout) == (0, True), said.stderr
    assert postgres.execute(f"SELECT max(number) FROM {schema}.migrations") == [(RELEASED,)]

    with old.worker():
        wait_until_asked(old, 1)
        done = old.cli("doctor")
        assert done.returncode == 0, (done.stdout, done.stderr)
        refused = new.cli("migrate", "--finish", "--yes")
        assert refused.returncode != 0
        assert "older version may be at work" in refused.stderr
        assert "session" in refused.stderr
        assert postgres.execute(f"SELECT max(number) FROM {schema}.migrations") == [(RELEASED,)]

    deadline = time.monotonic() + 20
    while (done := new.cli("migrate", "--finish")).returncode:
        # It died, and what it had is its own until the lease is over.
        assert "in no register" in done.stderr
        assert time.monotonic() < deadline, done.stderr
    newest = migrations()[-1].number
    assert postgres.execute(f"SELECT max(number) FROM {schema}.migrations") == [(newest,)]
    assert postgres.execute(f"SELECT number FROM {schema}.halves") == []
    late = old.cli("runs")
    assert late.returncode == 4
    assert f"has number {newest}, this version of Holdfast knows those up to {RELEASED}" in late.stderr
    assert "Update Holdfast" in late.stderr
