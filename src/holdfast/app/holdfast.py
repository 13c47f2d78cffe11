"""The wiring: one store, a runtime for each event loop, and the programs that this process serves.

Also what is stored beside runs: skills, deployments that bind them to flows, schedules, limits.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from holdfast.app.effect_decorator import EffectDeclarations
from holdfast.app.extensions import ENGINES, POSTMORTEMS, WEB, stored_dialects
from holdfast.app.places import OnePlace, Place, TenantDirectory, TenantsOfCell, open_place
from holdfast.checkpoint.keys import KeyRing, keys_from_environment
from holdfast.errors import SettingsError, TenantNotPlacedError
from holdfast.model.program import Program
from holdfast.runs.driver.runtime import Runtime
from holdfast.runs.driver.settings import RunSettings
from holdfast.runs.encryption.detect import holds_ciphertext
from holdfast.runs.node_memory import StoredMemory
from holdfast.runs.service import RunService
from holdfast.store.blob.objects import Objects, open_blobs
from holdfast.store.protocols import Store
from holdfast.types.clock import Clock
from holdfast.types.deployment import Binding, Defaults, Deployment
from holdfast.types.ids import DEFAULT_CELL, DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.checkpoint.diff_result import Diff
    from holdfast.frontends.python import FlowBuilder
    from holdfast.holds.actions.rate_limit import Pace
    from holdfast.holds.callbacks import Callbacks
    from holdfast.holds.deployments.deployments import Deployments
    from holdfast.holds.deployments.skills import SkillRegistry
    from holdfast.holds.directory.base import Directory
    from holdfast.holds.forms.attachments import Scan
    from holdfast.holds.notify.channel import Channel
    from holdfast.holds.notify.settings import NotifySettings
    from holdfast.holds.policies.guardrails import Guardrails
    from holdfast.holds.policies.judge import Judges
    from holdfast.holds.policies.load import PolicySource
    from holdfast.holds.service import HoldService
    from holdfast.model.graph import GraphSpec
    from holdfast.runs.concurrency_limits.service import LimitService
    from holdfast.runs.history.checkpoint_store import CheckpointView
    from holdfast.runs.history.replay import Replay
    from holdfast.runs.node_memory import Embed
    from holdfast.runs.schedules.service import ScheduleService
    from holdfast.store.protocols import Store


class StoreServices:
    if TYPE_CHECKING:

        async def open(self) -> Store: ...

        async def service(self) -> RunService: ...

        async def queues(self) -> Any: ...

    async def skills(self) -> SkillRegistry:
        """Skills of the store: publish, find, yank."""
        from holdfast.holds.deployments.skills import SkillRegistry

        return SkillRegistry(await self.open())

    async def deployments(self) -> Deployments:
        """Deployments of the store: find, delegate, revoke."""
        from holdfast.holds.deployments.deployments import Deployments

        return Deployments(await self.open())

    async def schedules(self) -> ScheduleService:
        """Schedules of the store: put, list, pause, resume, trigger, drop."""
        from holdfast.runs.schedules.service import ScheduleService

        return ScheduleService(await self.open())

    async def checkpoint_store(self, tenant: str | None = None) -> CheckpointView:
        """Checkpoints in the published interface: save, get, load, latest, list, delete, fork. `tenant`: only
        of its runs."""
        from holdfast.runs.history.checkpoint_store import CheckpointView

        return CheckpointView(await self.service(), tenant)

    async def limits(self) -> LimitService:
        """Limits that apply in the store: list, set, clear."""
        from holdfast.runs.concurrency_limits.service import LimitService

        return LimitService(await self.open())

    async def deploy(
        self,
        name: str,
        flow: FlowBuilder | str,
        *,
        version: str = "",
        mode: str = "plain",
        skills: Iterable[str | Binding] = (),
        on_changed_skill: str = "warn",
        on_behalf_of: str | None = None,
        since: datetime | timedelta | None = None,
        until: datetime | timedelta | None = None,
        assignee: str | None = None,
        priority: str | None = None,
        calendar: str | None = None,
        timeout: str | None = None,
        on_timeout: str | None = None,
        reminder: str | None = None,
        policies: Iterable[str] = (),
        by: str = "user:local",
        tenant: str = DEFAULT_TENANT,
    ) -> Deployment:
        """Put a flow to work under a name: `flow.run(..., deployment=name)` starts runs of it. Doing it again
        changes its settings for runs that start later.

        `skills`: what its runs are pinned to when they start (`"refunds@^1"`). `mode`: `entity`, where each
        run is one of an entity and names it by `instance_key`, or `plain`. `on_behalf_of`: whom holds for
        `delegated_user` go to, from `since` `until`. `assignee` to `reminder`: for holds that do not say.
        `policies`: only these, by name, are asked about its holds; else all. `version`: only this version of
        the flow is started under it."""
        if not isinstance(flow, str):
            (await self.queues()).require_queues(flow.compile().graph.spec)
        deployments = await self.deployments()
        defaults = Defaults(
            assignee=assignee,
            priority=priority,
            calendar=calendar,
            timeout=timeout,
            on_timeout=on_timeout,
            reminder=reminder,
        )
        made = await deployments.put(
            name,
            flow if isinstance(flow, str) else flow.name,
            version=version,
            mode=mode,
            skills=skills,
            on_changed_skill=on_changed_skill,
            defaults=defaults,
            policies=policies,
            by=by,
            tenant=tenant,
        )
        if on_behalf_of is None:
            return made
        return await deployments.delegate(name, on_behalf_of, since=since, until=until, by=by, tenant=tenant)


DEFAULT_STORE = "sqlite:.holdfast/holdfast.db"


class Holdfast(StoreServices, EffectDeclarations):
    """Where flows run: `Holdfast("sqlite:runs.db")`. Without an address: HOLDFAST_STORE, else a file in
    `.holdfast/` of the working folder.

    `memory`: what `ctx.memory` reads and writes, if not the store. `embed`: what makes vectors of texts, for
    semantic reads of the store's memory.
    `keys`: what is stored is encrypted under them; without, those of HOLDFAST_KEYS, if there are any.

    `directory` knows people, groups and roles: one of your own, the path of a file, or "store" for the one
    that is kept there; without, that of HOLDFAST_DIRECTORY. `policies`: rules for holds, as `Policy` or as
    files, `store` for those in the store; without, the files of HOLDFAST_POLICIES. `judges`: whom rules in
    files may ask.
    `guardrails`: what approvals have to pass that no person gave. `notify`: the channels by which people hear
    of holds, as settings or their file (without: HOLDFAST_NOTIFY); `channels`: further ones of your own.
    `scan`: looks into each file that people attach, and says what is wrong with it, or nothing.
    `pace`: how often one person may act on holds; without, without limit.
    `queues`: the settings of queues, or the path of their file; without, that of HOLDFAST_QUEUES.
    `engine`: the address of a Temporal cluster that drives new runs instead of the built-in workers; without,
    that of HOLDFAST_ENGINE, if there is one.
    `tenants`: in which place each tenant is, instead of a store, blob store and engine for all of them; `at`
    is the instance of a tenant's place.

    Close it with `await hf.close()` or use it in `async with`.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        clock: Clock | None = None,
        settings: RunSettings | None = None,
        objects: Objects | str | None = None,
        memory: Any = None,
        embed: Embed | None = None,
        keys: KeyRing | None = None,
        directory: Directory | str | Path | None = None,
        policies: PolicySource | Iterable[PolicySource] | None = None,
        judges: Judges | None = None,
        guardrails: Guardrails | None = None,
        notify: NotifySettings | str | Path | None = None,
        channels: Sequence[Channel] = (),
        scan: Scan | None = None,
        pace: Pace | None = None,
        queues: Any = None,
        engine: str | None = None,
        tenants: TenantDirectory | None = None,
    ) -> None:
        super().__init__()
        if tenants is not None and not (store is None and objects is None and engine is None):
            raise SettingsError("give either tenants, or the store, objects and engine of all tenants.")
        # As it was given; each instance of a place gets the same.
        self._options: dict[str, Any] = {
            "clock": clock, "settings": settings, "memory": memory, "embed": embed, "keys": keys,
            "directory": directory, "policies": policies, "judges": judges, "guardrails": guardrails,
            "notify": notify, "channels": channels, "scan": scan, "pace": pace, "queues": queues,
        }  # fmt: skip
        self._instances: dict[str, Holdfast] = {}
        self._given = store if store is not None else os.environ.get("HOLDFAST_STORE") or DEFAULT_STORE
        self._store: Store | None = None
        self._opening = threading.Lock()
        self._clock = clock
        self._settings = settings
        blobs = os.environ.get("HOLDFAST_BLOBS") if objects is None else objects
        self._objects = open_blobs(blobs) if isinstance(blobs, str) and blobs else blobs or None
        self._memory = memory
        self._embed = embed
        self._keys = keys
        named = os.environ.get("HOLDFAST_ENGINE") if engine is None else engine
        self._engine = ENGINES.load()(named) if named else None
        self.cell = os.environ.get("HOLDFAST_CELL") or DEFAULT_CELL
        place = Place(store=self._given, engine=named or None, objects=self._objects, cell=self.cell)
        # None: each tenant has an instance of its own place.
        self._place = place if tenants is None else None
        self._tenants = tenants or OnePlace(place)
        # Imported with the first instance: a program that only declares flows needs none of it.
        from holdfast.app.wiring import make_wiring

        self._wiring = make_wiring(
            directory=directory, policies=policies, judges=judges, guardrails=guardrails, notify=notify,
            channels=channels, scan=scan, pace=pace, queues=queues,
        )  # fmt: skip
        self._services: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, RunService] = (
            weakref.WeakKeyDictionary()
        )
        # Of many tasks at the same time, one opens it: a server would refuse a hundred connections.
        self._doors: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            weakref.WeakKeyDictionary()
        )
        self.programs: dict[str, Program] = {}
        # How stored documents become programs; the command line replaces an entry to bring its own backends.
        self.dialects: dict[str, Callable[[GraphSpec], Program]] = stored_dialects()
        # What workers on this instance do besides, when they delete what is not kept.
        self.cleanups: list[Callable[[], Awaitable[None]]] = []
        self._runtimes: weakref.WeakSet[Runtime] = weakref.WeakSet()
        self._on_service: list[Callable[[RunService], None]] = []

    @property
    def objects(self) -> Objects | None:
        """Where large blobs are, if not in the store; beside an SQLite file, once it is open."""
        return self._objects

    async def at(self, tenant: str) -> Holdfast:
        """The instance of the place where that tenant is: this one, unless it was given `tenants`. It is
        closed with this one. Raises TenantNotPlacedError."""
        place = await self._tenants.place(tenant)
        if self._place is not None:
            return self
        found = self._instances.get(place.cell)
        if found is None:
            found = self._instances[place.cell] = self._instance(place)
        for program in self.programs.values():
            found.register(program)
        return found

    def _instance(self, place: Place) -> Holdfast:
        # Empty where the place names none: the settings of the environment are not those of every place.
        made = Holdfast(place.store, objects=place.objects or "", engine=place.engine or "", **self._options)
        made._place, made.cell = place, place.cell
        made._tenants = TenantsOfCell(self._tenants, place.cell)
        made.dialects, made.cleanups = self.dialects, self.cleanups
        for callback in self._on_service:
            made.on_service(callback)
        return made

    def _require_place(self) -> Place:
        if self._place is None:
            raise TenantNotPlacedError(
                "this instance has a place for each tenant, and none was named.",
                hint="Use the instance of a tenant's place: `await hf.at(TENANT)`.",
            )
        return self._place

    async def open(self) -> Store:
        if self._store is not None:
            return self._store
        async with self._doors.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            return self._store or await self._open_first()

    async def _open_first(self) -> Store:
        opened, self._objects = await open_place(self._require_place(), self._objects, self._clock)
        opened = await self._encrypted(opened)
        # A lock of threads: the asyncio lock is one for each event loop, and loops in several threads may
        # open at once.
        with self._opening:
            first = self._store is None
            store = self._store = self._store or opened
        if not first and isinstance(self._given, str):
            await opened.close()  # another event loop was faster
        return store

    async def _encrypted(self, store: Store) -> Store:
        ring = self._keys or keys_from_environment()
        if ring is None and not await holds_ciphertext(store):
            return store
        from holdfast.runs.encryption.cipher import FieldCipher
        from holdfast.runs.encryption.store import with_encryption

        return with_encryption(store, FieldCipher(ring))

    async def service(self) -> RunService:
        """The runs service of this event loop."""
        loop = asyncio.get_running_loop()
        found = self._services.get(loop)
        if found is None:
            made = await self.new_service()
            found = self._services.setdefault(loop, made)
            if found is not made:
                await made.runtime.close()  # another task was faster
        for program in self.programs.values():
            found.runtime.register(program)
        return found

    async def holds(self) -> HoldService:
        """What can be done with holds, in this event loop."""
        return (await self.service()).people

    async def queues(self) -> Any:
        """Messages of queues: publish, list, claim, complete (`holdfast.queues.service.QueueService`)."""
        found = (await self.service()).runtime.queues
        assert found is not None, "an instance wires its own runtimes"
        return found.open()

    async def callbacks(self) -> Callbacks:
        """Complete callbacks by their tokens (`ctx.callback`)."""
        from holdfast.holds.callbacks import Callbacks

        runtime = (await self.service()).runtime
        base = "" if runtime.deliverer is None else runtime.deliverer.channels.settings.base_url
        return Callbacks(runtime.people.ctx, base)

    # In an application of Starlette or FastAPI.
    def lifespan(
        self,
        *,
        worker: bool | Mapping[str, Any] = False,
        flows: Sequence[FlowBuilder] = (),
        inner: Callable[[Any], Any] | None = None,
        require_store: bool = False,
    ) -> Callable[[Any], Any]:
        """The lifespan of an application: `FastAPI(lifespan=hf.lifespan(worker=True, flows=[refund]))`. It
        opens the store, and when the server stops, it drains and closes it.

        `worker`: whether runs are advanced in this process, or options of `Worker`. `inner`: the
        application's own lifespan, inside of this one. While the store is away, the application starts and
        is not ready; with `require_store` it does not start."""
        options = {"worker": worker, "flows": flows, "inner": inner, "require_store": require_store}
        return WEB.load().lifespan(self, **options)

    def asgi(self, *, authenticator: Any = None, allow_anonymous: bool = False, settings: Any = None) -> Any:
        """API, pages, streams and web app as an ASGI application: `app.mount("/holdfast", hf.asgi(...))`.

        `authenticator`: a function of the request that returns who calls
        (`holdfast.integrations.starlette.principal`) or None; or "holdfast": tokens and sessions of its own.
        `allow_anonymous`: callers without a credential have every right. `settings`:
        `holdfast.api.settings.ApiSettings`. Raises SettingsError without either."""
        options = {"authenticator": authenticator, "allow_anonymous": allow_anonymous, "settings": settings}
        return WEB.load().asgi(self, **options)

    @property
    def directory_in_use(self) -> Literal["store", "other", "none"]:
        """Where this instance looks for people, groups and roles."""
        return self._wiring.directory_in_use

    async def new_service(self) -> RunService:
        """A service with its own runtime, for a worker: the caller closes that runtime."""
        store = await self.open()
        options = self._wiring.parts(store, self._clock)
        options["objects"], options["clock"] = self._objects, self._clock
        options["memory"] = self._memory if self._memory is not None else StoredMemory(store, self._embed)
        # A copy: a worker changes the settings of its runtime, and other runtimes must not follow.
        options["settings"] = msgspec.structs.replace(self._settings) if self._settings else None
        runtime = Runtime(store, **options)
        runtime.dialects = self.dialects
        runtime.cleanups = self.cleanups
        for program in self.programs.values():
            runtime.register(program)
        runtime.cell = runtime.people.ctx.cell = self.cell
        if not isinstance(self._tenants, OnePlace):
            runtime.require_tenant = self._tenants.place
        self._runtimes.add(runtime)
        service = RunService(runtime)
        if self._engine is not None:
            self._engine.require_store(str(self._given), clock=self._clock is not None)
            runtime.engine = self._engine.open(service)
        for callback in self._on_service:
            callback(service)
        return service

    def on_service(self, callback: Callable[[RunService], None]) -> None:
        """Called with each service of this instance: the existing ones, and later ones."""
        self._on_service.append(callback)
        for service in self._services.values():
            callback(service)

    async def diff(self, a: str, b: str) -> Diff:
        """What differs from moment `a` to moment `b`: RUN, RUN@12, RUN@node or a checkpoint's id."""
        return await (await self.service()).diff(a, b)

    async def replay(self, run: str, *, upto: int | None = None, against: Program | None = None) -> Replay:
        """Make a run's decisions again, with its own graph or that of another version of its flow."""
        service = await self.service()
        if against is None:
            return await service.replay(run, upto=upto)
        return await service.replay(run, upto=upto, against=against.graph, version=against.version)

    async def postmortem(self, run: str, form: str = "md") -> str:
        """A run's whole story as a page; `form`: md or html."""
        return await POSTMORTEMS.load().render(await self.service(), run, form)

    async def examine(self, run: str) -> Any:
        """The same as data, a `holdfast.Postmortem`: visits, troubles and how they were handled, questions,
        remarks, the picture."""
        return await POSTMORTEMS.load().build(await self.service(), run)

    def register(self, program: Program, *, at_work: bool = False) -> None:
        """`at_work`: also served by workers that are already running; else only by those that start later."""
        self.programs[program.version] = program
        for runtime in self._runtimes if at_work else ():
            runtime.register(program)

    def require_judges(self, program: Program) -> None:
        """For a process that advances runs of it. Raises SettingsError if a hold names a judge that is
        neither given here nor by a flow that is loaded."""
        for node, name in program.named_judges:
            if not self._wiring.has_judge(name):
                raise SettingsError(
                    f"node {node!r} of flow {program.graph.name!r}: shadow={name!r} is no judge here.",
                    hint="Give it to the instance, Holdfast(..., judges={...}), or give the judge itself.",
                )

    async def close(self) -> None:
        for instance in self._instances.values():
            await instance.close()
        service = self._services.pop(asyncio.get_running_loop(), None)
        if service is not None:
            await service.runtime.close()
        # A store that was passed in belongs to the caller.
        if self._store is not None and isinstance(self._given, str):
            await self._store.close()
            self._store = None

    async def __aenter__(self) -> Holdfast:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()


_default: Holdfast | None = None


def default_instance() -> Holdfast:
    """The instance that flows use when they are given none."""
    global _default
    if _default is None:
        _default = Holdfast()
    return _default


def use(hf: Holdfast | None) -> None:
    """Make this the instance that flows use when they are given none."""
    global _default
    _default = hf
