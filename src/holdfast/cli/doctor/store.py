"""`doctor`: the machine, the store, its servers (what a failover can lose), and an unfinished move."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import AsyncIterator, Iterator
from difflib import get_close_matches
from pathlib import Path

from holdfast._version import __version__
from holdfast.checkpoint.encrypt import header_of
from holdfast.cli.doctor.finding import FAIL, OK, WARN, Finding, few
from holdfast.cli.options.store import address_of, file_of_store
from holdfast.config import ENVIRONMENT
from holdfast.errors import BlobMissingError, StoreError, StoreUnavailableError
from holdfast.runs.encryption.store import EncryptedStore
from holdfast.runs.service import RunService
from holdfast.store.copy import MoveMark
from holdfast.store.open import move_endpoint
from holdfast.store.rows import RunFilter, StoreFacts
from holdfast.types.ciphertext import is_encrypted
from holdfast.types.durability import Durability, Standby
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.human_time import clock_time


async def move_finding(address: str) -> Finding | None:
    """None if the store is not being moved, which is the usual case."""
    if address == "memory:":
        return None
    half = move_endpoint(address)
    try:
        mark = await half.mark()
        return None if mark is None else _finding(mark, half.where)
    finally:
        await half.close()


def _finding(mark: MoveMark, where: str) -> Finding:
    since = clock_time(mark.at)
    if mark.state == "moved":
        text = f"this store was moved to {mark.peer} (started {since}): it is read-only now"
        return Finding("moved", WARN, text, f"use the new store: --store {mark.peer}")
    if mark.state == "filling":
        text, old, new = f"this store is being filled from {mark.peer} since {since}", mark.peer, where
    else:
        text, old, new = f"this store is being moved to {mark.peer} since {since}", where, mark.peer
    todo = f"if it is not running, continue it: holdfast promote {old} {new}; or undo it: --undo"
    return Finding("moved", WARN, text, todo)


_WAITED_FOR = frozenset({"sync", "quorum"})
_ASYNCHRONOUS = (
    "commits of the last moments before a failover can be lost; Holdfast detects runs that lost part of "
    "their history, and stops them"
)


def server_findings(facts: Durability) -> Iterator[Finding]:
    if facts.weak:
        todo = "reset it, for the server, the database or the user, unless you accept that loss"
        yield Finding(
            "durability",
            WARN,
            "settings of the server allow acknowledged commits to be lost",
            todo,
            facts.weak,
        )
    elif facts.standbys is not None:
        yield Finding("durability", OK, "the server flushes commits before it acknowledges them")
    if facts.standbys is not None:
        yield _replication(facts, facts.standbys)


def _replication(facts: Durability, standbys: list[Standby]) -> Finding:
    about = [_standby(each) for each in standbys]
    waited_for = [each for each in standbys if each.sync in _WAITED_FOR]
    if facts.waits_for and not waited_for and not facts.hidden:
        text = f"commits wait for a standby that is not connected ({facts.waits_for}): every write hangs"
        return Finding("replication", FAIL, text, "reconnect it, or change synchronous_standby_names", about)
    if facts.waits_for:
        text = f"synchronous ({facts.waits_for}): a failover to such a standby loses no acknowledged commit"
        return Finding("replication", OK, text, "", about)
    if standbys:
        todo = "to lose nothing, name standbys in synchronous_standby_names; commits then wait for them"
        return Finding("replication", WARN, f"asynchronous: {_ASYNCHRONOUS}", todo, about)
    return Finding("replication", OK, "no standby: commits are as safe as the disk of this server")


def _standby(standby: Standby) -> str:
    if standby.state is None:
        return f"{standby.name}: its state is visible only to members of pg_monitor"
    behind = "" if standby.lag_bytes is None else f", {standby.lag_bytes:,} bytes behind"
    late = "" if standby.lag is None else f", {standby.lag / 1e6:.3f} s late"
    return f"{standby.name}: {standby.state}, {standby.sync}{behind}{late}"


_MB = 1 << 20
_NEWEST = 200
_LOW, _TOO_LOW = 1024 * _MB, 64 * _MB


def machine_findings(store: str | None) -> Iterator[Finding]:
    sqlite = _sqlite_version()
    yield Finding(
        "versions", OK, f"Holdfast {__version__}, Python {platform.python_version()}, SQLite {sqlite}"
    )
    yield _settings()
    file = file_of_store(store)
    if file is not None:
        yield _room(file)


def _sqlite_version() -> str:
    from holdfast.store.sql.sqlite import library_version

    return library_version()


def _settings() -> Finding:
    """Unknown names are typing errors; an invalid lease stops every command."""
    ours = [name for name in os.environ if name.startswith("HOLDFAST_")]
    strange = [name for name in ours if name not in ENVIRONMENT and "_TEST_" not in name]
    lease = os.environ.get("HOLDFAST_LEASE")
    try:
        parse_duration(lease) if lease else None
    except DurationError as error:
        return Finding("settings", FAIL, f"HOLDFAST_LEASE: {error}", "write a duration such as 10s")
    if strange:
        near = get_close_matches(strange[0], ENVIRONMENT, n=1)
        guess = f"did you mean {near[0]}?" if near else "take it out of the environment"
        return Finding("settings", WARN, f"{', '.join(sorted(strange))} is not a setting of Holdfast", guess)
    named = (
        f"set in the environment: {', '.join(sorted(ours))}" if ours else "nothing is set in the environment"
    )
    return Finding("settings", OK, named)


def _room(file: Path) -> Finding:
    folder = next((each for each in file.absolute().parents if each.exists()), Path("/"))
    free = shutil.disk_usage(folder).free
    text = f"{free // _MB:,} MB are free in {folder}"
    if free < _TOO_LOW:
        return Finding("disk", FAIL, text, "make room: a full disk stops every run; `holdfast prune` helps")
    if free < _LOW:
        return Finding("disk", WARN, text, "make room before runs stop; `holdfast prune` helps")
    return Finding("disk", OK, text)


# ---------------------------------------------------------------------- the store


async def store_findings(service: RunService, store: str | None, *, deep: bool) -> AsyncIterator[Finding]:
    facts = await service.store.examine(deep=deep)
    moved = await move_finding(address_of(store))
    if moved is not None:
        yield moved
    yield _schema(facts)
    file = file_of_store(store)
    if file is not None:
        yield _identity(facts, file)
    yield _drift(facts)
    yield _structure(facts, address_of(store), deep=deep, is_file=file_of_store(store) is not None)
    for finding in server_findings(await service.store.durability()):
        yield finding
    yield await _keys(service)
    yield await _blobs(service, facts, deep=deep)
    yield _leases(facts)


def _schema(facts: StoreFacts) -> Finding:
    text = f"schema number {facts.schema}, size {facts.size / _MB:,.1f} MB"
    if facts.unfinished:
        todo = "when every worker has this version: holdfast migrate --finish"
        return Finding("schema", WARN, f"{text}; the upgrade to it is not finished", todo)
    return Finding("schema", OK, text)


def _identity(facts: StoreFacts, file: Path) -> Finding:
    """By the mark beside the file: a deleted -wal, an emptied file, an older backup."""
    if not facts.went_back:
        return Finding("file", OK, "the file has everything that is recorded in its mark file")
    return Finding(
        "file",
        FAIL,
        f"the file lacks data that was acknowledged: {facts.went_back}",
        "restore a newer backup; steps after it may be repeated. If this is the file that you want, delete "
        f"{file.name}-mark",
    )


def _drift(facts: StoreFacts) -> Finding:
    """Additional tables and columns are allowed: they are only mentioned."""
    grave = [each for each in facts.drift if each.grave]
    lines = [f"{each.what}{f': {each.todo}' if each.todo else ''}" for each in grave or facts.drift]
    if grave:
        text = f"{len(grave)} parts of the schema differ from what Holdfast created"
        todo = "see the fix for each, or ask the administrator who changed it"
        return Finding("schema drift", FAIL, text, todo, lines)
    if lines:
        return Finding(
            "schema drift", OK, "the schema is as Holdfast created it, with additions", "", few(lines)
        )
    return Finding("schema drift", OK, "the schema is as Holdfast created it")


def _structure(facts: StoreFacts, address: str, *, deep: bool, is_file: bool) -> Finding:
    if not is_file:
        is_mariadb = address.startswith("mariadb:")
        if facts.problems:
            page = "mariadb.md" if is_mariadb else "postgresql.md"
            todo = f"see docs/how-to/{page}, or restore a backup"
            return Finding("integrity", FAIL, "the database has structural problems", todo, facts.problems)
        tool = "mariadb-check" if is_mariadb else "pg_amcheck"
        return Finding("integrity", OK, f"managed by the server ({tool} verifies its files)")
    if facts.problems:
        return Finding(
            "integrity",
            FAIL,
            "the database file is damaged",
            "stop all workers, keep a copy of the file, restore a backup",
            few(facts.problems),
        )
    return Finding("integrity", OK, "the file is intact" if deep else "not checked; use --deep")


async def _keys(service: RunService) -> Finding:
    store = service.store
    if not isinstance(store, EncryptedStore):
        return Finding("keys", OK, "the store is not encrypted")
    ring = store.cipher.ring
    used = await _used_keys(store)
    missing = sorted({key for tenant, key in used if ring is None or ring.find(tenant, key) is None})
    if missing:
        return Finding(
            "keys",
            FAIL,
            "the store is encrypted with keys that are not available",
            "name the key file in HOLDFAST_KEYS; no data is lost",
            few(missing),
        )
    return Finding(
        "keys", OK, f"the store is encrypted, and its keys are available ({len(used)} of the newest runs)"
    )


async def _used_keys(store: EncryptedStore) -> list[tuple[str, str]]:
    """(tenant, key) of the newest record of the newest runs."""
    found: list[tuple[str, str]] = []
    for row in await store.inner.list_runs(RunFilter(), after=None, limit=_NEWEST):
        records = await store.inner.read(row.id, first=row.head, last=row.head)
        sealed = [record.payload for record in records if is_encrypted(record.payload)]
        found += [(row.tenant, header_of(payload).key) for payload in sealed]
    return found


async def _blobs(service: RunService, facts: StoreFacts, *, deep: bool) -> Finding:
    try:
        if service.runtime.blobs.objects is not None:
            await service.runtime.blobs.has_place()
        elif facts.outside:
            raise StoreUnavailableError(
                "large values are in a blob store, and none is set here.",
                hint="set HOLDFAST_BLOBS to its address; no data is lost",
            )
        lost = [digest.hex() for digest in facts.missing] + await _lost_outside(service, facts)
    except StoreError as error:
        todo = error.hint or "mount or start it; runs that need it wait, and continue by themselves"
        about = few([digest.hex() for digest in (*facts.missing, *facts.outside)])
        return Finding("blobs", FAIL, f"the blob store cannot be used: {error.message}", todo, about)
    if lost:
        return Finding(
            "blobs",
            FAIL,
            f"{len(lost)} blobs that runs refer to are missing",
            "restore the blob folder (beside the database) or a backup, then resume the runs",
            few(lost),
        )
    condemned = f" ({facts.condemned} of them condemned)" if facts.condemned else ""
    free = f"; {facts.unreferenced} belong to no run{condemned}" if facts.unreferenced else ""
    text = f"{facts.blobs} large values, none missing{free}"
    return Finding("blobs", OK, text, "`holdfast prune --blobs` collects them" if facts.unreferenced else "")


async def _lost_outside(service: RunService, facts: StoreFacts) -> list[str]:
    """Raises StoreError if the blob store does not answer: that does not mean that blobs are missing."""
    objects = service.runtime.blobs.objects
    lost: list[str] = []
    for digest in facts.outside:
        try:
            assert objects is not None, "checked before"
            await objects.get(digest)
        except BlobMissingError:
            lost.append(digest.hex())
    return lost


def _leases(facts: StoreFacts) -> Finding:
    if not facts.lapsed:
        return Finding("leases", OK, "no run has the expired lease of a dead worker")
    return Finding(
        "leases",
        WARN,
        f"{len(facts.lapsed)} runs have the expired lease of a dead worker",
        "a worker claims them, or use `holdfast resume RUN`",
        few([run[:8] for run in facts.lapsed]),
    )
