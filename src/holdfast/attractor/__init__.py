"""Attractor pipelines, run: handlers, backends, interviewers, the run directory."""

from __future__ import annotations

from holdfast.attractor.context import PipelineContext
from holdfast.attractor.handler import Handler, Visit
from holdfast.attractor.outcome import Outcome, StageStatus
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.runner import PipelineResult, Runner, run_pipeline

__all__ = [
    "Handler",
    "HandlerRegistry",
    "Outcome",
    "PipelineContext",
    "PipelineResult",
    "Runner",
    "StageStatus",
    "Visit",
    "run_pipeline",
]
