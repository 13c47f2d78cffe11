"""The suite that every store must pass. It is public: the author of a store runs it too.

Needs pytest and anyio. Each module holds one topic as a class of tests; a store's author makes a fixture
`kit` and a subclass per topic:

    from holdfast.testing.conformance.settle import SettleSuite

    pytest_plugins = ["holdfast.testing.plugin"]  # in conftest.py: knows the suite's marker

    @pytest.fixture
    async def kit(tmp_path):
        kit = StoreKit(partial(open_my_store, tmp_path))
        await kit.start()
        yield kit
        await kit.stop()

    class TestSettle(SettleSuite): ...

`ALL` names the topics' modules; `tests/conformance` runs them over the stores in this repository. Tests of
something that a store does not claim in its `capabilities` are skipped.
"""

from __future__ import annotations

import pytest

ALL = (
    "audit",
    "blobs",
    "claims",
    "documents",
    "dues",
    "durable",
    "engine_runs",
    "entities",
    "events",
    "fleet",
    "graph_threads",
    "health",
    "hold_changes",
    "hold_lists",
    "holds",
    "inbox",
    "journal",
    "leases",
    "limits",
    "lost_history",
    "memories",
    "outbox",
    "projections",
    "queues",
    "reclaim",
    "runs",
    "schedules",
    "settle",
    "sides",
    "suspects",
    "timers",
    "unserved",
    "transfer",
    "values",
    "versions",
    "wake",
)

# Without it a failing assertion in the suite would not show its values.
pytest.register_assert_rewrite(
    *(f"{__name__}.{topic}" for topic in (*ALL, "transports", "langgraph_ownership"))
)
