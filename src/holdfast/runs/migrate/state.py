"""The state of a run, as another version of its flow declares it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from holdfast.errors import HoldfastError, StateError
from holdfast.model.frames import FrameTree
from holdfast.model.migration import Migration, Renamed, Restate
from holdfast.model.user_code.boundary import call_plain
from holdfast.runs.history.graph_match import Match
from holdfast.runs.migrate.blockers import MigrationBlocker, option_ids
from holdfast.types.value import freeze

SCRATCH = "scratch"


def migrate_state(tree: FrameTree, matched: Match, label: str) -> list[MigrationBlocker]:
    """Change the values of one scope in place. Returns what does not fit the new declaration, in words."""
    tree.fill_all()
    tree.grown.clear()
    found = list(_of_reducers(tree, matched, label))
    for step in matched.way:
        try:
            call_plain(_change, tree, step)
        except _NoOneStateError:
            found.append(
                MigrationBlocker(
                    label,
                    "parallel branches have separate changes, and a function cannot migrate them",
                    "declare state= as a mapping of defaults and renamed fields, or let the branches join",
                )
            )
        except Exception as error:
            reason = error.message if isinstance(error, HoldfastError) else str(error)
            why = f"the migration of its state failed: {type(error).__name__}: {reason}"
            found.append(MigrationBlocker(label, why, "fix what state= does"))
        if found:
            return found
    return found or _fit(tree, matched, label)


class _NoOneStateError(Exception):
    """A function was given, but the run has no single state to pass to it."""


# ---------------------------------------------------------------------- as declared


def _change(tree: FrameTree, step: Migration) -> None:
    if step.state is not None:
        _by_function(tree, step.state)
    for field, change in step.fields.items():
        _by_field(tree, field, change)
    for field in step.drop:
        _drop(tree, field)


def _by_function(tree: FrameTree, change: Restate) -> None:
    inside = _only(tree)
    given: Any = change(dict(inside))
    if not isinstance(given, Mapping):
        raise StateError(f"it returned a {type(given).__name__}, not the whole new state as a mapping.")
    after = dict(cast("Mapping[str, Any]", given))
    for field in [f for f in inside if f not in after]:
        _drop(tree, field)
    for field, value in after.items():
        if field not in inside or inside[field] is not value:
            _set(tree, field, value)


def _by_field(tree: FrameTree, field: str, change: Any) -> None:
    if isinstance(change, Renamed):
        _rename(tree, change.was, field)
    elif callable(change):
        _set(tree, field, change(dict(_only(tree))))
    elif field not in tree.frames[0].over.setdefault(SCRATCH, {}):
        _set(tree, field, change)


def _only(tree: FrameTree) -> dict[str, Any]:
    if len(tree.frames) > 1:
        raise _NoOneStateError
    return tree.frames[0].over.setdefault(SCRATCH, {})


def _set(tree: FrameTree, field: str, value: Any) -> None:
    root = tree.frames[0].over
    root.setdefault(SCRATCH, {})[field] = value
    root.get("aux", {}).pop(f"{SCRATCH}.{field}", None)
    tree.refs.pop((SCRATCH, field), None)


def _drop(tree: FrameTree, field: str) -> None:
    for frame in tree.frames.values():
        frame.over.get(SCRATCH, {}).pop(field, None)
        frame.over.get("aux", {}).pop(f"{SCRATCH}.{field}", None)
        for delta in frame.steps:
            delta.ops[:] = [op for op in delta.ops if op[:2] != (SCRATCH, field)]
    tree.refs.pop((SCRATCH, field), None)


def _rename(tree: FrameTree, was: str, field: str) -> None:
    for frame in tree.frames.values():
        for partition, old, new in ((SCRATCH, was, field), ("aux", f"{SCRATCH}.{was}", f"{SCRATCH}.{field}")):
            inside = frame.over.get(partition, {})
            if old in inside:
                inside[new] = inside.pop(old)
        for delta in frame.steps:
            delta.ops[:] = [
                (p, field if (p, key) == (SCRATCH, was) else key, op, operand)
                for p, key, op, operand in delta.ops
            ]
    ref = tree.refs.pop((SCRATCH, was), None)
    if ref is not None:
        tree.refs[(SCRATCH, field)] = ref


# ---------------------------------------------------------------------- does it fit?


def _of_reducers(tree: FrameTree, matched: Match, label: str) -> Iterator[MigrationBlocker]:
    """What branches will add at their join, and averages, are stored in the form of the old reducer."""
    old, new = matched.old.spec.reducers, matched.graph.spec.reducers
    names = {change.was: field for step in matched.way for field, change in _renames(step)}
    pending = {
        key for frame in tree.frames.values() for d in frame.steps for p, key, _, _ in d.ops if p == SCRATCH
    }
    averaged = {key.partition(".")[2] for frame in tree.frames.values() for key in frame.over.get("aux", {})}
    for field in sorted((pending | averaged) & {*old, *new}):
        before, after = old.get(field, "set"), new.get(names.get(field, field), "set")
        if before != after:
            yield MigrationBlocker(
                label,
                f"the reducer of {field!r} is {after} in NEW, and what the run has gathered is for {before}",
                "let such runs end on their own version",
            )


def _renames(step: Migration) -> Iterator[tuple[str, Renamed]]:
    for field, change in step.fields.items():
        if isinstance(change, Renamed):
            yield field, change


def _fit(tree: FrameTree, matched: Match, label: str) -> list[MigrationBlocker]:
    """Each branch has a state that its nodes can read; missing fields with a default get it."""
    schema = matched.new.schema
    problems: dict[str, None] = {}
    fitted: dict[str, Any] = {}
    decided: dict[str, MigrationBlocker] = {}
    for number, frame in tree.frames.items():
        if frame.kids == 0 or number == 0:
            decided |= {each.why: each for each in _of_decisions(tree.see(number, SCRATCH), matched, label)}
            try:
                _, fitted[str(number)] = schema.start(dict(tree.see(number, SCRATCH)))
            except HoldfastError as error:
                listed = cast("list[str] | None", error.facts.get("problems"))
                problems |= dict.fromkeys(listed or [error.message])
    if problems or decided:
        misfits = [MigrationBlocker(label, f"the state: {text}", _fix_hint(text)) for text in problems]
        return [*misfits, *decided.values()]
    root = tree.frames[0].over.setdefault(SCRATCH, {})
    for field, value in fitted["0"].items():
        if root.get(field) is not value:
            root[field] = freeze(value, matched.new.adopt, field)
            tree.refs.pop((SCRATCH, field), None)
    return []


def _of_decisions(state: Mapping[str, Any], matched: Match, label: str) -> Iterator[MigrationBlocker]:
    """A decision that was made, in the words of the old options: the edges of NEW do not know it."""
    words = {word for node in matched.old.nodes for word in option_ids(node) or ()}
    known: dict[str, set[str] | None] = {}
    for node in matched.graph.nodes:
        if node.hold is not None:
            options, others = option_ids(node), known.get(node.hold.bind, set[str]())
            known[node.hold.bind] = None if options is None or others is None else {*others, *options}
    for field, options in known.items():
        value = state.get(field)
        if options is not None and isinstance(value, str) and value in words - options:
            yield MigrationBlocker(
                label,
                f"{field!r} is {value!r}, a decision that is no option in NEW",
                "migrate(..., state=function) that gives it the option of NEW that means the same",
            )


def _fix_hint(problem: str) -> str:
    if "is missing" in problem:
        return "give it a default, or migrate(..., state={field: value})"
    if "has no field" in problem:
        return 'migrate(..., drop=["field"]), or state={"new": renamed("field")}'
    return "migrate(..., state=function) that makes it fit"
