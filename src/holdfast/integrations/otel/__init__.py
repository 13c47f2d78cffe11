"""Traces and metrics by OpenTelemetry (the extra `otel`): `instrument(hf)`.

A run is a trace, a step a span; both are made from committed records, so a crash revokes nothing
(docs/reference/logs-and-telemetry.md).
"""

from __future__ import annotations

from holdfast.integrations.otel.ids import trace_id_of
from holdfast.integrations.otel.setup import instrument, instrument_from_environment

__all__ = ["instrument", "instrument_from_environment", "trace_id_of"]
