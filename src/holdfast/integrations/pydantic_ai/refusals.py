"""What is refused before an agent calls anything (IN-56): another agent of the same name in the flow, and a
tool that declares a result which cannot be stored."""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Collection, Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

from pydantic import PydanticUserError, TypeAdapter
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import ToolReturn
from pydantic_ai.toolsets import AbstractToolset, DynamicToolset, FunctionToolset

from holdfast.errors import InputError
from holdfast.frontends.python.code import innermost
from holdfast.model.program import Program

Named = Callable[[AbstractAgent[Any, Any]], "tuple[str, object] | None"]
"""The durable name of an agent and what identifies it; None: an agent without our capability."""

_MOST: Final = 2_000
"""Values that are looked at for one flow."""
_agents: WeakKeyDictionary[Program, list[AbstractAgent[Any, Any]]] = WeakKeyDictionary()
_fit: WeakKeyDictionary[Callable[..., Any], bool] = WeakKeyDictionary()


# --- names ------------------------------------------------------------------------------------------


def require_one_agent(program: Program, name: str, agent: object, named: Named) -> None:
    """Raises InputError if code of the flow refers to another agent of that name."""
    found = _agents.get(program)
    if found is None:
        found = _agents[program] = list(_agents_of(_functions(program)))
    others = [each for other in found if (each := named(other)) is not None and each[0] == name]
    if any(other is not agent for _, other in others):
        raise same_name(name, f"flow {program.graph.name!r}")


def same_name(name: str, where: str) -> InputError:
    return InputError(
        f"{where} has two agents with the name {name!r}: their recorded steps could not be distinguished.",
        hint="Give each Agent a name of its own, or HoldfastDurability(name=...).",
    )


def _functions(program: Program) -> Iterator[Any]:
    yield from (innermost(handler.fn) for handler in program.handlers.values())
    for child in program.children.values():
        yield from _functions(child)


def _agents_of(values: Iterable[Any]) -> Iterator[AbstractAgent[Any, Any]]:
    """The agents that functions refer to, also through functions that they call, as far as their code shows
    it: names of modules, closures and defaults. One that code makes while it runs is found when it runs."""
    left, seen = list(values), set[int]()
    while left and len(seen) < _MOST:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        # By its type, and not by `__class__`: a lazy object would be made by the question.
        kind = typing.cast("type[object]", type(value))
        if issubclass(kind, AbstractAgent):
            yield typing.cast("AbstractAgent[Any, Any]", value)
        elif kind is MethodType:
            left.append(value.__func__)
        elif kind is FunctionType and _is_of_program(value):
            left.extend(_referred(value))


def _is_of_program(function: FunctionType) -> bool:
    """Not of a library, which refers to no agent of the program, and to much else."""
    top = (function.__module__ or "").partition(".")[0]
    return top not in sys.stdlib_module_names and "site-packages" not in function.__code__.co_filename


def _referred(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a variable that has no value yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    names = set(_names(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        if type(value) is ModuleType:
            yield from (vars(value)[each] for each in names if each in vars(value))
        else:
            yield value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


# --- effects ----------------------------------------------------------------------------------------


def require_effect_names(
    agent: str, declared: Collection[str], offered: Iterable[str], toolsets: Iterable[AbstractToolset[Any]]
) -> None:
    """Before a model request that offers these tools. Raises InputError if `effects=` names none of them, nor
    one that is only not offered now. A toolset that is made for each request may have any."""
    unknown = set(declared).difference(offered)
    if not unknown:
        return
    leaves = _leaves(toolsets)
    if any(isinstance(leaf, DynamicToolset) for leaf in leaves):
        return
    known = {
        tool.name for leaf in leaves if isinstance(leaf, FunctionToolset) for tool in leaf.tools.values()
    }
    if unknown - known:
        raise InputError(
            f"effects= of agent {agent!r} names {', '.join(map(repr, sorted(unknown - known)))}, which is no "
            "tool of it.",
            hint=f"There are: {', '.join(sorted(known.union(offered))) or 'no tools'}.",
        )


def _leaves(toolsets: Iterable[AbstractToolset[Any]]) -> list[AbstractToolset[Any]]:
    leaves: list[AbstractToolset[Any]] = []
    for toolset in toolsets:
        toolset.apply(leaves.append)
    return leaves


# --- results ----------------------------------------------------------------------------------------


def require_json_results(name: str, toolsets: Iterable[AbstractToolset[Any]]) -> None:
    """Raises InputError if a tool declares that it returns what JSON cannot have."""
    for leaf in _leaves(toolsets):
        if isinstance(leaf, FunctionToolset):
            for tool in leaf.tools.values():
                _require_json_result(name, tool.name, tool.function)


def _require_json_result(agent: str, tool: str, function: Callable[..., Any]) -> None:
    plain = innermost(function)
    if plain not in _fit:
        _fit[plain] = _is_json(plain)
    if not _fit[plain]:
        raise InputError(
            f"tool {tool!r} of agent {agent!r} declares a result that cannot be stored as JSON.",
            hint="Return text, numbers, lists, dicts, dataclasses or pydantic models, and declare that.",
        )


def _is_json(function: Any) -> bool:
    """Whether the declared type has a form in JSON. What is not declared is known when it is returned."""
    try:
        declared = typing.get_type_hints(function, include_extras=True).get("return", Any)
    except (NameError, TypeError, AttributeError):
        return True
    if declared is ToolReturn:
        return True
    if typing.get_origin(declared) is ToolReturn:
        declared = typing.get_args(declared)[0]
    try:
        TypeAdapter(declared).json_schema(mode="serialization")
    except PydanticUserError:
        return False
    except NameError:  # a name that only checkers know
        return True
    return True
