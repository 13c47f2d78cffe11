"""What a fork changes: a patch, checked against the state's type and applied to the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from holdfast.checkpoint import Blob, pack, spill
from holdfast.errors import InputError, StateError
from holdfast.model.position import Position
from holdfast.model.program import Program
from holdfast.runs.history.checkpoints import FoldedRun
from holdfast.types.reducers import GROWS
from holdfast.types.value import FrozenDict, FrozenList, freeze, thaw

if TYPE_CHECKING:
    from holdfast.runs.record_codec import RecordCodec

PARTITIONS: Final = ("input", "scratch", "artifacts", "diagnostics")
# Other names for them.
_NAMES: Final = {"state": "scratch", **{name: name for name in PARTITIONS}}


def partitions(patch: Mapping[str, Any] | None, given: Any) -> dict[str, Any]:
    changes = dict(patch or {})
    unknown = [name for name in changes if name not in PARTITIONS]
    if unknown:
        raise StateError(
            f"a patch has the partitions {', '.join(PARTITIONS)}, not {', '.join(map(repr, unknown))}.",
            hint="Write patch={'scratch': {...}} to change the state that nodes see.",
        )
    if given is not None:
        changes["input"] = given
    for name in ("scratch", "artifacts", "diagnostics"):
        if name in changes and not isinstance(changes[name], Mapping):
            raise StateError(f"the patch of {name} is a {type(changes[name]).__name__}, not a mapping.")
    return changes


def apply_patch(
    program: Program, folded: FoldedRun, changes: dict[str, Any], codec: RecordCodec
) -> list[Blob]:
    """Apply the changes to the root scope. Returns blobs for values too large for a record."""
    blobs: list[Blob] = []
    pos = folded.pos
    if "input" in changes:
        _patch_input(program, pos, changes["input"])
    if "scratch" in changes:
        for _, key, op, operand in program.schema.ops(dict(changes["scratch"]), {}):
            single = op in GROWS and not isinstance(operand, list)
            put(pos, "scratch", key, FrozenList([operand]) if single else operand, delete=op == "delete")
    for key, value in dict(changes.get("artifacts", {})).items():
        put(pos, "artifacts", key, freeze(value, program.adopt, f"artifact {key!r}"))
    folded.history.noted.update(freeze(dict(changes.get("diagnostics", {})), where="diagnostics"))
    for inside in pos.scopes[""].tree.frames[0].over.values():
        for key, value in list(inside.items()):
            _, spilled = spill(pack(value, codec.registry))
            if spilled and not isinstance(inside, FrozenDict):
                inside[key] = spilled[0].ref
                blobs += spilled
    return blobs


def _patch_input(program: Program, pos: Position, change: Any) -> None:
    """The input is merged if both are mappings, else replaced; state that was not written since
    follows it."""
    over = pos.scopes[""].tree.frames[0].over
    old = over["input"]
    fresh, scratch = program.schema.start({**old, **change} if isinstance(change, Mapping) else change)
    state = pos.scopes[""].tree.merged().get("scratch", {})
    for key, value in scratch.items():
        if key in fresh and (key not in state or (key in old and state[key] == old[key])):
            put(pos, "scratch", key, value)
    over["input"] = fresh


def put(pos: Position, partition: str, key: str, value: Any, *, delete: bool = False) -> None:
    """Set one key of the root scope, for every branch."""
    tree = pos.scopes[""].tree
    tree.fill_all()
    for frame in tree.frames.values():
        inside = frame.over.setdefault(partition, {})
        if delete:
            inside.pop(key, None)
        elif frame.parent < 0 or key in inside:
            inside[key] = value
        frame.over.get("aux", {}).pop(f"{partition}.{key}", None)
        for delta in frame.steps:
            # Otherwise what a branch wrote would come back at its join.
            delta.ops[:] = [op for op in delta.ops if op[:2] != (partition, key)]
    for kept in (tree.grown, tree.refs):
        kept.pop((partition, key), None)


# ---------------------------------------------------------------------- one value in the midst of others

Set = tuple[str, Any]
"""(path, value): `amount`, `state.customer.name`, `artifacts.report`, `lines.2.price`."""


def with_sets(
    patch: Mapping[str, Any] | None, sets: Sequence[Set], held: Mapping[str, Any]
) -> dict[str, Any]:
    """The patch with these values set in it. `held`: the present partitions, for paths into a value. Raises
    InputError for a path that does not exist."""
    made: dict[str, Any] = {
        name: dict(cast("Mapping[str, Any]", part)) if isinstance(part, Mapping) else part
        for name, part in (patch or {}).items()
    }
    for path, value in sets:
        partition, keys = _split(path)
        part = made.setdefault(partition, {})
        if keys[1:]:
            whole = part.get(keys[0], _top(held, partition, keys[0], path))
            value = _placed(thaw(whole), keys[1:], value, path)
        part[keys[0]] = value
    return made


def _split(path: str) -> tuple[str, list[str]]:
    keys = path.split(".")
    named = _NAMES.get(keys[0]) if len(keys) > 1 else None
    keys = keys[1:] if named else keys
    if not all(keys):
        raise InputError(f"{path!r} is not a path.", hint="Write amount=250 or customer.name=Ada.")
    return named or "scratch", keys


def _top(held: Mapping[str, Any], partition: str, key: str, path: str) -> Any:
    inside = held.get(partition, {})
    if key not in inside:
        raise InputError(
            f"{path!r} does not exist: {partition} has no {key!r}.", hint="Set it whole, as JSON."
        )
    return inside[key]


def _placed(whole: Any, keys: list[str], value: Any, path: str) -> Any:
    """`whole`, our own copy, with the value set at the path."""
    place = whole
    for key in keys[:-1]:
        place = place[_index(place, key, path)]
    place[_index(place, keys[-1], path, grows=True)] = value
    return whole


def _index(place: Any, key: str, path: str, *, grows: bool = False) -> Any:
    if isinstance(place, dict) and (grows or key in place):
        return key
    if (
        isinstance(place, list)
        and key.isascii()
        and key.isdigit()
        and int(key) < len(cast("list[Any]", place))
    ):
        return int(key)
    raise InputError(
        f"{path!r} does not exist: there is no {key!r} in a {type(cast('object', place)).__name__}.",
        hint="Set a value further up whole, as JSON.",
    )
