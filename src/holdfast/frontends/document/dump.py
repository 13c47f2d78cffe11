"""Writes a document as JSON or YAML. The same data always gives the same text, and reading it gives the same
data: order, layout, and 1 beside 1.0."""

from __future__ import annotations

import json
from typing import Any, Final, cast

import yaml

from holdfast.frontends.document.document import FlowDocument
from holdfast.frontends.document.source import Format
from holdfast.frontends.document.yaml_text import is_plain_text


def dump_document(document: FlowDocument, form: Format) -> str:
    return dump_data(document.data, form)


def dump_data(data: Any, form: Format) -> str:
    if form == "json":
        return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    options: dict[str, Any] = {
        "Dumper": _Dumper, "sort_keys": False, "allow_unicode": True, "width": 1_000_000,
        "default_flow_style": False,
    }  # fmt: skip
    return str(cast("Any", yaml).dump(data, **options))


_BREAKS: Final = ("\x85", "\u2028", "\u2029")
"""Line breaks for YAML, which only quotes with escapes keep."""


class _Dumper(yaml.SafeDumper):
    """PyYAML leaves a text without quotes that is text in YAML 1.1; here it must be text in 1.2 core too."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> Any:
        style = None if is_plain_text(text) else "'"
        if any(sign in text for sign in _BREAKS):
            style = '"'
        return cast("Any", self).represent_scalar("tag:yaml.org,2002:str", text, style=style)


cast("Any", _Dumper).add_representer(str, _Dumper.represent_text)
