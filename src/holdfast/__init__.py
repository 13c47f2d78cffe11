"""Holdfast: durable workflows for AI agents, code and people."""

from __future__ import annotations

from holdfast._version import __version__
from holdfast.app.flow import Flow
from holdfast.app.house import Holdfast, use
from holdfast.app.result import Result

__all__ = ["Flow", "Holdfast", "Result", "__version__", "use"]
