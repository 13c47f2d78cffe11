"""What an instance gives its runtimes for the people who are asked: who they are, which rules apply."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec

from holdfast.app.extensions import QUEUES
from holdfast.holds.default_preparation import default_preparation
from holdfast.holds.directory.base import Directory
from holdfast.holds.directory.file import FileDirectory
from holdfast.holds.directory.stored import TableDirectory
from holdfast.holds.notify.channel import Channel
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.deliverer import Deliverer
from holdfast.holds.notify.settings import NotifySettings, read_settings, settings_from_environment
from holdfast.holds.preparation import ShadowStep
from holdfast.holds.service import HoldService
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.model.shadow_judges import shadow_judge
from holdfast.runs.driver.services import ServiceOptions
from holdfast.store.protocols import Store
from holdfast.types.clock import Clock, SystemClock

if TYPE_CHECKING:
    from holdfast.holds.actions.rate_limit import Pace
    from holdfast.holds.forms.attachments import Scan
    from holdfast.holds.policies.guardrails import Guardrails
    from holdfast.holds.policies.judge import Judges
    from holdfast.holds.policies.load import PolicyConfig, PolicySource

VARIABLE: Final = "HOLDFAST_DIRECTORY"
POLICIES: Final = "HOLDFAST_POLICIES"
IN_STORE: Final = "store"


class QueueWork:
    """The service of queues, loaded when it is first used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def open(self) -> Any:
        if self._made is None:
            self._made = self._make()
        return self._made

    async def serve(self) -> None:
        """Until cancelled."""
        await self.open().serve()

    async def work(self) -> None:
        """Everything that is due now, once."""
        await self.open().work()

    async def close(self) -> None:
        """Closes what was opened for it."""
        if self._made is not None:
            await self._made.relay.close()


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """As it was given to the instance."""

    directory: Directory | str | None = None
    rules: PolicyConfig | None = None
    judges: Judges | None = None
    guardrails: Guardrails | None = None
    notify: NotifySettings | None = None
    channels: tuple[Channel, ...] = ()
    scan: Scan | None = None
    pace: Pace | None = None
    queues: Any = None

    def has_judge(self, name: str) -> bool:
        """Whether holds may name it: of the instance, or given by a flow that is loaded."""
        return name in (self.judges or {}) or shadow_judge(name) is not None

    def parts(self, store: Store, clock: Clock | None) -> ServiceOptions:
        """What a `Runtime` takes."""
        time, directory = clock or SystemClock(), self._directory(store)
        ruling = None if self.rules is None else self.rules.for_store(store, self.guardrails)
        rails = self.guardrails if ruling is None else ruling.guardrails
        people = HoldService(store, directory=directory, guardrails=rails, scan=self.scan, pace=self.pace)
        channels = Channels(store, time, settings=self.notify, directory=directory, given=self.channels)
        return {
            "preparation": default_preparation(
                store,
                directory=directory,
                policies=ruling and ruling.step,
                shadow=ShadowStep(store, self.judges),
            ),
            "sweeper": HoldSweeper(store, time, directory=directory, guardrails=rails),
            "people": people,
            "arbiter": None if ruling is None else ruling.arbiter(people.ctx),
            "deliverer": Deliverer(store, time, channels),
            "queues": QueueWork(
                lambda: QUEUES.load()(store, people, time, self.queues, base_url=channels.settings.base_url)
            ),
        }

    @property
    def directory_in_use(self) -> Literal["store", "other", "none"]:
        if self.directory is None:
            return "none"
        return "store" if self.directory == IN_STORE else "other"

    def _directory(self, store: Store) -> Directory | None:
        return (
            TableDirectory(store) if self.directory == IN_STORE else cast("Directory | None", self.directory)
        )


def make_wiring(
    *,
    directory: Directory | str | Path | None = None,
    policies: PolicySource | Iterable[PolicySource] | None = None,
    judges: Judges | None = None,
    guardrails: Guardrails | None = None,
    notify: NotifySettings | str | Path | None = None,
    channels: Sequence[Channel] = (),
    scan: Scan | None = None,
    pace: Pace | None = None,
    queues: Any = None,
) -> Wiring:
    """Raises PolicyInvalidError and SettingsError: with rules that cannot be read no instance opens."""
    return Wiring(
        directory=_directory(directory or os.environ.get(VARIABLE)),
        rules=_rules(policies, judges),
        judges=judges,
        guardrails=guardrails,
        notify=_settings(notify),
        channels=tuple(channels),
        scan=scan,
        pace=pace,
        queues=queues,
    )


def _rules(given: PolicySource | Iterable[PolicySource] | None, judges: Judges | None) -> PolicyConfig | None:
    """Loaded where there are some: most programs have none."""
    if given is None and not os.environ.get(POLICIES):
        return None
    from holdfast.holds.policies.load import policy_config_for

    return policy_config_for(given, judges)


def _directory(given: Directory | str | Path | None) -> Directory | str | None:
    """A path is that of a file; `store`: people, groups and roles are kept in the store."""
    if isinstance(given, (str, Path)) and str(given) != IN_STORE:
        return FileDirectory(given)
    return IN_STORE if isinstance(given, Path) else given


def _settings(given: NotifySettings | str | Path | None) -> NotifySettings | None:
    if given is None:
        return settings_from_environment()
    return given if isinstance(given, NotifySettings) else read_settings(given)
