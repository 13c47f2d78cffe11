"""What a run of a pipeline needs of its worker: a backend, registered handlers, providers of models, tools.

The words are stored with the graph when a run is created, and so with every fork and export of it. A worker
announces its own words and claims only runs whose words it has; it never replaces what it lacks by another
backend, model or handler.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.attractor.backends.agents.backend import PREFIX as AGENT
from holdfast.attractor.backends.agents.backend import AgentBackend, installed_agents
from holdfast.attractor.backends.base import AnyBackend, missing_error
from holdfast.attractor.backends.cli import OWN_PATH, CommandBackend
from holdfast.attractor.backends.model import NAME as MODEL
from holdfast.attractor.backends.model import ModelBackend
from holdfast.attractor.backends.select import DEFAULT, SIMULATION, ambient_backend
from holdfast.attractor.backends.tools import wanted_kits
from holdfast.attractor.git import PROGRAM, git_fault
from holdfast.attractor.machine_requirements import required_access_of
from holdfast.attractor.worktree_requirements import has_worktrees
from holdfast.errors import InputError, RunFileMissingError
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.handler_kinds import BUILT_IN, kind_of
from holdfast.frontends.dot.model_choice import agent_fault, model_choice
from holdfast.frontends.dot.transforms import prepare
from holdfast.model.fingerprint import REQUIRES
from holdfast.model.graph import GraphSpec
from holdfast.runs.driver.settings import ALLOW_CODE

if TYPE_CHECKING:
    from holdfast.attractor.program import PipelineSetup


_DEFAULT: Final = "default:"
"""A worker's word for the backend that it uses where none is named: a server chooses by it."""


def with_requirements(pipeline: Pipeline, setup: PipelineSetup) -> Pipeline:
    """With what a run needs that is created with this setup, and with its models; its child pipelines too.
    Raises InputError if the agent that is asked for cannot do a stage: no worker could."""
    _require_agent_fits(pipeline, setup)
    children = {name: with_requirements(child, setup) for name, child in pipeline.children.items()}
    pipeline = msgspec.structs.replace(with_models(pipeline, setup), children=children)
    return msgspec.structs.replace(pipeline, requires=requirements_of(pipeline, setup))


def _require_agent_fits(pipeline: Pipeline, setup: PipelineSetup) -> None:
    name = setup.backend.adapter.name if isinstance(setup.backend, AgentBackend) else ""
    name = setup.asked.removeprefix(AGENT) if setup.asked.startswith(AGENT) else name
    for stage in () if setup.simulate else prompting_stages(pipeline, setup.own_handlers):
        fault, hint = agent_fault(stage.text("agent") or name, stage, pipeline)
        if fault:
            raise InputError(f"{fault}.", hint=hint)


def requirements_of(pipeline: Pipeline, setup: PipelineSetup) -> frozenset[str]:
    """Of a run that is created with this setup, and of its child pipelines."""
    own = setup.own_handlers
    words = {word for child in pipeline.children.values() for word in child.requires or ()} | {
        f"handler:{kind}"
        for stage in pipeline.stages.values()
        for kind in {stage.type, kind_of(stage, BUILT_IN | own)} & own
    }
    if pipeline.submitted and any(each.is_code for each in required_access_of(pipeline)):
        words.add(ALLOW_CODE)
    words |= {PROGRAM} if has_worktrees(pipeline) else set()
    stages = prompting_stages(pipeline, own)
    if setup.simulate:
        return frozenset(words)
    words |= {f"{AGENT}{agent}" for stage in stages if (agent := stage.text("agent"))}
    stages = [stage for stage in stages if not stage.text("agent")]
    if not stages:
        return frozenset(words)
    backend = _creating_backend(setup)
    name = setup.asked or (DEFAULT if backend is None else setup.name_of(backend))
    words.add(backend_word(name))
    known = backend if backend is not None else setup.backend
    if isinstance(known, CommandBackend) and name == known.backend_name and known.program:
        words |= set() if any(OWN_PATH in stage.attrs for stage in stages) else {known.program}
    if isinstance(backend, ModelBackend) and backend.selects:
        for stage in stages:
            provider = backend.providers.choice_for(stage, pipeline).provider
            words |= {f"provider:{provider}"} if provider else set()
            words |= {f"kit:{kit}" for kit in wanted_kits(stage, pipeline, backend.kits)}
    return frozenset(words)


def _creating_backend(setup: PipelineSetup) -> AnyBackend | None:
    """What chooses the models of a run that is created here; None: its worker does, or it needs none."""
    if setup.simulate or setup.asked not in ("", MODEL):
        return None
    backend = setup.backend or ambient_backend()
    return ModelBackend() if setup.asked and not isinstance(backend, ModelBackend) else backend


def default_of(offers: Iterable[str]) -> str:
    """The backend of a worker for stages that name none, by what it announces; empty without one."""
    return next((word.removeprefix(_DEFAULT) for word in offers if word.startswith(_DEFAULT)), "")


def read_child(path: Path, known: frozenset[str]) -> Pipeline:
    """The child pipeline of a manager that reads it when it starts it. Raises RunFileMissingError if
    this machine has no such file, and PipelineInvalidError."""
    try:
        source = path.read_bytes()
    except OSError as error:
        raise RunFileMissingError(
            f"this run waits for a worker with file:{path.name}: {path} cannot be read: {error.strerror}.",
            hint="Put the file there; the run continues then.",
            missing=[f"file:{path.name}"],
        ) from error
    return prepare(source, path=str(path), known_types=known).require_valid()


def with_models(pipeline: Pipeline, setup: PipelineSetup) -> Pipeline:
    """Each stage with the model and the provider that it would get here, a default too: other processes may
    have other defaults."""
    backend = _creating_backend(setup)
    if not isinstance(backend, ModelBackend) or not backend.selects:
        return pipeline
    stages = dict(pipeline.stages)
    for stage in prompting_stages(pipeline, setup.own_handlers):
        if stage.text("agent"):
            continue
        choice = backend.providers.choice_for(stage, pipeline)
        chosen = {"llm_model": choice.model, "llm_provider": choice.provider}
        more = {key: value for key, value in chosen.items() if value and stage.text(key) != value}
        if more:
            stages[stage.id] = msgspec.structs.replace(stage, attrs={**stage.attrs, **more})
    return msgspec.structs.replace(pipeline, stages=stages)


def offers_of(setup: PipelineSetup) -> frozenset[str]:
    """What a process with this setup has."""
    words = {f"backend:{SIMULATION}", *(f"backend:{name}" for name in setup.backends)}
    words |= {f"handler:{kind}" for kind in setup.own_handlers}
    backend = setup.backend or ambient_backend()
    words |= {f"{AGENT}{name}" for name in installed_agents()}
    words |= set() if git_fault() else {PROGRAM}
    commands = [each for each in (backend, *setup.backends.values()) if isinstance(each, CommandBackend)]
    words |= {each.program for each in commands if each.has_program} - {""}
    if backend is not None:
        name = setup.name_of(backend)
        words |= {f"backend:{DEFAULT}", f"{_DEFAULT}{name}", backend_word(name)}
    # A run may ask for models beside another default: see `Backends.of`.
    models = backend if isinstance(backend, ModelBackend) else ModelBackend()
    usable = [name for name in models.providers.known if models.providers.is_usable(name)]
    if usable:
        words |= {f"backend:{MODEL}", *(f"provider:{name}" for name in usable)}
        words |= {f"kit:{kit}" for kit in models.kits}
    return frozenset(words)


def backend_word(name: str) -> str:
    """An agent is the same word for a run and for a stage of a run."""
    return name if name.startswith(AGENT) else f"backend:{name}"


def prompting_stages(pipeline: Pipeline, own: frozenset[str]) -> list[Stage]:
    """The stages whose prompts go to a backend. `own`: the types that have a registered handler."""
    stages = [
        stage
        for stage in pipeline.stages.values()
        if (kind := kind_of(stage, BUILT_IN | own)) not in own
        and (kind == "codergen" or (kind == "parallel.fan_in" and stage.prompt))
    ]
    return [stage for stage in stages if model_choice(stage, pipeline).provider != SIMULATION]


def stored_requirements(spec: GraphSpec) -> frozenset[str] | None:
    """None for a graph that was stored before requirements were."""
    found = (spec.document or {}).get(REQUIRES)
    return None if found is None else frozenset(found)


def require_means(requires: frozenset[str], offers: frozenset[str]) -> None:
    """Raises RequirementsMissingError. Whether code of others may run is asked where it would run: it is a
    setting of the process and not of its pipelines."""
    missing = sorted(requires - offers - {ALLOW_CODE})
    if missing:
        raise missing_error(missing)
