"""Metrics for Prometheus (the extra `metrics`): `Worker(flow, probe=Metrics("9464"))`.

What a worker does is told from what is committed; how the fleet is, from the store, when somebody asks
(docs/reference/metrics.md).
"""

from __future__ import annotations

from holdfast.integrations.prometheus.page import Metrics, metrics_of_process

__all__ = ["Metrics", "metrics_of_process"]
