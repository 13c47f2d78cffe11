"""Proving a flow safe: killed at every boundary, resumed, compared with a run that nothing disturbed."""

from __future__ import annotations
