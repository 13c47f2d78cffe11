"""The command line, as the tests of the others call it."""

from __future__ import annotations

from tests.cli.conftest import cli, logs

__all__ = ["cli", "logs"]
