"""Questions to people: a hold is opened by a separate record, and closed when it is no longer needed.

Builds the row and the record of a new question from its declaration.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from holdfast.engine import failures
from holdfast.engine.decision import Decision, node_of
from holdfast.errors import ExpressionError
from holdfast.model.apply import apply_record
from holdfast.model.branch_ordinals import given_up, is_inside_branch
from holdfast.model.expressions import Resolve
from holdfast.model.forms.compile import primary_options
from holdfast.model.forms.json_schema import KEY, schema_of
from holdfast.model.forms.render import render_form
from holdfast.model.graph import HoldSpec, Node
from holdfast.model.hold_declaration import assignee_fault, expiry_of, request_hash
from holdfast.model.hold_text import PlaceholderRenderer, UnshowableError, wait_condition
from holdfast.model.paths import masking_resolver, resolver
from holdfast.model.pinned_skills import with_pins
from holdfast.model.position import Exec, OpenHold, Position
from holdfast.model.record_bodies import AskedBody, ErrorInfo, SubstepBody, usage_of_judge
from holdfast.model.template import Template, as_text, compile_template, shown_json
from holdfast.types.clock import micros
from holdfast.types.duration import BusinessDuration, parse_length
from holdfast.types.hold import CONSUME, HoldClosed, NewHold, Option, option_from_list
from holdfast.types.ids import HoldId, derived_id
from holdfast.types.queue_message import EVENTS, LONGEST_EVENT_KEY, event_queue, event_tag
from holdfast.types.record import Kind, Side
from holdfast.types.status import HoldStatus
from holdfast.types.terms import HitlTarget, HoldTerms, Rung
from holdfast.types.value import FrozenDict, freeze


class UnaskableError(ValueError):
    """The assignee, the timeout or a text cannot be rendered, so the question cannot be asked."""


def row_of(
    decision: Decision,
    execution: Exec | None,
    hold: HoldId,
    node: str,
    spec: HoldSpec,
    *,
    ordinal: int,
    prompt: str,
    context: dict[str, Any],
) -> NewHold:
    """The row as the engine knows it; the hold preparation adds what has to be looked up."""
    terms = terms_of(spec) or HoldTerms()
    expiry = expiry_of(spec.on_timeout, terms)
    return NewHold(
        id=hold,
        seq=decision.pos.head + 1,
        node=node,
        scope=execution.scope if execution else "",
        visit=execution.visit if execution else 0,
        ordinal=ordinal,
        type=spec.type,
        prompt=prompt,
        options=spec.options,
        assignee=spec.assignee,
        priority=spec.priority,
        context=shown_json(context),
        schema=None if spec.schema is None else shown_json(spec.schema),
        created_at=decision.now,
        expires_at=expires_at(decision, spec),
        expiry_action=expiry.action,
        request_hash=request_hash(prompt, spec.options, context, spec.schema),
        block=execution.node if execution else 0,
        escalation_target=expiry.target,
        original_timeout=spec.timeout,
        reminder_interval=spec.reminder or None,
        tags=spec.tags or (),
        terms=terms,
    )


def body_of(row: NewHold, spec: HoldSpec, context: dict[str, Any], why: str, code: str) -> AskedBody:
    """Without what the hold preparation adds: the journal has what was asked, the row what happened to it."""
    return AskedBody(
        row.id,
        row.ordinal,
        spec.type,
        row.prompt,
        [_listed(option) for option in spec.options] if spec.options else None,
        spec.assignee,
        spec.priority,
        FrozenDict(context),
        spec.schema,
        row.expires_at,
        why,
        "",
        spec.on_timeout,
        code,
        _more(spec),
    )


def terms_of(spec: HoldSpec) -> HoldTerms | msgspec.UnsetType:
    """The target of a document is the queue of the terms: a row has one place for it."""
    if not spec.target:
        return spec.terms
    return msgspec.structs.replace(spec.terms or HoldTerms(), queue=spec.target.address)


def expires_at(decision: Decision, spec: HoldSpec) -> int | None:
    beat = spec.terms.heartbeat if spec.terms else None
    lengths = [length for length in (spec.timeout, beat) if length is not None]
    return decision.now + min(lengths) if lengths else None


def _listed(option: Option) -> list[Any]:
    """As lists, so that any reader of a journal can show them; unset fields at the end are omitted."""
    found: list[Any] = [option.id, option.label, option.variant]
    if option.default is True or option.requires_comment is True:
        found += [option.default is True, option.requires_comment is True]
    return found


def _more(spec: HoldSpec) -> Any:
    found: dict[str, Any] = {
        name: value
        for name, value in (("tags", spec.tags), ("reminder", spec.reminder), ("terms", terms_of(spec)))
        if value
    }
    return freeze(msgspec.to_builtins(found)) if found else None


def spec_from_asked(asked: dict[str, Any]) -> HoldSpec:
    """The question as an `asked` record has it."""
    more: dict[str, Any] = dict(asked.get("more") or {})
    expires = asked["expires_at"]
    return HoldSpec(
        type=asked["type"],
        prompt=asked["prompt"],
        assignee=asked["assignee"],
        priority=asked["priority"],
        options=tuple(option_from_list(option) for option in asked["options"]) if asked["options"] else None,
        timeout=None if expires is None else max(0, expires - asked["at"]),
        on_timeout=asked["on_timeout"],
        schema=None if asked["schema"] is None else dict(asked["schema"]),
        reminder=more.get("reminder", msgspec.UNSET),
        tags=tuple(more["tags"]) if "tags" in more else msgspec.UNSET,
        terms=msgspec.convert(more["terms"], HoldTerms) if "terms" in more else msgspec.UNSET,
    )


# ---------------------------------------------------------------------- rendering, when it is asked


class RowOnly(msgspec.Struct, frozen=True, kw_only=True):
    """What people see and must enter, where that is more than the journal says: the journals of earlier runs
    are compared with what is decided today."""

    prompt: str
    context: dict[str, Any]
    schema: dict[str, Any] | None


class RenderedHold(msgspec.Struct, frozen=True):
    """`warnings`: the placeholders without a value, each with its place."""

    prompt: str
    context: dict[str, Any]
    options: tuple[Option, ...] | None
    warnings: list[str]


def render_hold(spec: HoldSpec, resolve: Resolve) -> RenderedHold:
    """The texts that people read, with their placeholders filled once. A value without a text form is
    replaced by the reason. Raises UnaskableError for a text that is too large, and in a strict hold for a
    missing value."""
    showing = PlaceholderRenderer(resolve, strict=_is_strict(spec), telling=True)
    try:
        prompt = showing.value(spec.prompt, "prompt")
        if spec.type == CONSUME:
            context = wait_condition(showing, spec.context, resolve)
        else:
            context = {name: showing.value(each, f"context.{name}") for name, each in spec.context.items()}
        # Those of a form's decision are filled with it.
        decided = spec.form and primary_options(spec.form)
        options = spec.options if decided else _shown_options(showing, spec.options)
    except UnshowableError as error:
        raise UnaskableError(f"its {error}") from error
    return RenderedHold(
        prompt if isinstance(prompt, str) else _text_or_reason(prompt), context, options, showing.warnings
    )


def _shown_options(
    showing: PlaceholderRenderer, options: tuple[Option, ...] | None
) -> tuple[Option, ...] | None:
    """With their labels filled, as those of a form's fields are; ids are not templates (TP-7)."""
    found: list[Option] = []
    for at, option in enumerate(options or ()):
        label = showing.value(option.label, f"options[{at}].label")
        text = label if isinstance(label, str) else _text_or_reason(label)
        found.append(msgspec.structs.replace(option, label=text or option.id))
    return None if options is None else tuple(found)


def _text_or_reason(value: object) -> str:
    try:
        return as_text(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return f"(it cannot be shown as text: {error})"


def warnings_of(spec: HoldSpec) -> list[str]:
    """The warnings of its form."""
    form: Any = (spec.schema or {}).get(KEY) if spec.form else None
    return form.get("warnings", []) if form else []


def _is_strict(spec: HoldSpec) -> bool:
    return bool(spec.terms) and spec.terms.strict_templates


def fill_placeholders(spec: HoldSpec, resolve: Resolve) -> HoldSpec:
    """The declaration with its placeholders filled, once. Raises UnaskableError if that fails (TO-4)."""
    templates = _templates_for_people(spec)
    if templates:
        filled = tuple(dict.fromkeys(_who(text, resolve, what) for text, what in templates))
        spec = msgspec.structs.replace(
            spec, terms=msgspec.structs.replace(spec.terms or HoldTerms(), filled=filled)
        )
    if spec.assignee is not None:
        spec = msgspec.structs.replace(spec, assignee=_who(spec.assignee, resolve, "assignee"))
    if spec.on_timeout is not None and "{{" in spec.on_timeout:
        action, _, target = spec.on_timeout.partition(":")
        spec = msgspec.structs.replace(spec, on_timeout=f"{action}:{_who(target, resolve, 'on_timeout')}")
    if spec.terms and spec.terms.ladder:
        rungs = tuple(Rung(_who(rung.to, resolve, "ladder"), rung.after) for rung in spec.terms.ladder)
        spec = msgspec.structs.replace(spec, terms=msgspec.structs.replace(spec.terms, ladder=rungs))
    if spec.form:
        form = _form(spec, spec.form, resolve)
        options = primary_options(form) or spec.options
        spec = msgspec.structs.replace(spec, schema=schema_of(form), options=options)
    return spec if not spec.wait else _waiting(spec, _text(spec.wait, resolve, "timeout"))


def _event_wait(spec: HoldSpec, resolve: Resolve) -> HoldSpec:
    """Of an `event` node: the queue of its event, whose key is known now."""
    name, key = str(spec.context["event"]), spec.context.get("key")
    context = dict(spec.context)
    if key is not None:
        context["key"] = _text(str(key), resolve, "key")
        # No event has another one: the run would wait for ever.
        if not context["key"].strip() or len(context["key"]) > LONGEST_EVENT_KEY or "\0" in context["key"]:
            raise UnaskableError(f"its key {key!r} must have 1 to {LONGEST_EVENT_KEY} characters")
    queue = event_queue(name, context.get("key"))
    return msgspec.structs.replace(
        spec,
        context=context,
        target=HitlTarget(scope=EVENTS, queue=queue),
        tags=(*(spec.tags or ()), event_tag(queue)),
    )


def _templates_for_people(spec: HoldSpec) -> list[tuple[str, str]]:
    """Texts with placeholders that name people, and where they are written."""
    found = [(spec.assignee or "", "assignee")]
    if spec.on_timeout is not None:
        found.append((spec.on_timeout.partition(":")[2], "on_timeout"))
    found += [(rung.to, "ladder") for rung in (spec.terms.ladder if spec.terms else ())]
    return [(text, what) for text, what in found if "{{" in text]


def _form(spec: HoldSpec, form: dict[str, Any], resolve: Resolve) -> dict[str, Any]:
    try:
        return render_form(form, resolve, strict=_is_strict(spec))
    except UnshowableError as error:
        raise UnaskableError(f"its form: {error}") from error


def _waiting(spec: HoldSpec, text: str) -> HoldSpec:
    try:
        return with_timeout(spec, text)
    except ValueError as error:
        raise UnaskableError(f"its timeout {spec.wait!r}: {error}") from error


def with_timeout(spec: HoldSpec, given: str | float | timedelta) -> HoldSpec:
    """With this timeout; business time waits for its calendar. Raises DurationError."""
    length = parse_length(given)
    if isinstance(length, BusinessDuration):
        terms = msgspec.structs.replace(spec.terms or HoldTerms(), timeout=str(given))
        return msgspec.structs.replace(spec, timeout=None, terms=terms)
    return msgspec.structs.replace(spec, timeout=micros(length))


def _who(text: str, resolve: Resolve, what: str) -> str:
    name = _text(text, resolve, what)
    fault = _unnamed(text, resolve) or assignee_fault(name)
    if fault is not None:
        raise UnaskableError(f"its {what} {text!r}: {fault}")
    return name


def _unnamed(text: str, resolve: Resolve) -> str | None:
    """Why a value cannot be in the name of a person: without it anyone could decide the hold."""
    for part in compile_template(text).parts if "{{" in text else ():
        if isinstance(part, str):
            continue
        value = Template(text, (part,)).render(resolve, strict=True).value
        if isinstance(value, bool) or not isinstance(value, (str, int)) or not str(value).strip():
            found = "empty" if value is None or isinstance(value, str) else "neither a text nor a number"
            return f"the value of {'.'.join(part.path)} is {found}: it names no assignee"
    return None


def _text(text: str, resolve: Resolve, what: str) -> str:
    if "{{" not in text:
        return text
    try:
        value = compile_template(text).render(resolve, strict=True).value
        return value if isinstance(value, str) else as_text(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UnaskableError(f"its {what} {text!r}: {error}") from error


# Repeated questions have their own ordinals, apart from a node's questions.
AGAIN = 2_000_000


def ask(
    decision: Decision,
    execution: Exec | None,
    node: str,
    spec: HoldSpec,
    *,
    why: str,
    ordinal: int,
    prompt: str,
    context: dict[str, Any],
    code: str = "",
    warnings: Sequence[str] = (),
    row: RowOnly | None = None,
) -> None:
    """Open a hold by a separate `asked` record; asking again finds the same id (D-28)."""
    scope, visit = (execution.scope, execution.visit) if execution else ("", 0)
    # Derived, not random: a step that is repeated after a crash asks the same question, not a second one.
    hold = HoldId(derived_id(decision.pos.run, scope, node, visit, why, ordinal))
    context = with_pins(context, decision.pos.skills)
    opened = row_of(decision, execution, hold, node, spec, ordinal=ordinal, prompt=prompt, context=context)
    body = body_of(opened, spec, context, why, code)
    if row is not None:
        spec = msgspec.structs.replace(spec, schema=row.schema)
        shown = with_pins(row.context, decision.pos.skills)
        opened = row_of(
            decision, execution, hold, node, spec, ordinal=ordinal, prompt=row.prompt, context=shown
        )
    if warnings:
        # Only in the row: what was asked, which the journal records, is the same without them.
        terms = msgspec.structs.replace(opened.terms, warnings=tuple(warnings))
        opened = msgspec.structs.replace(opened, terms=terms)
    record = decision.draft(
        Kind.asked, body, node=node, execution=execution, effect="human", listed=True,
        side=Side(holds=[opened]),
    )  # fmt: skip
    apply_record(decision.graph, decision.pos, record, body)


def ask_node(decision: Decision, execution: Exec, node: Node) -> None:
    """A hold node asks as soon as it starts: the question is stored before the run waits (R-23)."""
    spec = node.hold or HoldSpec()
    resolve = resolver(decision.pos.scopes[execution.scope].tree, execution.frame)
    # Questions leave the run, to people and their channels: a secret in a template is shown as a mask.
    if decision.graph.secrets:
        resolve = masking_resolver(resolve, decision.graph.secrets)
    try:
        if spec.target and spec.target.scope == EVENTS:
            spec = _event_wait(spec, resolve)
        shown = render_hold(spec, resolve)
        spec = msgspec.structs.replace(spec, options=shown.options)
        spec = fill_placeholders(spec, resolve)
    except UnaskableError as fault:
        text = f"hold {node.id!r} cannot be asked: {fault}"
        error = ErrorInfo(ExpressionError.code, ExpressionError.__name__, text)
        failures.give_up(decision, execution, error)
        return
    ask(
        decision,
        execution,
        node.id,
        spec,
        why="node:",
        ordinal=execution.attempt - 1,
        prompt=shown.prompt,
        context=shown.context,
        warnings=[*shown.warnings, *warnings_of(spec)],
    )


def ask_inside(
    decision: Decision,
    execution: Exec,
    key: str,
    ordinal: int,
    spec: HoldSpec,
    context: dict[str, Any],
    code: str,
) -> None:
    """A question inside a node (`ctx.ask`). If its hold was closed without an answer, it is asked again."""
    node = node_of(decision.graph, decision.pos, execution)
    # The id of the closed hold must not be derived again, because its row exists and is closed. In branches
    # the order of the calls, and so their count, is another one each time.
    asked_before = key in execution.subs or (decision.graph.dialect and execution.attempt > 1)
    if asked_before or is_inside_branch(key):
        ordinal = AGAIN + decision.pos.head
    ask(
        decision,
        execution,
        node.id,
        spec,
        why=f"ask:{key}",
        ordinal=ordinal,
        prompt=spec.prompt,
        context=context,
        code=code,
    )


def record_answer(
    decision: Decision,
    execution: Exec,
    waiting: OpenHold,
    hold: str,
    resolution: Any,
    inbox: int,
    error: ErrorInfo | None = None,
) -> None:
    """The answer to a question inside a node is recorded like any sub-step."""
    node = node_of(decision.graph, decision.pos, execution)
    known = execution.subs.get(waiting.key)
    name = known.name if known else execution.step_names.get(waiting.key, "")
    # The answer about an effect in doubt is a value that a person entered, and says nothing of a judge.
    usage = usage_of_judge(resolution) if waiting.why == "ask" else None
    body = SubstepBody(waiting.key, name, resolution, error, hold, usage=usage)
    side = Side(inbox_done=[inbox] if inbox else [])
    record = decision.draft(
        Kind.substep, body, node=node.id, execution=execution, effect="human", listed=True, side=side
    )
    apply_record(decision.graph, decision.pos, record, body)


def decide_branches(decision: Decision, execution: Exec, node: Node, body: SubstepBody, winner: str) -> None:
    """A script has decided among its branches: the questions and timers of the others are closed."""
    side = Side()
    for _, sub in given_up(execution.subs, body.ordinal, winner):
        if sub.hold in decision.pos.holds:
            closed = HoldClosed(HoldId(sub.hold), HoldStatus.cancelled, "another branch has ended")
            side.close_holds.append(closed)
        elif sub.hold in decision.pos.timers:
            side.close_timers.append(sub.hold)
    record = decision.draft(
        Kind.substep,
        body,
        node=node.id,
        execution=execution,
        effect=node.effect,
        outcome="success" if body.error is None else "fail",
        side=side if side.close_holds or side.close_timers else None,
    )
    apply_record(decision.graph, decision.pos, record, body)


def close_holds(pos: Position, execution: Exec, side: Side, reason: str) -> None:
    for hold, waiting in pos.holds.items():
        if waiting.node == execution.node and waiting.scope == execution.scope:
            side.close_holds.append(HoldClosed(HoldId(hold), HoldStatus.cancelled, reason))
