"""docs/reference/verdict.schema.json, of what stages of pipelines report."""

from __future__ import annotations

import json

from holdfast.attractor.verdict import verdict_schema


def schema() -> str:
    """The same that `holdfast schema verdict` prints."""
    return json.dumps(verdict_schema(), indent=1, ensure_ascii=False) + "\n"
