"""Loads flows: from `path/to/file.py:name` or `package.module:name` to a flow. The command line and the
server find them the same way."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from holdfast.app.effect_function import effect_of
from holdfast.app.flow import Flow
from holdfast.errors import FlowNotFoundError, HoldfastError, InputError

FORMS = "A flow is named as path/to/file.py[:name] or package.module[:name]; name@version also works."


def load_flow(spec: str) -> Flow:
    """Imports the module. Raises FlowNotFoundError or InputError that say what to write instead."""
    place, name = split(spec)
    module = _module(place)
    return _choose(_flows_of(module), place, name, module)


def load_flows(spec: str) -> list[Flow]:
    """All flows of a module, or the one that is named."""
    place, name = split(spec)
    module = _module(place)
    found = _flows_of(module)
    if name or not found:
        return [_choose(found, place, name, module)]
    return list(found.values())


def load_object(spec: str, what: str) -> Any:
    """What a module calls `name`, for options such as `--backend jobs.py:answer`. Raises FlowNotFoundError or
    InputError."""
    place, name = split(spec)
    if not name:
        raise InputError(f"{what} is {spec!r}.", hint="Name it as path/to/file.py:name.")
    module = _module(place)
    if not hasattr(module, name):
        raise FlowNotFoundError(f"{place} defines no {name!r}.", hint=f"{what} is looked for there.")
    return getattr(module, name)


def load_module(spec: str) -> ModuleType:
    """Raises FlowNotFoundError or InputError."""
    return _module(spec)


def split(spec: str) -> tuple[str, str]:
    place, colon, name = spec.rpartition(":")
    return (place, name) if colon else (spec, "")


def absolute(spec: str) -> str:
    """The same flow with an absolute path, so that it is found from another folder."""
    place, name = split(spec)
    whole = str(Path(place).resolve()) if is_file(place) else place
    return f"{whole}:{name}" if name else whole


def address_in(spec: str, flow: Flow) -> str:
    """Where this flow is found again; with its version where the module has several of that name."""
    place = split(absolute(spec))[0]
    same = [other for other in load_flows(place) if other.name == flow.name]
    return f"{place}:{flow.name}@{flow.label}" if len(same) > 1 and flow.label else f"{place}:{flow.name}"


def is_file(place: str) -> bool:
    return place.endswith(".py") or os.sep in place


class _FromSource(SourceFileLoader):
    """Never from compiled files: these are identified by second and size, so code that was changed a moment
    ago would run in its old form, under its new fingerprint."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(f"nothing compiled is wanted of {path}")


_OTHER_FILES: Final = {
    **dict.fromkeys(
        (".yaml", ".yml", ".json"),
        "a flow document: deploy it (`holdfast deploy {place}`), and every server and worker of the store "
        "serves it; `holdfast run {place}` runs it once",
    ),
    **dict.fromkeys(
        (".dot", ".gv"),
        "a pipeline: run it (`holdfast run {place}`), or send it to a server (POST /pipelines)",
    ),
}


def _module(place: str) -> ModuleType:
    other = _OTHER_FILES.get(Path(place).suffix.lower())
    if other is not None and Path(place).is_file():
        raise InputError(f"{place} is not a Python file.", hint=f"It is {other.format(place=place)}.")
    try:
        return _from_file(Path(place)) if is_file(place) else _by_name(place)
    except HoldfastError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{place} could not be loaded: {_reason(error)}.",
            hint="Fix it; running the file with `python` shows the full traceback.",
        ) from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise FlowNotFoundError(f"there is no file {path}.", hint=FORMS)
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path.resolve()):
        return known
    loader = _FromSource(path.stem, str(path.resolve()))
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve(), loader=loader)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # As when Python runs the file itself: modules beside it can be imported, and its types find their module.
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        # A partly executed module must not be found by the next import.
        sys.modules.pop(path.stem, None)
        raise
    return module


def _by_name(name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise FlowNotFoundError(f"there is no module {name}.", hint=FORMS) from None


def _reason(error: BaseException) -> str:
    """The last line of the user's own code that led to the error."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error} {(error.text or '').strip()!r}"
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if not f.filename.startswith("<frozen") and f.filename != __file__
    ]
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _flows_of(module: ModuleType) -> dict[str, Flow]:
    """Also those of effects, so that a worker can resume them; without those that need their caller."""
    found: dict[str, Flow] = {name: value for name, value in vars(module).items() if isinstance(value, Flow)}
    for name, value in vars(module).items():
        effect = effect_of(value)
        if effect is not None and not effect.ignored:
            found.setdefault(name, effect.flow)
    return found


def _choose(found: dict[str, Flow], place: str, name: str, module: ModuleType) -> Flow:
    if not found and name:
        known = [each for each in vars(module) if not each.startswith("_")]
        listed = ", ".join(sorted(known)[:20]) + (", ..." if len(known) > 20 else "")
        other = f"{name!r} in {place} is not a flow" if name in known else f"{place} defines no {name!r}"
        raise FlowNotFoundError(
            f"{other}, and no flow at all.",
            hint=f"It defines: {listed}." if known else "It defines nothing.",
        )
    if not found:
        raise FlowNotFoundError(
            f"{place} defines no flow.",
            hint="A flow is a module's variable: refund = Flow('refund'). Leave out files without one; "
            "functions that documents call are given with --functions.",
        )
    by_name = found | {flow.name: flow for flow in found.values()}
    by_name |= {f"{flow.name}@{flow.label}": flow for flow in found.values() if flow.label}
    names = ", ".join(sorted(found))
    if name:
        if name not in by_name:
            raise FlowNotFoundError(f"{place} defines no flow {name!r}.", hint=f"It defines: {names}.")
        return by_name[name]
    tops = _not_used_by_others(found)
    if len(tops) == 1:
        return tops[0]
    raise InputError(
        f"{place} defines several flows: {names}.", hint=f"Choose one: {place}:{next(iter(found))}."
    )


def _not_used_by_others(found: dict[str, Flow]) -> list[Flow]:
    inner = {id(child) for flow in found.values() for child in flow.children.values()}
    return list({id(flow): flow for flow in found.values() if id(flow) not in inner}.values())
