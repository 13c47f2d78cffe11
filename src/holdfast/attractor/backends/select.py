"""Selects the backend of a run: the one that it was started with, else the worker's.

The simulation uses no model: each stage is answered by a fixed sentence.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from holdfast.app.loader import load_object
from holdfast.attractor.backends.agents.backend import PREFIX as AGENT
from holdfast.attractor.backends.agents.backend import AgentBackend
from holdfast.attractor.backends.base import AnyBackend, declared_effect, keeps_approvals, missing_error
from holdfast.attractor.backends.cli import PREFIX, CommandBackend
from holdfast.attractor.backends.function import CallableBackend
from holdfast.attractor.backends.model import NAME, ModelBackend
from holdfast.attractor.backends.tools import refuse_approvals
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.providers import VARIABLE as MODELS
from holdfast.attractor.providers import Providers
from holdfast.errors import HoldfastError, InputError
from holdfast.frontends.dot.model_choice import model_choice
from holdfast.types.status import REPEATABLE

if TYPE_CHECKING:
    from holdfast.attractor.context import PipelineContext
    from holdfast.frontends.dot.document import Pipeline, Stage


class SimulationBackend:
    reserves = True  # it spends nothing
    effect = "pure"
    backend_name = "simulation"

    async def run(self, node: Stage, prompt: str, context: PipelineContext) -> str:
        return f"[Simulated] Response for stage: {node.id}"


KEY: Final = "internal.backend"
"""The key in the run's input, so that every worker that resumes the run uses the same backend."""
SIMULATION: Final = "simulation"
_BACKEND: Final = "backend:"
DEFAULT: Final = "default"
"""The backend of a run whose creator named none and had none: that of any worker."""
VARIABLE: Final = "HOLDFAST_BACKEND"
WAYS_OUT: Final = (
    "Give one: `--backend`, `backend=` of the Runner, a provider's key in the environment, or a file that "
    f"{MODELS} names. Or run without any model: `--simulate`."
)


class Backends:
    """`default`: of this worker. `named`: those that a run may ask for by name; it can name no others, so
    that a document cannot bring a command or code. `refuses`: returns why a command of a document may not
    run."""

    def __init__(
        self,
        default: AnyBackend | None = None,
        named: Mapping[str, AnyBackend] | None = None,
        *,
        refuses: Callable[[StageVisit], str] | None = None,
    ) -> None:
        self.default = default
        self.named: dict[str, AnyBackend] = {SIMULATION: SimulationBackend(), **(named or {})}
        self.refuses = refuses

    def of(self, visit: StageVisit) -> AnyBackend:
        """Raises RequirementsMissingError: another backend is never used in place of the one that the run
        was started with."""
        wanted = str(visit.given.get(KEY) or required_backend(visit.pipeline))
        agent = visit.stage.text("agent")
        if model_choice(visit.stage, visit.pipeline).provider == SIMULATION:
            wanted = SIMULATION
        elif agent and wanted != SIMULATION:
            return self._agent(f"{AGENT}{agent}", by_document=True)
        if wanted == NAME and NAME not in self.named:
            self.named[NAME] = self.default if isinstance(self.default, ModelBackend) else ModelBackend()
        if wanted and wanted in self.named:
            return self.named[wanted]
        if wanted.startswith(AGENT):
            return self._agent(wanted)
        if self.default is None:
            self.default = ambient_backend()
        if self.default is None or (wanted and wanted != backend_name(self.default)):
            raise missing_error([f"backend:{wanted or DEFAULT}"])
        return self.default

    def _agent(self, wanted: str, *, by_document: bool = False) -> AnyBackend:
        """That of the operator, if there is one."""
        if self.default is not None and backend_name(self.default) == wanted:
            return self.default
        return self.named.get(wanted) or AgentBackend(wanted.removeprefix(AGENT), by_document=by_document)


def required_backend(pipeline: Pipeline) -> str:
    """The backend that the stored pipeline requires: of a run whose input names none, such as one that is
    started from a stored pipeline. Empty: any."""
    words = sorted(word for word in pipeline.requires or () if word.startswith(_BACKEND))
    names = [word.removeprefix(_BACKEND) for word in words]
    return names[0] if len(names) == 1 and names[0] != DEFAULT else ""


def backend_name(backend: AnyBackend) -> str:
    """How runs and workers name it: `model`, `agent:NAME`, `command:DIGEST`, `function:MODULE.NAME`."""
    named: Any = getattr(backend, "backend_name", None)
    kind = type(backend)
    return named if isinstance(named, str) and named else f"function:{kind.__module__}.{kind.__qualname__}"


def require_approvals_kept(backend: AnyBackend, stage: Stage, pipeline: Pipeline) -> None:
    """Raises InputError if a person is to be asked before calls of tools and the backend does not say that it
    asks (`keeps_approvals`), nor that it changes nothing."""
    if not keeps_approvals(backend) and declared_effect(backend) not in REPEATABLE:
        refuse_approvals(stage, pipeline, f"the backend {backend_name(backend)}")


def backend_problems(
    backend: AnyBackend, pipeline: Pipeline, stages: Iterable[Stage]
) -> Mapping[str, HoldfastError]:
    """The stages that it cannot do, and why: checked before anything runs."""
    if isinstance(backend, ModelBackend | AgentBackend | CommandBackend):
        return backend.problems(pipeline, stages)
    found: dict[str, HoldfastError] = {}
    for stage in stages:
        try:
            require_approvals_kept(backend, stage, pipeline)
        except InputError as error:
            found[stage.id] = error
    return found


def backend_of(given: Any) -> AnyBackend:
    """A backend, or a function that is one. Raises InputError."""
    if isinstance(given, type):
        given = given()
    if callable(getattr(given, "run", None)) or callable(getattr(given, "answer", None)):
        made = given
    else:
        made = CallableBackend(given)
    declared_effect(made)
    return made


def backend_named(spec: str, what: str = "--backend") -> AnyBackend:
    """`model`, `simulation`, `agent:NAME`, `cli:COMMAND`, or `file.py:name`. Raises InputError and
    FlowNotFoundError."""
    if spec == NAME:
        return ModelBackend()
    if spec == SIMULATION:
        return SimulationBackend()
    if spec.startswith(AGENT):
        return AgentBackend(spec.removeprefix(AGENT))
    if spec.startswith(PREFIX):
        return CommandBackend(spec.removeprefix(PREFIX))
    return backend_of(load_object(spec, what))


def ambient_backend() -> AnyBackend | None:
    """From the environment: HOLDFAST_BACKEND, else models, if a provider is configured."""
    value = os.environ.get(VARIABLE, "")
    if value:
        return backend_named(value, VARIABLE)
    providers = Providers()
    return ModelBackend(providers) if providers.any_usable else None
