"""The command line, and the fixtures that users get."""

from __future__ import annotations

from holdfast.testing.plugin import clock, house, human
from tests.cli.conftest import cli, logs

__all__ = ["cli", "clock", "house", "human", "logs"]
