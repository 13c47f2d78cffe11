"""`doctor`: what lies at the brokers of queues. Messages that ended or that this store does not know, dead
letters, and streams with other settings than this release relies on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Final

from holdfast.cli.doctor.finding import OK, WARN, Finding, few
from holdfast.errors import SettingsError, TransportError
from holdfast.queues import settings as queues
from holdfast.queues.leftovers import leftovers
from holdfast.queues.transport import BrokerContent, ListingTransport, open_transport
from holdfast.store.protocols import Store

_PATIENCE: Final = 30.0


async def broker_findings(store: Store) -> AsyncIterator[Finding]:
    """Nothing for a broker that is away, or for settings that cannot be read: other findings say so."""
    if not os.environ.get(queues.VARIABLE):
        return
    try:
        settings = queues.queue_settings(None)
    except SettingsError:
        return
    for name in sorted({spec.backend for spec in settings.queues.values()} - {queues.DATABASE}):
        content = await _content(name, settings)
        if content is not None:
            yield await _published(name, store, content)
            for finding in _dead_and_unfit(name, content):
                yield finding


async def _content(name: str, settings: queues.QueueSettings) -> BrokerContent | None:
    given = settings.backends[name]
    try:
        transport = open_transport(name, {key: given[key] for key in given if key != "actor"}, [])
    except SettingsError:
        return None
    try:
        if isinstance(transport, ListingTransport):
            return await asyncio.wait_for(transport.content(), _PATIENCE)
    except (TransportError, TimeoutError):
        return None
    finally:
        await transport.close()
    return None


async def _published(name: str, store: Store, content: BrokerContent) -> Finding:
    found = await leftovers(store, content.published)
    if found.unknown:
        return Finding(
            "messages",
            WARN,
            f"{len(found.unknown)} of {len(content.published)} open messages at {name} are not of this store",
            "give each store a prefix of its own in [backends.NAME]; if no other store uses this broker, an "
            "earlier release left them: purge their subjects, for a completion of them has no effect",
            few([each.name for each in found.unknown]),
        )
    if found.ended:
        return Finding(
            "messages",
            WARN,
            f"{len(found.ended)} of {len(content.published)} open messages at {name} have ended here",
            "`holdfast queue reconcile` withdraws them; workers do it every 5 minutes",
            few([each.name for each in found.ended]),
        )
    return Finding("messages", OK, f"{len(content.published)} open messages at {name}, all open here")


def _dead_and_unfit(name: str, content: BrokerContent) -> list[Finding]:
    found: list[Finding] = []
    if content.dead:
        todo = (
            "`holdfast queue list SCOPE/QUEUE --state dead` shows them; correct and send them again, or "
            "purge them at the broker"
        )
        newest = [f"the newest: {content.newest}"] if content.newest else []
        text = f"{content.dead} messages at {name} could not be taken"
        found.append(Finding("rejected messages", WARN, text, todo, newest))
    if content.unfit:
        todo = "create them anew as docs/how-to/queues-through-nats.md shows; until then nothing is published"
        found.append(Finding("streams", WARN, f"{name} cannot be used as it is", todo, few(content.unfit)))
    return found
