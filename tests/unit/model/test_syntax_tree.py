"""Parsing while other threads parse: CPython before 3.11.8 fails when the garbage collector switches threads
inside of a parse (gh-106905)."""

from __future__ import annotations

import ast
import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import holdfast
from holdfast.model.syntax_tree import parse_expression, parse_module

TEXT = "[" + ", ".join(f"f({i}, a[{i}])" for i in range(200)) + "]"


@pytest.fixture
def switches() -> Iterator[None]:
    """Threads change at every turn, and in each collection."""

    def turns(_phase: str, _info: dict[str, int]) -> None:
        for _ in range(30):
            pass

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(10)
    gc.callbacks.append(turns)
    yield
    gc.callbacks.remove(turns)
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("switches")
@pytest.mark.parametrize("parse", [parse_module, parse_expression])
def test_threads_parse_at_the_same_time_and_beside_a_library(parse: Callable[[str], ast.AST]) -> None:
    failed: list[BaseException] = []
    done = Event()

    def ours() -> None:
        for _ in range(40):
            try:
                parse(TEXT)
            except BaseException as error:
                failed.append(error)

    def library() -> None:
        while not done.is_set():
            with contextlib.suppress(SystemError):
                ast.parse("f(1)")

    threads = [Thread(target=ours) for _ in range(4)]
    beside = Thread(target=library)
    for thread in (beside, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    beside.join()
    assert failed == []


@pytest.mark.parametrize("parse", [parse_module, parse_expression])
def test_text_that_is_not_python_raises_at_once(parse: Callable[[str], Any]) -> None:
    with pytest.raises(SyntaxError):
        parse("f(")


def test_the_product_parses_python_in_this_one_place() -> None:
    source = Path(holdfast.__file__).parent
    found = {
        str(path.relative_to(source)) for path in source.rglob("*.py") if "ast.parse(" in path.read_text()
    }
    assert found == {"model/syntax_tree.py"}
