"""The service of queues. `QueueOperations` publishes, lists and moves messages, `QueueClaims` works on them,
`QueueMaintenance` is what a worker does beside its runs.

Every method raises InputError for a wrong name, and MessageNotFoundError if the tenant's queue has no such
message.
"""

from __future__ import annotations

from typing import Any

from holdfast.app.extensions import QUEUES
from holdfast.holds.service import HoldService
from holdfast.model.diagnostics import GraphProblem
from holdfast.model.graph import GraphSpec
from holdfast.queues.allow_list import queue_problems, require_listed
from holdfast.queues.bridge import QueueBridge
from holdfast.queues.claims import QueueClaims
from holdfast.queues.completions import Completion, Completions
from holdfast.queues.external_events import QueueEvents
from holdfast.queues.inbound import InboundQueue
from holdfast.queues.maintenance import QueueMaintenance
from holdfast.queues.relay import QueueRelay
from holdfast.queues.run_claims import RunClaims
from holdfast.queues.settings import QueueSettings, queue_settings
from holdfast.store.protocols import Store
from holdfast.types.clock import Clock
from holdfast.types.hold import HoldRow
from holdfast.types.queue_message import MESSAGE_ID, MessageRow


class QueueService(QueueClaims, QueueEvents, QueueMaintenance):
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
        self.completions = Completions(people, self._unbound)
        inbound = InboundQueue(self)
        self.relay = QueueRelay(settings, clock, inbound.take, inbound.record_rejected)
        self.bridge = QueueBridge(store, settings, self.completions, self.relay, base_url)
        self.run_claims = RunClaims(store, self.relay)
        self.reconciled_at = store.now()

    def require_queues(self, spec: GraphSpec) -> None:
        """Raises FlowInvalidError if a hold asks in a queue that is not listed where that is required."""
        require_listed(spec, self.settings)

    def queue_problems(self, spec: GraphSpec) -> list[GraphProblem]:
        """The same as problems of the flow."""
        return queue_problems(spec, self.settings)

    async def _unbound(self, row: HoldRow, completion: Completion) -> str:
        """Why the broker that brought this may not decide this hold, or "": its message is in a queue that
        receives from this broker, and the completion names no other message."""
        own = await self.known_message(row.tenant, row.message_id)
        # A message that was moved is the new queue's.
        address = row.terms.queue or "" if own is None else own.address
        if not self.settings.receives(address, row.tenant, completion.backend):
            return f"hold {row.id} does not ask in a queue that receives from the broker"
        named = await self.known_message(row.tenant, completion.message_id)
        return "" if named is None or named.hold == row.id else f"message {named.id} is not of hold {row.id}"

    async def known_message(self, tenant: str, message: str | None) -> MessageRow | None:
        if message is None or not MESSAGE_ID.fullmatch(message):
            return None
        return await self.store.queue_message(tenant, message)


def open_queues(
    store: Store, people: HoldService, clock: Clock, settings: Any, *, base_url: str = ""
) -> QueueService:
    """Raises SettingsError, also for the settings of a broker; the broker itself may be away."""
    found = QueueService(store, people, clock, queue_settings(settings), base_url=base_url)
    found.relay.open()
    return found


QUEUES.register(open_queues)
