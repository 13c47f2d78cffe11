"""The backend of a pipeline, and whether it can answer all prompts: checked before anything runs."""

from __future__ import annotations

from holdfast.attractor.backends.base import AnyBackend
from holdfast.attractor.backends.model import NAME, ModelBackend
from holdfast.attractor.backends.select import SIMULATION, WAYS_OUT, ambient_backend, backend_named
from holdfast.attractor.prepare import PreparedPipeline
from holdfast.attractor.program import PipelineSetup
from holdfast.errors import InputError, SettingsError
from holdfast.frontends.dot.document import Stage
from holdfast.frontends.dot.model_choice import model_choice

_SHOWN = 5


def backend_asked_for(backend: str | None, *, simulate: bool) -> AnyBackend | None:
    if simulate and backend:
        raise InputError("--simulate and --backend cannot both be given.", hint="Use one of them.")
    return backend_named(backend) if backend else None


def name_for_workers(backend: str | None, *, simulate: bool) -> str:
    """The name of a backend for the run's input: known to every worker, and never a command or code."""
    if simulate:
        return SIMULATION
    return backend if backend in (NAME, SIMULATION) else ""


def require_model(ready: PreparedPipeline, setup: PipelineSetup) -> None:
    """Raises SettingsError for the first stage that no backend here can answer."""
    stages = _prompting_stages(ready, setup)
    if not stages:
        return
    backend = setup.backend or ambient_backend()
    if backend is None:
        shown = ", ".join(stage.id for stage in stages[:_SHOWN])
        more = f" and {len(stages) - _SHOWN} more" if len(stages) > _SHOWN else ""
        raise SettingsError(
            f"stages of this pipeline need a model, and none is configured: {shown}{more}.", hint=WAYS_OUT
        )
    if isinstance(backend, ModelBackend):
        for problem in backend.problems(ready.pipeline, stages).values():
            raise problem


def _prompting_stages(ready: PreparedPipeline, setup: PipelineSetup) -> list[Stage]:
    registry, pipeline = setup.whole_registry(), ready.pipeline
    asks = {"codergen"} - registry.custom
    asking = [stage for stage in pipeline.stages.values() if registry.kind_of(stage) in asks]
    return [stage for stage in asking if model_choice(stage, pipeline).provider != SIMULATION]
