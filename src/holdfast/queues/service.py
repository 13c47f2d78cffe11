"""The service of queues. `QueueOperations` publishes, lists and moves messages, `QueueClaims` works on them,
`QueueMaintenance` is what a worker does beside its runs.

Every method raises InputError for a wrong name, and MessageNotFoundError if the tenant's queue has no such
message.
"""

from __future__ import annotations

from typing import Any

from holdfast.app.extensions import QUEUES
from holdfast.holds.service import HoldService
from holdfast.model.graph import GraphSpec
from holdfast.queues.bridge import QueueBridge
from holdfast.queues.claims import QueueClaims
from holdfast.queues.completions import Completions
from holdfast.queues.inbound import InboundQueue
from holdfast.queues.listed import require_listed
from holdfast.queues.maintenance import QueueMaintenance
from holdfast.queues.relay import QueueRelay
from holdfast.queues.run_claims import RunClaims
from holdfast.queues.settings import QueueSettings, queue_settings
from holdfast.store.protocols import Store
from holdfast.types.clock import Clock
from holdfast.types.hold import HoldRow


class QueueService(QueueClaims, QueueMaintenance):
    def __init__(
        self,
        store: Store,
        people: HoldService,
        clock: Clock,
        settings: QueueSettings,
        *,
        base_url: str = "",
    ) -> None:
        self.store = store
        self.people = people
        self.clock = clock
        self.settings = settings
        self.completions = Completions(people, self._is_bound)
        self.relay = QueueRelay(settings, clock, InboundQueue(self).take)
        self.bridge = QueueBridge(store, settings, self.completions, self.relay, base_url)
        self.run_claims = RunClaims(store, self.relay)
        self.reconciled_at = store.now()

    def require_queues(self, spec: GraphSpec) -> None:
        """Raises FlowInvalidError if a hold asks in a queue that is not listed where that is required."""
        require_listed(spec, self.settings)

    async def _is_bound(self, row: HoldRow) -> bool:
        """Whether a broker may decide this hold: it asks in a queue that receives from one, or its message
        was moved to one."""
        if self.settings.receives(row.terms.queue or "", row.tenant):
            return True
        found = None if row.message_id is None else await self.store.queue_message(row.tenant, row.message_id)
        return found is not None and self.settings.receives(f"{found.scope}/{found.queue}", row.tenant)


def open_queues(
    store: Store, people: HoldService, clock: Clock, settings: Any, *, base_url: str = ""
) -> QueueService:
    """Raises SettingsError, also for the settings of a broker; the broker itself may be away."""
    found = QueueService(store, people, clock, queue_settings(settings), base_url=base_url)
    found.relay.open()
    return found


QUEUES.register(open_queues)
