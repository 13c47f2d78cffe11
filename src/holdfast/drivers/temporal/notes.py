"""What a handler did inside its node, applied to a position: by the activity while it runs, and by the
workflow with its result. The same code in both, so that both see the same execution."""

from __future__ import annotations

from holdfast.drivers.temporal.payloads import ExecNote, Wire, decode_spec
from holdfast.engine import holds, retry, timers
from holdfast.engine.decision import Decision, node_of
from holdfast.model.apply import apply_record
from holdfast.model.graph import HoldSpec, RetryPolicy
from holdfast.model.position import Exec
from holdfast.types.record import Kind
from holdfast.types.value import FrozenDict


def apply_note(decision: Decision, execution: Exec, note: ExecNote, wire: Wire) -> None:
    """The records that follow from it are added to the decision."""
    node = node_of(decision.graph, decision.pos, execution)
    if note.what == "record":
        body = wire.codec.load_body(note.kind, note.body)
        record = decision.draft(
            Kind(note.kind), body, node=node.id, execution=execution, effect=note.effect or node.effect,
            outcome=note.outcome, listed=note.listed,
        )  # fmt: skip
        apply_record(decision.graph, decision.pos, record, body)
    elif note.what == "ask":
        spec = decode_spec(note.spec, HoldSpec)
        context = FrozenDict(wire.read(note.context))
        holds.ask_inside(decision, execution, note.key, note.ordinal, spec, context, note.code)
    elif note.what == "sleep":
        timers.sleep_inside(decision, execution, node, note.key, note.wake)
    elif note.what == "back_off":
        assert note.error is not None
        policy, substep = decode_spec(note.spec, RetryPolicy), (note.key, note.name)
        retry.back_off(decision, execution, node, substep, policy, note.ordinal, note.error, note.usage)
    elif note.what == "continue":
        retry.continue_back_off(decision, execution, node, note.key)
    elif note.what == "branches":
        body = wire.codec.load_body(Kind.substep, note.body)
        holds.decide_branches(decision, execution, node, body, note.key)
    else:
        raise ValueError(f"a handler noted {note.what!r}, which this version does not know")
