"""Running Attractor pipelines: handlers, backends, interviewers, the run directory."""

from __future__ import annotations

from holdfast.attractor.backends.agents.backend import AgentBackend
from holdfast.attractor.backends.cli import CommandBackend
from holdfast.attractor.backends.model import ModelBackend
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.handler import StageHandler, StageVisit
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.providers import ModelSettings, PriceSpec, Providers, ProviderSpec
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.runner import PipelineResult, Runner, run_pipeline

__all__ = [
    "AgentBackend",
    "CommandBackend",
    "HandlerRegistry",
    "ModelBackend",
    "ModelSettings",
    "PipelineContext",
    "PipelineResult",
    "PriceSpec",
    "ProviderSpec",
    "Providers",
    "Runner",
    "StageHandler",
    "StageOutcome",
    "StageStatus",
    "StageVisit",
    "run_pipeline",
]
