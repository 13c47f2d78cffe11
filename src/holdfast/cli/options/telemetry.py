"""Logs and telemetry from environment variables (docs/reference/logs-and-telemetry.md)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.errors import SettingsError
from holdfast.telemetry import Logging, configure_logging, logging_is_configured

if TYPE_CHECKING:
    from holdfast.app.holdfast import Holdfast


def observe(hf: Holdfast) -> Holdfast:
    """Set up logs and traces of this instance by HOLDFAST_LOG and HOLDFAST_OTEL."""
    wanted = os.environ.get("HOLDFAST_LOG") or os.environ.get("HOLDFAST_LOG_LEVEL")
    if wanted and not logging_is_configured():
        start_logging()
    if os.environ.get("HOLDFAST_OTEL") and _is_on():
        _trace(hf)
    return hf


def _is_on() -> bool:
    from holdfast.config import is_on

    return is_on("HOLDFAST_OTEL")


def start_logging(form: str = "text") -> Logging:
    """`form`: the default if HOLDFAST_LOG is not set."""
    form = os.environ.get("HOLDFAST_LOG") or form
    level = os.environ.get("HOLDFAST_LOG_LEVEL") or "INFO"
    try:
        return configure_logging(form, level)
    except ValueError as error:
        raise SettingsError(
            f"HOLDFAST_LOG={form}, HOLDFAST_LOG_LEVEL={level}: {error}.",
            hint="The format is text or json; the level is DEBUG, INFO, WARNING or ERROR.",
        ) from error


def _trace(hf: Holdfast) -> None:
    try:
        from holdfast.integrations.otel import instrument_from_environment
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"HOLDFAST_OTEL is set, but {error.name} is not installed.",
            hint="Install the extra `otel` (pip install 'holdfast-flow[otel]'), or unset HOLDFAST_OTEL.",
        ) from error
    instrument_from_environment(hf)
