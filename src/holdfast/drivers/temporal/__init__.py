"""Runs on a Temporal cluster: `Holdfast(store, engine="temporal://localhost:7233/default")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.app.extensions import ENGINES
from holdfast.drivers.temporal.address import EngineAddress, parse_address
from holdfast.errors import EngineError

if TYPE_CHECKING:
    from holdfast.runs.service import RunService


class TemporalLink:
    """Implements `EngineLink`: a cluster as an instance is given it. Raises EngineError if the address cannot
    be read, or the SDK is missing."""

    def __init__(self, text: str) -> None:
        self.address: EngineAddress = parse_address(text)
        try:
            from holdfast.drivers.temporal.client import Cluster
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("temporalio"):
                raise
            raise EngineError(
                "runs on a Temporal cluster need its SDK, which is not installed.",
                hint="Install the extra `temporal` (pip install 'holdfast-flow[temporal]').",
            ) from error
        self.cluster = Cluster(self.address)

    def require_store(self, address: str, *, clock: bool) -> None:
        """Raises EngineError for a store that the workers of a cluster cannot share."""
        why = None
        if clock:
            why = "a clock was given, and the cluster has its own"
        elif address.startswith("memory"):
            why = "the store is in the memory of one process"
        elif address.startswith("sqlite") and not self.address.is_local:
            why = "the store is a file of this machine, and the cluster is on another"
        if why is not None:
            raise EngineError(
                f"runs cannot be driven by {self.address.name}: {why}.",
                hint="Use PostgreSQL, or leave the engine out.",
            )

    def open(self, service: RunService) -> Any:
        from holdfast.drivers.temporal.client import TemporalEngine

        return TemporalEngine(self.cluster, service)


ENGINES.register(TemporalLink)
