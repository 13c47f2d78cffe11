"""Metrics for Prometheus (the extra `metrics`): `Worker(flow, probe=Metrics("9464"))`.

A worker's metrics come from its commits; those of the fleet are read from the store on request
(docs/reference/metrics.md).
"""

from __future__ import annotations

from holdfast.integrations.partner_versions import require_partner

require_partner("prometheus-client", "0.22", None, "metrics")

from holdfast.integrations.prometheus.page import Metrics, metrics_of_process  # noqa: E402

__all__ = ["Metrics", "metrics_of_process"]
