"""What pipelines can do, and which of it a case of the corpus does: found in its text and its document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from holdfast.frontends.dot import attributes
from holdfast.frontends.dot.document import Attributes
from holdfast.frontends.dot.handler_kinds import SHAPES
from holdfast.frontends.dot.values import as_text
from tests.attractor.cases import Case

_VALUES: Final = {
    **attributes.WORDS,
    **attributes.WORKSPACES,
    "join_policy": ("wait_all", "first_success", "k_of_n", "quorum"),
    "error_policy": ("fail_fast", "continue", "ignore"),
    "fidelity": ("full", "truncate", "compact", "summary:low", "summary:medium", "summary:high"),
    "shape": tuple(SHAPES),
}
_SYNTAX: Final = {
    "// comment": r"^\s*//",
    "/* comment */": r"/\*.*?\*/",
    "# comment": r"^#",
    "comment marks in a text": r'"[^"\n]*//[^"\n]*"',
    "escapes": r'\\n.*\\t|\\t.*\\n|\\\\|\\"',
    "text over lines": r'"[^"\n]*\n[^"]*"',
    "attributes over lines": r"\[\s*\n",
    "negative number": r"=\s*-\d",
    "float": r"=\s*-?\d*\.\d+",
    "bare boolean": r"=\s*true\b",
    "quoted boolean": r'="(true|false)"',
    "milliseconds": r"=\d+ms\b",
    "seconds": r"=\d+s\b",
    "minutes": r"=\d+m\b",
    "hours": r"=\d+h\b",
    "days": r"=\d+d\b",
    "quoted duration": r'="\d+(ms|s|m|h|d)"',
    "seconds without a unit": r'timeout="?\d+"?[,\]]',
    "bare value": r"=gpt-\d|=summary:",
    "graph block": r"graph\s*\[",
    "attribute of the graph": r"^\s*\w+\s*=\s*\S+;?$",
    "node defaults": r"\bnode\s*\[",
    "edge defaults": r"\bedge\s*\[",
    "subgraph": r"subgraph\s+\w+\s*\{",
    "subgraph without a name": r"subgraph\s*\{",
    "chain with attributes": r"\w+ -> \w+ -> \w+[^;\n]*\[",
    "no semicolons": r"\A[^;]*\Z",
    "missing comma": r'"\s+\w+="',
    "group of stages": r"->\s*\{",
    "quoted id": r'^\s*"[^"]+"\s*\[',
    "port": r"[\w\"]:\w+ ->",
    "joined texts": r'"\s*\+\s*"',
    "no name": r"digraph\s*\{",
    "legacy retries": r"default_max_retry\b",
    "text of a file": r'"@[\w/]+\.\w+"',
    "goal in a prompt": r'prompt="[^"]*\$goal',
}
_CONDITIONS: Final = {
    "equals": r"[^!]=",
    "differs": r"!=",
    "and": r"&&",
    "outcome": r"\boutcome",
    "preferred_label": r"\bpreferred_label",
    "context.": r"\bcontext\.",
    "key without context.": r"(^|&& *)(?!outcome|preferred_label|context\.)\w",
    "quoted literal": r'"',
    "bare key": r"(^|&&) *[\w.]+ *($|&&)",
    "or": r"\|\|",
    "greater": r">",
    "contains": r"\bcontains\b",
}
_SELECTORS: Final = {
    "*": r"\*",
    "shape": r"(^|\s)[a-z]+\s*\{",
    ".class": r"\.[\w-]+\s*\{",
    "#id": r"#\w+\s*\{",
}

BEHAVIOURS: Final = frozenset(
    {
        "a condition beats weight", "weight decides", "the id decides", "the label decides",
        "a suggested id decides", "a label is normalised",
        "fail edge", "retry target after a failure", "fallback target after a failure",
        "failure ends the run",
        "a failing tool goes on into a diamond", "dead end after success", "all conditions false",
        "retry until success", "retries exhausted", "partial success accepted",
        "no retry of a terminal error",
        "goal gate jumps", "goal gate by the graph's target", "goal gate without a target",
        "goal gate that nobody visited", "jumps are bounded", "visits are bounded", "restarts are bounded",
        "the same failure stops the run", "a budget ends the run", "a budget asks",
        "the walk begins anew", "custom outcome", "outcome of another dialect", "skipped",
        "status.json decides", "auto_status", "fail-closed goal gate",
        "branches of many stages", "nested fan-out", "join without a fan-in", "a branch fails",
        "all branches fail", "the first success wins", "losers are wiped", "the best is chosen by score",
        "the best is chosen by a model", "branches share a stage", "a gate in a branch", "gates side by side",
        "accelerators", "asked again", "default by target", "default by key", "default by label",
        "no default", "yes or no", "confirmation", "freeform",
        "a timeout of a tool", "custom handler", "unknown type", "sub-pipeline",
        "child succeeds", "child fails", "stop condition", "steered", "tool output is read",
        "start and end by their ids", "undeclared stage", "defaults never override a shape",
    }
)  # fmt: skip


def _attributes() -> set[str]:
    """Less those that are read of a stage alone, or of the graph alone."""
    return {
        *(f"graph {key}" for key in attributes.GRAPH - {"auto_status", "stack.child_autostart"}),
        *(f"stage {key}" for key in attributes.NODE - {"fail_closed"}),
        *(f"edge {key}" for key in attributes.EDGE),
        *(f"{key}={value}" for key, values in _VALUES.items() for value in values),
    }


FEATURES: Final = frozenset(
    {
        *_attributes(),
        *(f"syntax: {name}" for name in _SYNTAX),
        *(f"condition: {name}" for name in _CONDITIONS),
        *(f"selector: {name}" for name in _SELECTORS),
        *BEHAVIOURS,
    }
)


def used_by(case: Case) -> set[str]:
    found = {f"syntax: {name}" for name, mark in _SYNTAX.items() if re.search(mark, case.source, re.M | re.S)}
    pipeline = case.pipeline
    found |= set(_of("graph", pipeline))
    for stage in pipeline.stages.values():
        found |= set(_of("stage", stage))
    for link in pipeline.links:
        found |= set(_of("edge", link))
        found |= {f"condition: {name}" for name, mark in _CONDITIONS.items()
                  if link.condition and re.search(mark, link.condition)}  # fmt: skip
    sheet = pipeline.text("model_stylesheet")
    found |= {f"selector: {name}" for name, mark in _SELECTORS.items() if re.search(mark, sheet)}
    return {each for each in found if each in FEATURES} | set(case.shows)


def _of(kind: str, where: Attributes) -> Iterator[str]:
    for key, value in where.attrs.items():
        yield f"{kind} {key}"
        yield f"{'fidelity' if key == 'default_fidelity' else key}={as_text(value)}"
