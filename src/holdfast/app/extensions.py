"""What packages outside of the core add to `Flow` and `Holdfast`: agents, stored pipelines and documents,
post-mortems.

The core imports none of these packages. Each of them registers what it adds when it is imported; an extension
point names the module to import when its feature is first used and nothing is registered yet.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.frontends.python import FlowBuilder, NodeHandle
    from holdfast.holds.service import HoldService
    from holdfast.model.graph import GraphSpec
    from holdfast.model.program import Program
    from holdfast.runs.driver.services import RunEngine
    from holdfast.runs.service import RunService
    from holdfast.store.protocols import Store
    from holdfast.types.clock import Clock

T = TypeVar("T")


class ExtensionPoint(Generic[T]):
    """One feature. `module`: what registers it, imported only when the feature is used for the first time, so
    that a program without agents or pipelines does not load them."""

    def __init__(self, feature: str, module: str) -> None:
        self.feature = feature
        self.module = module
        self._registered: T | None = None

    def register(self, implementation: T) -> None:
        """The last one counts: an application may replace what comes with Holdfast."""
        self._registered = implementation

    def load(self) -> T:
        """Raises InputError where no installed package provides the feature."""
        if self._registered is None:
            self._import()
        if self._registered is None:
            raise InputError(
                f"{self.feature} are not available: {self.module} registers nothing.",
                hint=f"Reinstall holdfast-flow; {self.module} belongs to another version of it.",
            )
        return self._registered

    def _import(self) -> None:
        try:
            import_module(self.module)
        except ModuleNotFoundError as error:
            # An import that fails inside of the module is a fault of its own, and says so itself.
            if error.name is None or not self.module.startswith(error.name):
                raise
            raise InputError(
                f"{self.feature} are not available: this installation has no module {self.module}.",
                hint="Reinstall holdfast-flow with all of its packages.",
            ) from error


class PostmortemReports(NamedTuple):
    """`render`: a run's post-mortem as a page in one of its formats. `build`: the same as data."""

    render: Callable[[RunService, str, str], Awaitable[str]]
    build: Callable[[RunService, str], Awaitable[Any]]


class AddAgentNode(Protocol):
    def __call__(
        self,
        flow: FlowBuilder,
        id: str,  # noqa: A002
        agent: Any,
        *,
        parts: dict[str, Any],
        prompt: str | Callable[[Any], str],
        turns: bool | Callable[[Any], bool],
        fields: dict[str, str | None],
        policies: dict[str, Any],
    ) -> NodeHandle[..., Any]:
        """`parts`: what to make an agent of where `agent` is None. `fields`: those of the state that it reads
        and writes (`output`, `history`, `uploads`, `files`). `policies`: the options of any node."""
        ...


class OpenQueues(Protocol):
    def __call__(
        self, store: Store, people: HoldService, clock: Clock, settings: Any, *, base_url: str
    ) -> Any:
        """The service of queues. `settings`: as it was given to the instance, or None. `base_url`: the
        public address of the server, for links."""
        ...


class StoredDialect(Protocol):
    """How stored documents become programs."""

    def __call__(self, spec: GraphSpec) -> Program: ...

    def needs(self, spec: GraphSpec) -> frozenset[str]:
        """What a process must have to run it: `function:score`, `check:pii`, `tool:grep`."""
        ...

    def offers(self) -> frozenset[str]:
        """What this process has, in the same words."""
        ...


class EngineLink(Protocol):
    """An engine beside the built-in workers, as an instance is given it."""

    def require_store(self, address: str, *, clock: bool) -> None:
        """Raises EngineError for a store that it cannot be used with."""
        ...

    def open(self, service: RunService) -> RunEngine:
        """For the runs of this service."""
        ...


class WebParts(NamedTuple):
    """`lifespan` and `asgi` of `Holdfast`, whose first argument is the instance."""

    lifespan: Callable[..., Any]
    asgi: Callable[..., Any]


_FUNCTIONS: Final = "holdfast.documents.functions"
AGENT_NODES: ExtensionPoint[AddAgentNode] = ExtensionPoint("agent nodes", "holdfast.agents.node")
PIPELINES: ExtensionPoint[StoredDialect] = ExtensionPoint("Attractor pipelines", "holdfast.attractor.program")
QUEUES: ExtensionPoint[OpenQueues] = ExtensionPoint("queues", "holdfast.queues.service")
DOCUMENTS: ExtensionPoint[StoredDialect] = ExtensionPoint("flow documents", "holdfast.documents.program")
WEB: ExtensionPoint[WebParts] = ExtensionPoint("web applications", "holdfast.integrations.starlette")
ENGINES: ExtensionPoint[Callable[[str], EngineLink]] = ExtensionPoint("engines", "holdfast.drivers.temporal")
POSTMORTEMS: ExtensionPoint[PostmortemReports] = ExtensionPoint("post-mortems", "holdfast.reports.formats")


def stored_dialects() -> dict[str, Callable[[GraphSpec], Program]]:
    """By dialect, how a stored document becomes a program. Its package is loaded with the first of them."""
    return {
        "attractor": _Pipelines(),
        "canvas": _Documents(),
    }


class _Pipelines:
    """Attractor pipelines. Their package is loaded with the first of them that is met."""

    def __init__(self) -> None:
        self._met = False

    def __call__(self, spec: GraphSpec) -> Program:
        return PIPELINES.load()(spec)

    def needs(self, spec: GraphSpec) -> frozenset[str]:
        self._met = True
        return PIPELINES.load().needs(spec)

    def offers(self) -> frozenset[str]:
        return PIPELINES.load().offers() if self._met else frozenset()


class _Documents:
    """Flow documents. Their package is loaded with the first of them."""

    def __call__(self, spec: GraphSpec) -> Program:
        return DOCUMENTS.load()(spec)

    def needs(self, spec: GraphSpec) -> frozenset[str]:
        return DOCUMENTS.load().needs(spec)

    def offers(self) -> frozenset[str]:
        # Only that package registers functions and tools: without it there are none.
        return DOCUMENTS.load().offers() if _FUNCTIONS in sys.modules else frozenset()
