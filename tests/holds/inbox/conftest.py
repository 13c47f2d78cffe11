"""The command line, and the fixtures that users get."""

from __future__ import annotations

from holdfast.testing.plugin import clock, hf, human
from tests.cli.conftest import cli, logs

__all__ = ["cli", "clock", "hf", "human", "logs"]
