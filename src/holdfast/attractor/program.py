"""The code of a pipeline: built from its stored graph alone, so that any worker can run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from holdfast.app.extensions import PIPELINES
from holdfast.attractor.backends.base import AnyBackend
from holdfast.attractor.backends.model import NAME as MODEL
from holdfast.attractor.backends.model import ModelBackend
from holdfast.attractor.backends.select import SIMULATION, Backends, ambient_backend, backend_name
from holdfast.attractor.child_budget import with_budget
from holdfast.attractor.directory_sync import DIRECTORY_SYNCS
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.handlers.codergen import CodergenHandler
from holdfast.attractor.handlers.control import ConditionalHandler, ExitHandler, ParallelHandler, StartHandler
from holdfast.attractor.handlers.fan_in import FanInHandler
from holdfast.attractor.handlers.human import HumanHandler
from holdfast.attractor.handlers.manager import ManagerHandler
from holdfast.attractor.handlers.tool import ToolHandler
from holdfast.attractor.interviewers import Interviewer
from holdfast.attractor.machine_requirements import refusal_of
from holdfast.attractor.pipeline_limits import budget_of
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.stage_runner import StageRunner
from holdfast.attractor.stored_source import pipeline_of, shared_stages
from holdfast.attractor.worker_requirements import (
    offers_of,
    read_child,
    require_means,
    stored_requirements,
    with_requirements,
)
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.handler_kinds import BUILT_IN
from holdfast.frontends.dot.lower import lower
from holdfast.frontends.dot.merge import with_approvals_of
from holdfast.frontends.python.code import code_fingerprint
from holdfast.model.fingerprint import graph_fingerprint
from holdfast.model.graph import Graph, GraphSpec, NodeKind
from holdfast.model.program import NodeHandler, Program
from holdfast.model.state_schema import StateSchema

CODE = "attractor/1"
"""The version of the built-in handlers: raised when one takes other steps than before."""


class PipelineSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker adds to the built-in handlers."""

    backend: AnyBackend | None = None
    backends: Mapping[str, AnyBackend] = {}
    registry: HandlerRegistry | None = None
    interviewer: Interviewer | None = None
    """Answers gates in this process; without one only people do."""
    allow_tool: Callable[[StageVisit], str] | None = None
    """Returns why a tool's command may not run here, or an empty text."""
    named_as: str = ""
    """The name of `backend` for runs and workers; without one, `backend_name`."""
    simulate: bool = False
    """Runs that are created with this setup use no model."""
    asked: str = ""
    """The name of the backend of runs that are created with this setup; this process may not have it."""

    @property
    def own_handlers(self) -> frozenset[str]:
        return frozenset() if self.registry is None else self.registry.registered

    def name_of(self, backend: AnyBackend) -> str:
        return self.named_as if self.named_as and backend is self.backend else backend_name(backend)

    @property
    def asks_for(self) -> str:
        """The name of the backend in the input of a run that is created with this setup; empty: any."""
        if self.simulate:
            return SIMULATION
        if self.asked:
            return self.asked
        backend = self.backend or ambient_backend()
        return "" if backend is None else self.name_of(backend)

    def refusal(self, visit: StageVisit) -> str:
        """Why nothing of a document may run here, or an empty text."""
        return refusal_of(visit) or ("" if self.allow_tool is None else self.allow_tool(visit))

    def whole_registry(self) -> HandlerRegistry:
        """The built-in handlers, with what this worker adds or replaces."""
        return built_in_handlers(self).merged(self.registry)

    def for_run(self, asked: str) -> PipelineSetup:
        """This setup with the backend that a run names as its own."""
        if asked == SIMULATION:
            return msgspec.structs.replace(self, simulate=True)
        if asked in self.backends:
            return msgspec.structs.replace(self, backend=self.backends[asked], named_as=asked)
        if asked == MODEL and not isinstance(self.backend, ModelBackend):
            return msgspec.structs.replace(self, backend=ModelBackend(), named_as="")
        return self

    def child(
        self,
        found: Pipeline | Path,
        asked: str = "",
        approvals: frozenset[str] = frozenset(),
        parent: Pipeline | None = None,
        left: Mapping[str, int] = {},
    ) -> tuple[Pipeline, Program]:
        """A child pipeline of a manager: the one that is stored with the manager's pipeline, or a file that
        is read now. Raises InputError."""
        if isinstance(found, Pipeline):
            known = BUILT_IN | types_of(found.requires or ())
            pipeline = with_budget(found, left, parent)
            return pipeline, program_of(lower(pipeline, known_types=known), self)
        read = with_approvals_of(read_child(found, self.whole_registry().types), approvals)
        pipeline = with_budget(read, left, parent)
        return pipeline, program_for(pipeline, self.for_run(asked))


def built_in_handlers(setup: PipelineSetup) -> HandlerRegistry:
    named = dict(setup.backends)
    if setup.named_as and setup.backend is not None:
        named[setup.named_as] = setup.backend
    backends = Backends(setup.backend, named, refuses=setup.refusal)
    return HandlerRegistry(
        {
            "start": StartHandler(),
            "exit": ExitHandler(),
            "codergen": CodergenHandler(backends),
            "wait.human": HumanHandler(setup.interviewer),
            "conditional": ConditionalHandler(),
            "parallel": ParallelHandler(),
            "parallel.fan_in": FanInHandler(backends),
            "tool": ToolHandler(allowed=setup.refusal),
            "stack.manager_loop": ManagerHandler(backends, setup.child),
        }
    )


def program_for(pipeline: Pipeline, setup: PipelineSetup | None = None) -> Program:
    """The program of a transformed and valid pipeline."""
    setup = setup or PipelineSetup()
    pipeline = with_requirements(pipeline, setup)
    registry = setup.whole_registry()
    return _program(lower(pipeline, known_types=registry.types), pipeline, registry)


def program_of(spec: GraphSpec, setup: PipelineSetup | None = None) -> Program:
    """The program of a stored graph. Raises VersionMismatchError if it is not of a pipeline, and
    RequirementsMissingError if it needs what this setup has not."""
    setup = setup or PipelineSetup()
    pipeline, requires = pipeline_of(spec), stored_requirements(spec)
    if requires is None or setup.registry is None:
        registry = setup.whole_registry()
    else:
        # A type that was not registered when the run was created keeps the handler of its shape.
        registry = built_in_handlers(setup).merged(setup.registry.only(types_of(requires)))
    if requires:
        require_means(requires, offers_of(setup))
    return _program(spec, pipeline, registry)


def types_of(requires: Iterable[str]) -> set[str]:
    """The types with handlers of their own."""
    return {word.removeprefix("handler:") for word in requires if word.startswith("handler:")}


class PipelineDialect:
    """How stored pipelines become programs in a process with this setup."""

    def __init__(self, setup: PipelineSetup | None = None) -> None:
        self._setup = setup or PipelineSetup()

    def __call__(self, spec: GraphSpec) -> Program:
        return program_of(spec, self._setup)

    def needs(self, spec: GraphSpec) -> frozenset[str]:
        return stored_requirements(spec) or frozenset()

    def offers(self) -> frozenset[str]:
        return offers_of(self._setup)


PIPELINES.register(PipelineDialect())


def _program(
    spec: GraphSpec, pipeline: Pipeline, registry: HandlerRegistry, performer: StageRunner | None = None
) -> Program:
    performer = performer or StageRunner(pipeline, registry, shared_stages(spec), DIRECTORY_SYNCS.write)
    handlers = {
        node.id: _handler(performer, pipeline.stages[node.id], _mark(registry, pipeline, node.id))
        for node in spec.nodes
        if node.kind is NodeKind.task
    }
    program = Program(
        Graph(spec),
        version=graph_fingerprint(spec),
        code={name: handler.code for name, handler in handlers.items()},
        handlers=handlers,
        routers={},
        schema=StateSchema(),
        children={inner.name: _program(inner, pipeline, registry, performer) for inner in spec.subgraphs},
    )
    program.beside = DIRECTORY_SYNCS.beside
    program.budget = budget_of(pipeline)
    return program


def _handler(performer: StageRunner, stage: Stage, mark: str) -> NodeHandler:
    instant = performer.at_once(stage)
    if instant is not None:
        return NodeHandler(fn=instant, is_async=True, takes=("state",), code=mark, waits=False)
    return NodeHandler(fn=performer.of(stage), is_async=True, takes=("state", "ctx"), code=mark)


def _mark(registry: HandlerRegistry, pipeline: Pipeline, stage: str) -> str:
    """Built-in handlers share one version; a custom one has the hash of its code."""
    handler = registry.resolve(pipeline.stages[stage])
    execute = getattr(handler, "execute", None)
    return CODE if execute is None else code_fingerprint(execute)
