"""Traces and metrics by OpenTelemetry (the extra `otel`): `instrument(hf)`.

A run is a trace, a step a span; both are made from committed records, so a crash revokes nothing
(docs/reference/logs-and-telemetry.md).
"""

from __future__ import annotations

from holdfast.integrations.partner_versions import require_partner

require_partner("opentelemetry-sdk", "1.40", None, "otel")

from holdfast.integrations.otel.ids import trace_id_of  # noqa: E402
from holdfast.integrations.otel.setup import instrument, instrument_from_environment  # noqa: E402

__all__ = ["instrument", "instrument_from_environment", "trace_id_of"]
