"""Tests that a flow is crash-safe: kills it at every boundary, resumes it, and compares with an undisturbed
run."""

from __future__ import annotations
