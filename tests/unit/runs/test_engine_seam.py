"""The seam between handlers and engines: each engine has every member of its protocols."""

from __future__ import annotations

import configparser
import dis
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.drivers.temporal.execution import ExecCalls, ExecSession
from holdfast.runs.context.driver_protocols import ContextCalls, HandlerSession
from holdfast.runs.driver.context_calls import DriverCalls
from holdfast.runs.driver.session import RunSession

ROOT = Path(__file__).parents[3]


def members(protocol: type) -> dict[str, Any]:
    """By name: its methods, and None for attributes and properties."""
    named = dict.fromkeys(inspect.get_annotations(protocol))
    found = {name: each for name, each in vars(protocol).items() if not name.startswith("_")}
    return {**named, **{name: each if inspect.isfunction(each) else None for name, each in found.items()}}


def given(made: type) -> set[str]:
    """The attributes that its instances get when they are made."""
    found: set[str] = set()
    for each in made.__mro__:
        found |= {*vars(each), *getattr(each, "__slots__", ())}
        if "__init__" in vars(each) and inspect.isfunction(each.__init__):
            found |= {i.argval for i in dis.get_instructions(each.__init__) if i.opname == "STORE_ATTR"}
    return found


def lacks(made: type, protocol: type) -> list[str]:
    """Members that are missing, or that take other arguments."""
    wrong = sorted(set(members(protocol)) - given(made))
    for name, method in members(protocol).items():
        if method is not None and name not in wrong:
            own = getattr(made, name)
            same = list(inspect.signature(own).parameters) == list(inspect.signature(method).parameters)
            if not same or inspect.iscoroutinefunction(own) != inspect.iscoroutinefunction(method):
                wrong.append(name)
    return wrong


@pytest.mark.covers("TD-52")
@pytest.mark.parametrize(
    ("made", "protocol"),
    [
        (DriverCalls, ContextCalls),
        (ExecCalls, ContextCalls),
        (RunSession, HandlerSession),
        (ExecSession, HandlerSession),
    ],
    ids=lambda each: each.__name__,
)
def test_engine_has_every_member_of_the_seam(made: type, protocol: type) -> None:
    assert len(members(protocol)) >= 19
    assert lacks(made, protocol) == []


@pytest.mark.covers("TD-52")
def test_engine_that_lacks_a_call_or_takes_other_arguments_is_found() -> None:
    class Partial(ExecCalls):
        def render(self, execution: Any) -> str:  # type: ignore[override]
            return ""

        def committed(self, seq: int | None = None) -> Any: ...

    assert sorted(lacks(Partial, ContextCalls)) == ["committed", "render"]
    assert "sleep_inside" in lacks(object, ContextCalls)
    assert "answers" in lacks(object, HandlerSession)


@pytest.mark.covers("TD-52", "TD-53")
def test_contracts_keep_handlers_from_the_driver_and_the_core_from_the_engine() -> None:
    """The linter itself runs with the rules of the repository."""
    read = configparser.ConfigParser()
    read.read(ROOT / ".importlinter")
    forbidden = {
        name: set(read[name]["forbidden_modules"].split())
        for name in read.sections()
        if read.has_option(name, "forbidden_modules")
    }
    core = forbidden["importlinter:contract:core"]
    assert "holdfast.drivers" in core
    handlers = forbidden["importlinter:contract:handler-side"]
    assert {"holdfast.runs.driver.session", "holdfast.runs.driver.context_calls"} <= handlers


@pytest.mark.covers("TD-53")
def test_program_with_a_flow_loads_no_other_engine() -> None:
    code = (
        "import sys, asyncio, holdfast\n"
        "flow = holdfast.Flow('one', effect='pure')\n"
        "@flow.node\n"
        "async def work(state): return {'n': 1}\n"
        "assert asyncio.run(flow.run({}, on=holdfast.Holdfast('memory:'))).completed\n"
        "print([name for name in sys.modules if name.startswith(('holdfast.drivers', 'temporalio'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
