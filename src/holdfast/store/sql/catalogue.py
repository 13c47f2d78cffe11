"""What the migrations of a dialect make, as its server describes it: stored in the package, for `doctor`."""

from __future__ import annotations

from importlib import resources

Things = dict[str, str]
"""`kind name` -> its description."""

RESTORE = "restore it from a backup, or move the store into a new place (`holdfast promote`)"


def expected_catalogue(package: str) -> Things:
    """Of the dialect in that package. Tests renew the file (`python -m tests.fleet.test_drift`,
    `python -m tests.mariadb.test_drift`)."""
    file = resources.files(package).joinpath("schema", "catalogue.txt")
    pairs = (line.partition("\t") for line in file.read_text("utf-8").splitlines() if line)
    return {name: how for name, _, how in pairs}


def written_catalogue(things: Things) -> str:
    return "".join(f"{name}\t{how}\n" for name, how in sorted(things.items()))


def differing_tables(expected: Things, found: Things) -> set[str]:
    """What belongs to a table that is missing, or was added by others, is reported with the table."""
    return _tables(expected) ^ _tables(found)


def _tables(things: Things) -> set[str]:
    return {name.removeprefix("table ") for name in things if name.startswith("table ")}
