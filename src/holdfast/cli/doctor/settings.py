"""`doctor`: files of settings that workers read when they need them, and the brokers that they name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

from holdfast.cli.doctor.finding import FAIL, OK, Finding, few
from holdfast.documents import connections
from holdfast.errors import SettingsError, TransportError
from holdfast.queues import settings as queues
from holdfast.queues.transport import ReachableTransport, open_transport

_PATIENCE = 15.0


async def settings_findings() -> AsyncIterator[Finding]:
    """No finding for a file that is not named."""
    if os.environ.get(connections.VARIABLE):
        yield _connections()
    if os.environ.get(queues.VARIABLE):
        try:
            found = queues.queue_settings(None)
        except SettingsError as error:
            yield _wrong("queues", queues.VARIABLE, error)
            return
        yield Finding("queues", OK, f"the file of {queues.VARIABLE} lists {len(found.queues)} queues")
        used = sorted({spec.backend for spec in found.queues.values()} - {queues.DATABASE})
        if used:
            yield await _brokers(found, used)


def _connections() -> Finding:
    try:
        found = connections.Connections().settings
    except SettingsError as error:
        return _wrong("connections", connections.VARIABLE, error)
    count = len(found.connections) + sum(len(each.connections) for each in found.tenants.values())
    return Finding("connections", OK, f"the file of {connections.VARIABLE} has {count} connections")


def _wrong(check: str, variable: str, error: SettingsError) -> Finding:
    return Finding(check, FAIL, f"{variable}: {error.message}", error.hint or "correct the file, or its path")


async def _brokers(settings: queues.QueueSettings, used: list[str]) -> Finding:
    away = [f"{name}: {why}" for name in used if (why := await _away(name, settings.backends[name]))]
    if not away:
        return Finding("brokers", OK, f"all brokers of queues can be reached: {', '.join(used)}")
    return Finding(
        "brokers",
        FAIL,
        f"{len(away)} of {len(used)} brokers of queues cannot be used",
        f"start it, or correct [backends.NAME] in the file of {queues.VARIABLE}; messages wait in the store",
        few(away),
    )


async def _away(name: str, given: dict[str, object]) -> str:
    """Why the broker cannot be used; "": it can, or its transport cannot tell. Nothing is created there."""
    try:
        transport = open_transport(name, {key: given[key] for key in given if key != "actor"}, [])
    except SettingsError as error:
        return error.message
    try:
        if isinstance(transport, ReachableTransport):
            await asyncio.wait_for(transport.reach(), _PATIENCE)
    except TransportError as error:
        return error.message
    except TimeoutError:
        return "no answer"
    finally:
        await transport.close()
    return ""
