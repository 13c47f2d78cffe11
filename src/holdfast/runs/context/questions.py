"""Questions that a handler asks by `ctx.ask`, and the replies.

Also forms that a handler asks for by `ctx.ask(form=...)`, and the filled-in values as an instance of their
type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from holdfast.checkpoint import pack
from holdfast.engine.holds import with_timeout
from holdfast.errors import (
    AnswerInvalidError,
    HoldCancelledError,
    HoldExpiredError,
    InputError,
    ValueTooLargeError,
)
from holdfast.frontends.python.inline import inlined
from holdfast.frontends.python.written_texts import written_texts
from holdfast.holds.permissions.assignees import parse_assignee
from holdfast.model.annotations import is_pydantic
from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.forms.compile import SUBMIT, compile_form, primary_options
from holdfast.model.forms.json_schema import schema_of, sections_of
from holdfast.model.forms.render import render_form
from holdfast.model.forms.visible_text import show_invisible
from holdfast.model.graph import HoldSpec
from holdfast.model.hold_declaration import assignee_fault, decision_of, read_option
from holdfast.model.hold_terms import Duration, HoldTermsOptions, ParsedTerms, ask_faults, read_terms
from holdfast.model.hold_text import MAX_SHOWN, UnshowableError
from holdfast.model.position import Sub
from holdfast.runs.context.driver_protocols import Attempt
from holdfast.types.hold import Option
from holdfast.types.redaction import redactor
from holdfast.types.terms import HoldTerms
from holdfast.types.text import clean_text, require_text
from holdfast.types.value import freeze


def form_schema(
    form: Any, schema: Any, options: tuple[Option, ...] | None, where: str
) -> tuple[dict[str, Any], tuple[Option, ...]]:
    """The schema of the form, and the choices. Its texts are final: the handler has filled them."""
    listed = isinstance(form, (list, tuple))
    sections: Any = cast("list[Any]", form) if listed else _sections(form, where)
    found = compile_form(sections, templates=False)
    problems = list(found.problems)
    if schema is not None:
        problems.append("form= and schema= are both given; leave one of them out")
    if found.options is not None and options is not None:
        problems.append("options= and a decision section are both given; leave one of them out")
    if problems:
        lines = "".join(f"\n  - {clean_text(each, 500)}" for each in problems)
        raise InputError(f"{where} is invalid:{lines}", hint="Fix the form.", problems=problems)
    try:
        shown = render_form(found.form)
    except UnshowableError as error:
        raise InputError(f"{where}: {error}.", hint="Show less, or where to find it.") from error
    return schema_of(shown), primary_options(shown) or options or (SUBMIT,)


def _sections(form: Any, where: str) -> list[dict[str, Any]]:
    try:
        return sections_of(type_schema(form))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where}: cannot make a form of {clean_text(repr(form), 80)}: {error}.",
            hint="Give a list of sections, a type with fields, or a JSON Schema of an object.",
        ) from error


def form_instance(form: Any, values: Any, where: str) -> Any:
    """The filled-in values as an instance of the form's type."""
    try:
        required: Any = type_schema(form).get("required", ())
        given = {name: value for name, value in values.items() if value is not None or name in required}
        return form.model_validate(given) if is_pydantic(form) else msgspec.convert(given, form)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where}: the filled-in values are not a valid {form.__name__}: {clean_text(str(error), 500)}",
            hint="A form cannot ask for what only the type's own code checks: check that in the node.",
        ) from error


def type_schema(form: Any) -> dict[str, Any]:
    if isinstance(form, dict):
        return cast("dict[str, Any]", form)
    return inlined(form.model_json_schema() if is_pydantic(form) else msgspec.json.schema(form))


Options = Sequence[str | Mapping[str, Any] | Option]


class QuestionOptions(HoldTermsOptions, total=False):
    """How `ctx.ask` asks."""

    assignee: str | None
    timeout: Duration | None
    on_timeout: str | None
    type: str | None
    priority: str
    context: Mapping[str, Any] | None
    key: str | None


class Reply:
    """The answer to a question: `decision` (the option's id, or free text), `data`, `comment`, `by`."""

    __slots__ = ("by", "comment", "data", "decision")

    def __init__(self, resolution: Mapping[str, Any]) -> None:
        self.decision: Any = decision_of(resolution)
        self.data: Any = resolution.get("response_data")
        self.comment: str | None = resolution.get("comment")
        self.by: str | None = resolution.get("resolved_by")

    def __eq__(self, other: object) -> bool:
        return self.decision == (other.decision if isinstance(other, Reply) else other)

    def __hash__(self) -> int:
        return hash(self.decision)

    def __bool__(self) -> bool:
        # `if reply:` would be true for every answer, a rejection too.
        raise TypeError(
            f"whether a reply is true is not known: compare it with an option, such as "
            f"reply.decision == {self.decision!r}"
        )

    def __str__(self) -> str:
        """As it compares: `str(reply) == 'approve'`."""
        return str(self.decision)

    def __repr__(self) -> str:
        return f"Reply({self.decision!r}, by={self.by!r})"


def reply_of(sub: Sub, form: Any = None, *, bare: bool = False) -> Any:
    """`bare`: there were no options, so the filled-in values are the whole answer."""
    if sub.error is not None:
        lost = HoldCancelledError if sub.error.code == HoldCancelledError.code else HoldExpiredError
        raise lost(sub.error.message)
    reply = Reply(sub.value)
    if isinstance(form, type) and reply.data is not None:
        reply.data = form_instance(form, reply.data, "ctx.ask")
        return reply.data if bare else reply
    return reply


def _require_judge(attempt: Attempt, given: Any) -> None:
    """Raises InputError for a name that is no judge of this instance: that would show after the decision."""
    preparation = attempt.session.services.preparer.preparation
    if isinstance(given, str) and given and not preparation.has_judge(given):
        raise InputError(
            f"node {attempt.node.id!r}: shadow={clean_text(repr(given), 80)} is no judge here.",
            hint="Give it to the instance, Holdfast(..., judges={...}), or give the judge itself.",
        )


def question(
    attempt: Attempt,
    prompt: str,
    *,
    options: Options | None,
    schema: Mapping[str, Any] | None,
    form: Any,
    manner: Mapping[str, Any],
) -> HoldSpec:
    """Raises InputError that lists everything that is wrong with it."""
    node = attempt.node.id
    unknown = sorted(manner.keys() - QuestionOptions.__annotations__.keys())
    if unknown:
        raise TypeError(f"ctx.ask has no {', '.join(unknown)}")
    if manner.get("shadow") is not None:
        from holdfast.model.shadow_judges import shadow_name

        _require_judge(attempt, manner["shadow"])
        name = shadow_name(attempt.session.graph.name, node, manner["shadow"], once=True)
        manner = {**manner, "shadow": name}
    normal = options_of(options)
    if form is not None:
        schema, normal = form_schema(form, schema, normal, f"form of ctx.ask in node {node!r}")
    agreed = _terms_for(manner, normal, node)
    spec = HoldSpec(
        type=_text("type", manner.get("type"), node) or ("approval" if normal else "freeform"),
        prompt=_prompt(prompt, node),
        options=normal,
        assignee=_text("assignee", manner.get("assignee"), node),
        priority=_text("priority", manner.get("priority"), node) or "normal",
        on_timeout=agreed.on_timeout,
        schema=None if schema is None else _schema(attempt, schema),
        reminder=agreed.reminder or msgspec.UNSET,
        tags=agreed.tags or msgspec.UNSET,
        terms=msgspec.UNSET if agreed.terms == HoldTerms() else agreed.terms,
    )
    timeout = manner.get("timeout")
    return _with_filled(attempt, spec if timeout is None else with_timeout(spec, timeout))


def _with_filled(attempt: Attempt, spec: HoldSpec) -> HoldSpec:
    """Whom the program does not itself name counts as named by the starter of the run, as with a placeholder:
    the name may come from the run's input."""
    names = dict.fromkeys(_named(spec))
    handler = attempt.session.program_of(attempt.execution).handlers.get(attempt.node.id)
    if not names:
        return spec
    texts = () if handler is None else written_texts(handler.fn)
    written = {parse_assignee(text).value for text in texts if _may_name(text)}
    filled = tuple(name for name in names if parse_assignee(name).value not in written)
    if not filled:
        return spec
    return msgspec.structs.replace(
        spec, terms=msgspec.structs.replace(spec.terms or HoldTerms(), filled=filled)
    )


def _named(spec: HoldSpec) -> Iterator[str]:
    """Everybody whom a question may go to."""
    terms = spec.terms or HoldTerms()
    target = (spec.on_timeout or "").partition(":")[2] if "escalate" in (spec.on_timeout or "") else ""
    rungs = [rung.to for rung in terms.ladder]
    yield from (name for name in (spec.assignee, target, *rungs, *terms.approval.of) if name)
    yield from terms.approval.veto


def _may_name(text: str) -> bool:
    return bool(text) and assignee_fault(text) is None


def _prompt(text: str, node: str) -> str:
    """Raises ValueTooLargeError."""
    shown = show_invisible(redactor.redact(text))
    size = len(shown.encode())
    if size > MAX_SHOWN:
        raise ValueTooLargeError(
            f"the prompt of ctx.ask in node {node!r} has {size:,} bytes; {MAX_SHOWN:,} can be shown.",
            hint="Put long texts into a context section of a form, or say where to find them.",
            size=size,
            limit=MAX_SHOWN,
        )
    return shown


def _terms_for(manner: Mapping[str, Any], options: Sequence[Option] | None, node: str) -> ParsedTerms:
    faults: list[str] = []
    on_timeout = _text("on_timeout", manner.get("on_timeout"), node)
    found = read_terms(manner, on_timeout, lambda _rule, message, _fix: faults.append(message))
    faults += ask_faults(manner.get("assignee"), manner.get("priority"), found, options)
    if faults:
        lines = "".join(f"\n  - {clean_text(fault, 500)}" for fault in faults)
        raise InputError(f"ctx.ask in node {node!r} cannot ask that:{lines}", problems=faults)
    return found


def _text(what: str, value: str | None, node: str) -> str | None:
    return None if value is None else require_text(value, f"{what} of ctx.ask in node {node!r}")


def _schema(attempt: Attempt, schema: Mapping[str, Any]) -> dict[str, Any]:
    where = f"schema of ctx.ask in node {attempt.node.id!r}"
    if not isinstance(schema, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"{where}: {clean_text(repr(schema), 80)} is not a JSON Schema.", hint="Give a dict."
        )
    faults = schema_faults(schema)
    if faults:
        lines = "".join(f"\n  - {clean_text(fault, 500)}" for fault in faults)
        raise InputError(f"{where} is invalid:{lines}", hint="Fix the schema.", problems=faults)
    return storable(attempt, "schema", dict(schema))


def storable(attempt: Attempt, what: str, value: dict[str, Any]) -> dict[str, Any]:
    """Checked here, so that the handler gets the error."""
    where = f"{what} of ctx.ask in node {attempt.node.id!r}"
    frozen = freeze(value, attempt.session.program.adopt, where)
    pack(frozen, attempt.session.codec.registry, where)
    return frozen


def context_of(manner: Mapping[str, Any], node: str) -> dict[str, Any]:
    """Raises InputError for a value that is not a mapping."""
    given = manner.get("context")
    if given is not None and not isinstance(given, Mapping):
        raise InputError(
            f"context of ctx.ask in node {node!r} must be a mapping, not {type(given).__name__}.",
            hint='Write context={"amount": amount}.',
        )
    return dict(cast("Mapping[str, Any]", given or {}))


def options_of(options: Options | None) -> tuple[Option, ...] | None:
    """Without a list the answer is free; an empty list is a mistake. Raises AnswerInvalidError."""
    if options is None:
        return None
    if isinstance(options, str) or not options:
        raise AnswerInvalidError(
            f"options={clean_text(repr(options), 80)} of a question is not a list of choices.",
            hint="Leave it out for a free answer.",
        )
    found = [_option_of(option) for option in options]
    for option in found:
        for text in (option.id, option.label, option.variant):
            require_text(text, "an option of a question")
    ids = [o.id for o in found]
    if len(set(ids)) != len(ids) or "" in ids:
        raise AnswerInvalidError("the options of a question need ids that are not empty and differ")
    # Not templates, like the prompt of ctx.ask; but people read them.
    return tuple(
        msgspec.structs.replace(each, label=show_invisible(redactor.redact(each.label))) for each in found
    )


def _option_of(option: str | Mapping[str, Any] | Option) -> Option:
    try:
        return read_option(option)
    except ValueError as error:
        raise AnswerInvalidError(f"{error}.", hint='Write "approve", or {"id": ..., "label": ...}.') from None
