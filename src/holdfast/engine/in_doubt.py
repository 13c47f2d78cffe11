"""In doubt: an effect started, and its outcome is not known. The node's policy decides: run it again, fail,
probe, or ask a person whether it happened. A late report of the worker settles it as well.

The question says exactly which effect it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.engine import failures, holds, retry, settle
from holdfast.engine.decision import Decision, node_of
from holdfast.engine.messages import HandlerFinished, HoldAnswered, SubstepDoubted, SubstepEvidence
from holdfast.errors import InputError
from holdfast.model.apply import apply_record
from holdfast.model.branch_ordinals import shown_call
from holdfast.model.child_scopes import item_key
from holdfast.model.expressions import compile_expr
from holdfast.model.graph import GraphSpec, HoldSpec, InDoubt, MapSpec, Node
from holdfast.model.hold_declaration import answer_fields, mapping_of
from holdfast.model.paths import resolver
from holdfast.model.position import Exec, OpenHold
from holdfast.model.record_bodies import AttemptBody, ErrorInfo, SubstepBody
from holdfast.model.secrets import ANY, Paths, hide_at
from holdfast.model.shown_names import shown_name
from holdfast.model.template_text import as_text
from holdfast.types.hold import HoldClosed, Option
from holdfast.types.ids import EFFECT_FLOW, HoldId
from holdfast.types.record import Kind, Op, Side
from holdfast.types.status import HoldStatus
from holdfast.types.text import one_line
from holdfast.types.value import FrozenDict

OPTIONS = (
    Option("happened", "It happened", "primary"),
    Option("not_happened", "It did not happen: run it again", "secondary"),
    Option("fail", "Fail the node", "danger"),
)
# What a person may enter for an effect that happened: the update of its node, or the value of its step.
ANSWER_SCHEMA: dict[str, Any] = {
    "type": ["object", "null"],
    "properties": {"update": {"type": ["object", "null"]}, "value": {}},
    "additionalProperties": False,
}
# Questions about unknown outcomes have their own ordinals, apart from a node's questions.
ORDINALS = 1_000_000


def apply_policy(decision: Decision, execution: Exec, node: Node, error: ErrorInfo | None) -> None:
    """Repeat, fail, probe or ask, as the node says."""
    policy = node.in_doubt or decision.graph.spec.in_doubt
    if policy is InDoubt.retry:
        retry.restart(decision, execution, "in_doubt")
    elif policy is InDoubt.fail:
        failures.give_up(decision, execution, error or _unknown(f"node {node.id!r}"))
    elif policy is InDoubt.probe:
        decision.probes.append(execution)
    else:
        ask(decision, execution, error)


def on_probe_finished(decision: Decision, execution: Exec, message: HandlerFinished) -> None:
    """The node's probe has finished: the effect happened, did not happen, or is still unknown."""
    if message.probe == "happened":
        settle.settle(decision, execution, message)
    # Safe to run again: the probe looked, which a timeout or an error never does.
    elif message.probe == "not_happened":
        retry.restart(decision, execution, "in_doubt")
    else:
        ask(decision, execution, message.error)


def on_substep_doubted(decision: Decision, message: SubstepDoubted) -> None:
    """The same policy as for a node, for one sub-step of it."""
    execution = decision.pos.execs.get((message.scope, message.node))
    if execution is None or execution.visit != message.visit:
        return
    node = node_of(decision.graph, decision.pos, execution)
    _apply_step_policy(decision, execution, node, message.substep, message.error)


def _apply_step_policy(
    decision: Decision, execution: Exec, node: Node, substep: str, error: ErrorInfo | None
) -> None:
    policy = node.in_doubt or decision.graph.spec.in_doubt
    if policy is InDoubt.retry:
        retry.restart(decision, execution, "in_doubt")
    elif policy is InDoubt.fail:
        name = execution.step_names.get(substep, substep)
        failures.give_up(decision, execution, error or _unknown(f"step {name!r} of node {node.id!r}"))
    else:
        ask(decision, execution, error, substep=substep)


def _unknown(what: str) -> ErrorInfo:
    return ErrorInfo(
        "outcome_unknown", "OutcomeUnknownError", f"{what} started, and its outcome is not known"
    )


def next_doubt(decision: Decision, execution: Exec, node: Node) -> bool:
    """Several sub-steps may have been running at once: their unknown outcomes are settled one after the
    other."""
    for substep in execution.step_intents:
        _apply_step_policy(decision, execution, node, substep, None)
        return True
    return False


def ask(decision: Decision, execution: Exec, error: ErrorInfo | None, *, substep: str = "") -> None:
    """Ask a person whether the effect happened; the intent's facts are shown with the question."""
    # Loaded by the first of these questions.

    pos = decision.pos
    node = node_of(decision.graph, pos, execution)
    step = execution.step_names.get(substep, substep)
    what = f"step {step!r} of node {node.id!r}" if substep else f"node {node.id!r}"
    prompt = _question(what, error)
    context = {
        "node": node.id,
        "step": step or None,
        "effect": str(node.effect),
        "visit": execution.visit,
        "attempt": execution.attempt,
        "intent": execution.step_intents.get(substep, -1) if substep else execution.intent,
        "error": None if error is None else {"type": error.type, "message": error.message},
    }
    spec = HoldSpec(type="in_doubt", prompt=prompt, options=OPTIONS, priority="high", schema=ANSWER_SCHEMA)
    why = f"doubt_step:{substep}" if substep else "doubt:"
    exactly, facts = what_happened(decision, execution, substep)
    schema = None if substep else _without_answers(sorted(_kept_fields(decision, execution)))
    shown = {**facts, **context}
    if substep:
        # Of the node: a script that only reads has steps that act.
        del shown["effect"]
    holds.ask(
        decision,
        execution,
        node.id,
        spec,
        why=why,
        ordinal=ORDINALS + pos.head,
        prompt=prompt,
        context=context,
        row=holds.RowOnly(prompt=_question(exactly, error), context=shown, schema=schema or spec.schema),
    )


def _question(what: str, error: ErrorInfo | None) -> str:
    reported = f" It reported: {error.type}: {error.message}" if error is not None else ""
    return f"Did {what} take effect? It started, and its outcome is not known.{reported}"


def _kept_fields(decision: Decision, execution: Exec) -> set[str]:
    """The fields that say what people decided, or may: the answers of holds, and in a flow that asks people
    each field that has a value already, which may be a copy of an answer, or what they were shown."""
    found = answer_fields(decision.graph.spec)
    if not found and not _has_scripts(decision.graph.spec):
        return found
    scope = decision.pos.scopes[execution.scope]
    defaults = decision.pos.scope_graph(decision.graph, scope).spec.defaults
    for part in ("input", "scratch"):
        values = scope.tree.see(execution.frame, part)
        found |= {key for key, value in values.items() if not _is_unset(value, defaults.get(key))}
    return found


def _is_unset(value: Any, default: Any) -> bool:
    """Only plain values are compared: those of the user's types have code of their own."""
    if isinstance(value, (dict, list, tuple)):
        return not value
    return type(value) is type(default) in (str, int, float, bool, type(None)) and value == default


def _has_scripts(spec: GraphSpec) -> bool:
    """Whose code may ask."""
    return any(node.script for node in spec.nodes) or any(map(_has_scripts, spec.subgraphs))


def _without_answers(fields: list[str]) -> dict[str, Any] | None:
    """Who says what an effect did must not answer a hold with it, nor change what was approved."""
    if not fields:
        return None
    update = {"type": ["object", "null"], "properties": dict.fromkeys(fields, False)}
    return {**ANSWER_SCHEMA, "properties": {**ANSWER_SCHEMA["properties"], "update": update}}


def _happened(decision: Decision, execution: Exec, data: Mapping[str, Any], inbox: int) -> None:
    """The node settles with the given update, checked against the same types as a handler's."""
    update = mapping_of(data.get("update"))
    ops: list[Op] = [("scratch", key, "set", value) for key, value in update.items()]
    fitting = decision.fits.ops(decision, execution, ops) if decision.fits else ops
    if isinstance(fitting, ErrorInfo):
        failures.give_up(decision, execution, fitting, inbox=inbox)
        return
    finished = HandlerFinished(
        scope=execution.scope,
        node=execution.node,
        visit=execution.visit,
        ops=fitting,
        output=data.get("value"),
        inbox=inbox,
        notes=FrozenDict({"in_doubt": "happened"}),
    )
    settle.settle(decision, execution, finished)


def on_answered(decision: Decision, execution: Exec, waiting: OpenHold, message: HoldAnswered) -> None:
    """A person says whether the effect happened."""
    answer = message.resolution.get("decision")
    data = mapping_of(message.resolution.get("response_data"))
    if answer == "happened" and waiting.why == "doubt_step":
        _step_happened(decision, execution, waiting, message, data.get("value"))
    elif answer == "happened":
        _happened(decision, execution, data, message.inbox)
    elif answer == "not_happened" and waiting.why == "doubt_step":
        _step_not_happened(decision, execution, waiting.key, message.inbox)
    elif answer == "not_happened":
        retry.restart(decision, execution, "in_doubt", inbox=message.inbox)
    else:
        failures.give_up(
            decision,
            execution,
            ErrorInfo(
                "outcome_unknown", "OutcomeUnknownError", "a person decided that the outcome stays unknown"
            ),
            inbox=message.inbox,
        )


def _step_happened(
    decision: Decision, execution: Exec, waiting: OpenHold, message: HoldAnswered, value: Any
) -> None:
    holds.record_answer(decision, execution, waiting, message.hold, value, message.inbox)
    if not next_doubt(decision, execution, node_of(decision.graph, decision.pos, execution)):
        decision.starts.append(execution)


def _step_not_happened(decision: Decision, execution: Exec, key: str, inbox: int) -> None:
    node = node_of(decision.graph, decision.pos, execution)
    body = AttemptBody("not_happened", token=key)
    side = Side(inbox_done=[inbox] if inbox else [])
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, side=side
    )
    apply_record(decision.graph, decision.pos, record, body)
    if not next_doubt(decision, execution, node):
        retry.restart(decision, execution, "in_doubt")


def record_evidence(decision: Decision, execution: Exec, evidence: SubstepEvidence, inbox: int) -> None:
    """Late evidence about a sub-step: its result is recorded, and a question about it is closed (D-17)."""
    pos = decision.pos
    node = node_of(decision.graph, pos, execution)
    doubts = [h for h, w in pos.holds.items() if _doubts(w, execution, evidence.ordinal)]
    side = Side(
        inbox_done=[inbox] if inbox else [],
        close_holds=[
            HoldClosed(HoldId(h), HoldStatus.cancelled, "the worker reported the outcome") for h in doubts
        ],
    )
    body = SubstepBody(evidence.ordinal, evidence.name, evidence.value, hold=doubts[0] if doubts else "")
    record = decision.draft(
        Kind.substep,
        body,
        node=node.id,
        execution=execution,
        effect=evidence.effect or node.effect,
        listed=True,
        side=side,
    )
    apply_record(decision.graph, pos, record, body)
    if doubts and not next_doubt(decision, execution, node):
        decision.starts.append(execution)


def _doubts(waiting: OpenHold, execution: Exec, key: str) -> bool:
    here = (waiting.scope, waiting.node) == (execution.scope, execution.node)
    return here and waiting.why == "doubt_step" and waiting.key == key


MAX_ITEM: Final = 200
"""Characters of an item in a question."""


def what_happened(decision: Decision, execution: Exec, substep: str) -> tuple[str, dict[str, Any]]:
    """The effect as a question names it, and the facts that tell it from others of the same node."""
    node = node_of(decision.graph, decision.pos, execution)
    place = shown_name(execution.scope + node.id, decision.graph)
    again = f" (visit {execution.visit})" if execution.visit > 1 else ""
    facts: dict[str, Any] = {"place": place}
    text = _recorded_effect(decision, execution, facts) or f"node {place!r}{again}"
    if substep:
        facts["call"] = shown_call(substep)
        step = execution.step_names.get(substep, substep)
        text = f"step {step!r} ({facts['call']}) of {text}"
    items = list(_items(decision, execution))
    if items:
        facts |= items[0]
        # Of maps inside maps: the innermost item first.
        shown = "; ".join(_shown(each) for each in items)
        text += f" ({'item' if len(items) == 1 else 'items'} {shown})"
    return text, facts


def _recorded_effect(decision: Decision, execution: Exec, facts: dict[str, Any]) -> str:
    """Of a function that is recorded without a flow (`@hf.effect`): its name and key."""
    name = decision.graph.name
    if not name.startswith(EFFECT_FLOW):
        return ""
    tree = decision.pos.scopes[execution.scope].tree
    facts["key"] = as_text(resolver(tree, execution.frame)(("key",)))
    return f"effect {name.removeprefix(EFFECT_FLOW)!r} with the key {facts['key']!r}"


def _shown(item: dict[str, Any]) -> str:
    value = one_line(as_text(item["item"]), MAX_ITEM)
    return f"{one_line(item['key'], MAX_ITEM)}: {value}" if "key" in item else value


def _items(decision: Decision, execution: Exec) -> Iterator[dict[str, Any]]:
    """Of the maps around it."""
    pos = decision.pos
    scope = pos.scopes[execution.scope]
    while scope.owner is not None:
        owner = pos.execs[scope.owner]
        node = node_of(decision.graph, pos, owner)
        if node.map is not None and owner.items is not None:
            item = owner.items[scope.index]
            shown: dict[str, Any] = {"item": _hidden(item, node.map, scope.index, decision.graph.secrets)}
            try:
                key = item_key(node, shown["item"], scope.index)
            except InputError:
                key = str(scope.index)
            if key != str(scope.index):
                shown["key"] = key
            yield shown
        scope = pos.scopes[owner.scope]


def _hidden(item: Any, spec: MapSpec, index: int, secrets: Paths) -> Any:
    """Questions leave the run, so secret fields are masked. The map may take its items from a value inside
    another one, so the ends of their paths count too."""
    ends = tuple(path[start:] for path in secrets for start in range(len(path)) if path[start] != ANY)
    found = hide_at(item, ("item",), ends) if ends else item
    for path in compile_expr(spec.over).names if ends else ():
        found = hide_at(found, (str(path[-1]), str(index)), ends)
    return found
