"""The words that questions use."""

from __future__ import annotations

from typing import Final

SEVERITIES: Final = ("low", "medium", "high", "critical")
CATEGORIES: Final = ("data_modification", "external_api", "financial", "communication", "system", "other")
DOUBTS: Final = ("ambiguity", "missing_info", "preference", "verification", "guidance")
CONTENTS: Final = ("text", "code", "json", "markdown", "html")
REASONS: Final = (
    "low_confidence",
    "repeated_failures",
    "ethical_concern",
    "out_of_scope",
    "resource_limit",
    "conflicting_instructions",
    "safety_concern",
    "user_requested",
    "policy_violation",
    "unknown_territory",
)
FEEDBACK_TYPES: Final = ("correction", "praise", "guidance", "preference", "complaint")
ASPECTS: Final = ("accuracy", "style", "speed", "judgment", "communication", "other")
DEFAULT_WAIT: Final = "5m"
FREEFORM: Final = "freeform"
KEEP: Final = "keep"
