"""`doctor`: the servers behind a store. What can be lost, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.cli.doctor.finding import FAIL, OK, WARN, Finding
from holdfast.types.durability import Durability, Standby

_WAITED_FOR = frozenset({"sync", "quorum"})
_ASYNCHRONOUS = (
    "what was acknowledged in the last moments before a failover can be lost; Holdfast detects runs whose "
    "history went back, and stops them"
)


def of_servers(facts: Durability) -> Iterator[Finding]:
    if facts.weak:
        todo = "set it back, for the server, the database or the user, unless that may be lost"
        yield Finding(
            "durability", WARN, "settings weaken the promise that nothing is lost", todo, facts.weak
        )
    elif facts.standbys is not None:
        yield Finding("durability", OK, "the server flushes what it acknowledges")
    if facts.standbys is not None:
        yield _replication(facts, facts.standbys)


def _replication(facts: Durability, standbys: list[Standby]) -> Finding:
    about = [_standby(each) for each in standbys]
    waited_for = [each for each in standbys if each.sync in _WAITED_FOR]
    if facts.waits_for and not waited_for and not facts.hidden:
        said = f"commits wait for a standby that is not there ({facts.waits_for}): every write hangs"
        return Finding("replication", FAIL, said, "bring it back, or change synchronous_standby_names", about)
    if facts.waits_for:
        said = f"synchronous ({facts.waits_for}): a failover to such a standby loses nothing acknowledged"
        return Finding("replication", OK, said, "", about)
    if standbys:
        todo = "name standbys in synchronous_standby_names to lose nothing, at the price of their round trip"
        return Finding("replication", WARN, f"asynchronous: {_ASYNCHRONOUS}", todo, about)
    return Finding(
        "replication", OK, "no standby: what is acknowledged is as safe as the disk of this server"
    )


def _standby(standby: Standby) -> str:
    if standby.state is None:
        return f"{standby.name}: how it is only a member of pg_monitor may see"
    behind = "" if standby.lag_bytes is None else f", {standby.lag_bytes:,} bytes behind"
    late = "" if standby.lag is None else f", {standby.lag / 1e6:.3f} s late"
    return f"{standby.name}: {standby.state}, {standby.sync}{behind}{late}"
