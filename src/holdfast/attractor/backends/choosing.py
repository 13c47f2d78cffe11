"""Which backend answers the prompts of a run: the one that it was started with, else the worker's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.attractor.backends.base import AnyBackend
from holdfast.attractor.backends.calling import CallableBackend
from holdfast.attractor.backends.simulation import Simulation
from holdfast.attractor.handler import Visit
from holdfast.errors import SettingsError

KEY: Final = "internal.backend"
"""In the run's input, so that whoever goes on with it asks the same one."""
SIMULATION: Final = "simulation"
WAYS_OUT: Final = (
    "Give one (`--backend`, or `backend=` of the Runner), or run without any model: `--simulate`."
)


class Backends:
    """`default`: of this worker. `named`: those that a run may ask for by name."""

    def __init__(
        self, default: AnyBackend | None = None, named: Mapping[str, AnyBackend] | None = None
    ) -> None:
        self.default = default
        self.named: dict[str, AnyBackend] = {SIMULATION: Simulation(), **(named or {})}

    def of(self, visit: Visit) -> AnyBackend:
        """Raises SettingsError, which says what to do."""
        wanted = str(visit.given.get(KEY) or "")
        if wanted and wanted in self.named:
            return self.named[wanted]
        if wanted and self.default is None:
            raise SettingsError(f"the backend {wanted!r} is not known here.", hint=WAYS_OUT)
        if self.default is None:
            raise SettingsError("no model is configured here.", hint=WAYS_OUT)
        return self.default


def backend_of(given: Any) -> AnyBackend:
    """A backend, or a function that is one. Raises InputError."""
    if callable(getattr(given, "run", None)) or callable(getattr(given, "answer", None)):
        return given
    return CallableBackend(given)
