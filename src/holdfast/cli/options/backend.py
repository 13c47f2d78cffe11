"""The backend of a pipeline, and whether it can answer all prompts: checked before anything runs."""

from __future__ import annotations

import re

from holdfast.attractor.backends.agents.backend import AgentBackend
from holdfast.attractor.backends.base import AnyBackend
from holdfast.attractor.backends.model import ModelBackend
from holdfast.attractor.backends.select import WAYS_OUT, ambient_backend, backend_named, backend_problems
from holdfast.attractor.prepare import PreparedPipeline
from holdfast.attractor.program import PipelineSetup
from holdfast.attractor.worker_requirements import prompting_stages
from holdfast.errors import InputError, SettingsError
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.model_choice import model_choice

_SHOWN = 5
# NAME=SPEC. The name never ends before the colon of `cli:`: a command may contain `=`.
_NAMED = re.compile(r"([A-Za-z][\w.-]*(?::[\w.-]+)*)=(.+)", re.DOTALL)


def backend_asked_for(backend: str | None, *, simulate: bool) -> tuple[str, AnyBackend | None]:
    """(NAME, backend) for NAME=SPEC; the name is empty for a SPEC alone."""
    if simulate and backend:
        raise InputError("--simulate and --backend cannot both be given.", hint="Use one of them.")
    if not backend:
        return "", None
    named = _NAMED.fullmatch(backend)
    return (named[1], backend_named(named[2])) if named else ("", backend_named(backend))


def require_model(pipeline: Pipeline, setup: PipelineSetup) -> None:
    """Raises SettingsError for the first stage, of its child pipelines too, that no backend here can
    answer."""
    if setup.simulate:
        return
    for child in pipeline.children.values():
        require_model(child, setup)
    stages = prompting_stages(pipeline, setup.own_handlers)
    for name in sorted({stage.text("agent") for stage in stages} - {""}):
        _require(AgentBackend(name), pipeline, [stage for stage in stages if stage.text("agent") == name])
    stages = [stage for stage in stages if not stage.text("agent")]
    if not stages:
        return
    backend = setup.backend or ambient_backend()
    if backend is None:
        shown = ", ".join(stage.id for stage in stages[:_SHOWN])
        more = f" and {len(stages) - _SHOWN} more" if len(stages) > _SHOWN else ""
        raise SettingsError(
            f"stages of this pipeline need a model, and none is configured: {shown}{more}.", hint=WAYS_OUT
        )
    _require(backend, pipeline, stages)


def default_model_note(ready: PreparedPipeline, setup: PipelineSetup) -> str:
    """Which model answers stages that name none, if a key alone decides that."""
    backend = None if setup.simulate else setup.backend or ambient_backend()
    if not isinstance(backend, ModelBackend) or not backend.selects or backend.providers.settings.model:
        return ""
    stages = [each for each in prompting_stages(ready.pipeline, setup.own_handlers) if not each.text("agent")]
    unnamed = [stage for stage in stages if not model_choice(stage, ready.pipeline).model]
    chosen = {backend.providers.choice_for(stage, ready.pipeline) for stage in unnamed}
    names = sorted({f"{each.model} ({each.provider})" for each in chosen if each.model})
    return f"Default model: {', '.join(names)}. Set llm_model to use another." if names else ""


def _require(backend: AnyBackend, pipeline: Pipeline, stages: list[Stage]) -> None:
    for problem in backend_problems(backend, pipeline, stages).values():
        raise problem
