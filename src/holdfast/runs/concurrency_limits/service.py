"""Limits as an operator sees and sets them: what applies, what runs, what waits."""

from __future__ import annotations

import re

import msgspec

from holdfast.errors import NotFoundError, SettingsError
from holdfast.runs.concurrency_limits.item_limits import limits_in_use
from holdfast.store.protocols import Store
from holdfast.types.concurrency_limits import (
    EACH_KEY,
    LimitRow,
    normalized_name,
    parse_rate,
    rate_text,
    root_of,
    spacing_text,
)

_NAME = re.compile(r"flow:[^/\s]+(?:/.*)?", re.DOTALL)
_MOST = 1_000_000


ITEMS = "items:"
"""Before the key of a limit that items of maps share (`limit_key=`)."""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that applies now. `fixed`: an operator set it; else the flow declares it. Of `items:KEY`, which
    items of maps share: `running` and `waiting` are items, `holders` and `waiters` the run of each, in the
    order in which they got, or get, their places."""

    name: str
    concurrency: int | None
    rate: str | None
    fixed: bool
    running: int
    waiting: int
    holders: list[str] = []
    waiters: list[str] = []


class LimitService:
    """Limits of a store: list, set, clear.

        limits = await hf.limits()
        await limits.set("flow:refund", concurrency=5, rate="100/min")
        await limits.clear("flow:refund")     # what the flow declares holds again

    `flow:refund` is the limit of all runs of a flow, `flow:refund/*` that of each key, `flow:refund/acme`
    that of one. A concurrency of 0 stops a flow: what runs continues, nothing new starts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self, prefix: str = "", *, keys: bool = False, tenant: str = "default") -> list[Limit]:
        """In order of name. `keys`: also keys that runs use now without a limit of their own. `tenant`: whose
        limits of items are listed, as far as items are at work or wait; those of flows are of all tenants."""
        found = await self._store.limits(prefix=prefix, limit=_MOST)
        return [
            Limit(
                name=limit.name,
                concurrency=limit.concurrency,
                rate=rate_text(limit.rate, limit.per) or None,
                fixed=limit.fixed,
                running=running,
                waiting=waiting,
            )
            for limit, running, waiting in found
            if keys or limit.updated_at
        ] + await _of_items(self._store, prefix, tenant)

    async def set(self, name: str, *, concurrency: int | None = None, rate: str | None = None) -> Limit:
        """Replaces what the flow declares. What is not given is not limited. Raises SettingsError."""
        limit = _limit_row(name, concurrency, rate)
        await self._require_keyed(name)
        await self._store.put_limit(limit)
        return await self._one(name)

    async def change(
        self, name: str, *, concurrency: int | str | None = None, rate: str | None = None
    ) -> Limit:
        """The same, but what is not given is not changed; "none" removes a limit."""
        held = [one for one in await self.list(name, keys=True) if one.name == name]
        now = held[0] if held else None
        kept = concurrency if concurrency is not None else now.concurrency if now else None
        pace = rate if rate is not None else now.rate if now else None
        wanted = None if kept == "none" else kept
        if isinstance(wanted, str):
            wanted = _number(wanted)
        return await self.set(name, concurrency=wanted, rate=None if pace == "none" else pace)

    async def clear(self, name: str) -> Limit | None:
        """What the flow declares applies again; None if it declares nothing. Raises NotFoundError."""
        if not await self._store.drop_limit(name):
            raise NotFoundError(
                f"no limit {name!r} is set here.", hint="`holdfast limits list` shows those in force."
            )
        return next((one for one in await self.list(name) if one.name == name), None)

    async def _one(self, name: str) -> Limit:
        return next(one for one in await self.list(name) if one.name == name)

    async def _require_keyed(self, name: str) -> None:
        """Only a flow's declaration says which runs have a key."""
        root = root_of(name)
        if root == name:
            return
        names = {limit.name for limit, _, _ in await self._store.limits(prefix=root, limit=_MOST)}
        if not any(other.startswith(f"{root}/") for other in names):
            raise SettingsError(
                f"{name!r} is the limit of a key, and no flow declares a key for {root!r}.",
                hint='Declare it: Flow(..., limits=Limits(key="{{customer}}", per_key=5)).',
            )


async def _of_items(store: Store, prefix: str, tenant: str) -> list[Limit]:
    if not (prefix.startswith(ITEMS) or ITEMS.startswith(prefix)):
        return []
    return [
        Limit(
            name=f"{ITEMS}{use.key}",
            concurrency=use.concurrency,
            rate=spacing_text(use.spacing) or None,
            fixed=False,
            running=len(use.holders),
            waiting=len(use.waiters),
            holders=use.holders,
            waiters=use.waiters,
        )
        for use in await limits_in_use(store, tenant, prefix[len(ITEMS) :])
    ]


def _limit_row(name: str, concurrency: int | None, rate: str | None) -> LimitRow:
    if not _NAME.fullmatch(name) or name.endswith("/"):
        raise SettingsError(
            f"{name!r} names no limit.",
            hint=f"Write flow:NAME for a flow, flow:NAME/{EACH_KEY} for each key, flow:NAME/KEY for one.",
        )
    if normalized_name(name) != name:
        raise SettingsError(
            f"no run can have the limit {name!r}: its key is stored in another form.",
            hint=f"Write {normalized_name(name)!r}; `holdfast limits list --keys` shows the stored names.",
        )
    if concurrency is not None and not 0 <= concurrency <= 1_000_000_000:
        raise SettingsError(f"{concurrency} is not a number of runs.", hint="Give 0 or more.")
    if concurrency is None and rate is None:
        raise SettingsError(
            f"nothing would limit {name!r}.", hint="Give a concurrency or a rate, or clear the limit."
        )
    count, per = (None, 0) if rate is None else parse_rate(rate)
    return LimitRow(name=name, concurrency=concurrency, rate=count, per=per, fixed=True)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise SettingsError(f"{text!r} is not a number of runs.", hint='Give 0 or more, or "none".')
    return int(text)
