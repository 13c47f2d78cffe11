from __future__ import annotations

import pytest
from hypothesis import settings

from tests.minutes import MinutesPerFolder

# The machine may be busy: a slow example is not a wrong one. The per-test timeout still holds.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("soak", settings.get_profile("default"), max_examples=2000)
settings.load_profile("default")


def pytest_configure(config: pytest.Config) -> None:
    # With xdist the reports of all workers arrive at the controller: count there, and only there.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(MinutesPerFolder())


# On PostgreSQL these run with all tests, the other flows with the soak: a server takes its time.
ON_POSTGRES = ("conformance", "fleet", "codes_core", "long_lists", "resume", "worker")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        always = item.path.parent.name in ON_POSTGRES or item.path.stem.removeprefix("test_") in ON_POSTGRES
        parameters = item.name.partition("[")[2].rstrip("]").split("-")
        if not always and "postgres" in parameters:
            item.add_marker(pytest.mark.soak)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Holdfast runs on asyncio; the plugin would otherwise run each test on trio too."""
    return "asyncio"
