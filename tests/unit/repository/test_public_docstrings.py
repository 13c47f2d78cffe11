"""What `help(holdfast.Flow)` prints and what the API reference shows has no codes of the specification."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tools.partners import PARTNERS

ROOT = Path(__file__).resolve().parents[3]
CODE = re.compile(r"\b[A-Z]{1,3}-A?\d+[a-z]?\b")
FENCE = re.compile(r"```python[^\n]*\n(.*?)```", re.S)
# Their partners are not installed here (tools/partners.py).
OUTSIDE = tuple(
    path.removeprefix("src/").replace("/", ".")
    for each in PARTNERS
    for path in each.typed
    if path.startswith("src/")
)
# The modules of the API reference; names that a page or an example imports from elsewhere are public too.
MODULES = ("holdfast", "holdfast.errors", "holdfast.client", "holdfast.attractor", "holdfast.testing")


@pytest.mark.covers("PLAIN-WORD-03")
def test_docstrings_of_public_names_have_no_codes() -> None:
    found = sorted({fault for name, value in public() for fault in faults(name, value)})
    assert found == []


def test_a_code_in_a_docstring_is_found() -> None:
    class Sample:
        """Plain."""

        def method(self) -> None:
            """Valid only while its attempt runs (D-16)."""

        def _private(self) -> None:
            """Also D-16."""

    assert list(faults("Sample", Sample)) == ["Sample.method: D-16"]


def faults(name: str, value: Any) -> Iterator[str]:
    known = codes()
    for where, text in docstrings(name, value):
        yield from (f"{where}: {code}" for code in CODE.findall(text) if code in known)


def docstrings(name: str, value: Any) -> Iterator[tuple[str, str]]:
    yield name, inspect.getdoc(value) or ""
    if inspect.isclass(value):
        for base in [one for one in value.__mro__ if one.__module__.startswith(("holdfast.", __name__))]:
            yield f"{base.__qualname__.split('.')[-1]}", base.__doc__ or ""
            for one, member in vars(base).items():
                if not one.startswith("_"):
                    doc = member.__doc__ if isinstance(member.__doc__, str) else ""
                    yield f"{base.__qualname__.split('.')[-1]}.{one}", doc


@cache
def codes() -> frozenset[str]:
    """Every code of the ledger. Order E-17 in an example is none."""
    texts = [path.read_text("utf-8") for path in (ROOT / "docs/ledger").glob("*.toml")]
    return frozenset(code for text in texts for code in re.findall(r"^\[([^\]]+)\]", text, re.M))


def public() -> Iterator[tuple[str, Any]]:
    for module in map(importlib.import_module, MODULES):
        yield module.__name__, module
        yield from ((f"{module.__name__}.{name}", getattr(module, name)) for name in own_names(module))
    for source in snippets():
        for node in ast.walk(source):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "holdfast":
                if str(node.module).startswith(OUTSIDE):
                    continue
                module = importlib.import_module(node.module or "")
                yield module.__name__, module
                yield from ((f"{node.module}.{one.name}", getattr(module, one.name)) for one in node.names)


def own_names(module: ModuleType) -> list[str]:
    own = [one for one, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [one for one in getattr(module, "__all__", own) if not one.startswith("_")]


def snippets() -> Iterator[ast.Module]:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    texts = [text for page in pages for text in FENCE.findall(page.read_text("utf-8"))]
    texts += [path.read_text("utf-8") for path in (ROOT / "examples").rglob("*.py")]
    for text in texts:
        try:
            yield ast.parse(text)
        except SyntaxError:  # a part of a statement, for the reader's eye
            continue
