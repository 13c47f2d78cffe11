"""The command line, the fixtures that users get, and inboxes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest

from holdfast.testing.plugin import clock, hf, human
from tests.cli.conftest import cli, logs
from tests.holds.inbox.inboxes import OpenScreen, screens

__all__ = ["cli", "clock", "hf", "human", "logs"]


@pytest.fixture
async def screen() -> AsyncGenerator[OpenScreen]:
    async with AsyncExitStack() as stack:
        yield screens(stack)
