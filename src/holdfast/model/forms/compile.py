"""Compiles a form as its author writes it, or reports every problem with its path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.checks.regex_safety import pattern_problem
from holdfast.model.expressions import ExprSyntaxError, compile_expr
from holdfast.model.forms import field_kinds
from holdfast.model.template import TemplateSyntaxError, compile_template
from holdfast.types.hold import Option
from holdfast.types.text import clean_text

SUBMIT: Final = Option("submit", "Submit", "primary")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ALIASES: Final = {"maxLength": "max_length", "minLength": "min_length"}
_NUMERIC: Final = ("min_length", "max_length", "max_size")
_OPTION: Final = ("id", "label", "variant")
_FLAGS: Final = ("default", "requires_comment")
_CODE = re.compile(r"[A-Z]{3}")

Section = dict[str, Any]


class CompiledForm(msgspec.Struct, frozen=True):
    """`form`: the normal shape, JSON only. `options`: the choices of the first decision section."""

    form: dict[str, Any]
    options: tuple[Option, ...] | None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def compile_form(sections: Any, *, allow_extra: bool = False, templates: bool = True) -> CompiledForm:
    """`templates`: whether texts have placeholders that are filled when the hold opens."""
    if not isinstance(sections, (list, tuple)):
        return CompiledForm({}, None, (f"sections: {_short(sections)} is not a list of sections",))
    given = list(cast("list[Any]", sections))
    try:
        size = len(msgspec.json.encode(given))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return CompiledForm({}, None, (f"sections: is not JSON: {error}",))
    if size > field_kinds.MAX_FORM or len(given) > field_kinds.MAX_SECTIONS:
        limits = f"{field_kinds.MAX_FORM:,} bytes and {field_kinds.MAX_SECTIONS} sections"
        return CompiledForm(
            {}, None, (f"sections: {size:,} bytes, {len(given)} sections; a form has at most {limits}",)
        )
    work = _Compiler(templates, chosen=_chosen(given))
    found = [work.section(each, f"sections[{index}]") for index, each in enumerate(given)]
    form: dict[str, Any] = {"sections": found}
    if allow_extra:
        form["allow_extra"] = True
    if not templates:
        form["literal"] = True
    return CompiledForm(form, primary_options(form), tuple(work.problems), tuple(work.warnings))


def primary(form: Mapping[str, Any]) -> Section | None:
    return next((each for each in form["sections"] if each.get("type") == "decision"), None)


def primary_options(form: Mapping[str, Any]) -> tuple[Option, ...] | None:
    section, known = primary(form), Option.__struct_fields__
    if section is None:
        return None
    given = [{name: value for name, value in each.items() if name in known} for each in section["options"]]
    return tuple(Option(**each) for each in given)


class _Compiler:
    def __init__(self, templates: bool, chosen: str = "decision") -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.fields: dict[str, str] = {}
        # What the person chose is known before any field is looked at.
        self.readable = {"context", "decision", chosen}
        self._templates = templates
        self._decisions = 0

    def section(self, given: Any, where: str) -> Section:
        if not isinstance(given, Mapping):
            self._wrong(where, f"{_short(given)} is not a section; write an object")
            return {}
        named = cast("Mapping[str, Any]", given)
        section = {_ALIASES.get(str(name), str(name)): value for name, value in named.items()}
        kind = section.get("type")
        if kind == "context":
            self._context(section, where)
        elif kind == "input":
            self._input(section, where)
        elif kind == "decision":
            self._decision(section, where)
        else:
            self._wrong(f"{where}.type", f"{_short(kind)} is not one of {', '.join(field_kinds.SECTIONS)}")
            # What others may refer to is known all the same.
            if isinstance(field := section.get("field"), str):
                self.readable.add(field)
        return section

    def _context(self, section: Section, where: str) -> None:
        self._known(section, field_kinds.CONTEXT, where)
        self._texts(section, ("title", "help"), where)
        self._template(section.get("content"), f"{where}.content")
        self._condition(section, "visible_if", where)

    def _input(self, section: Section, where: str) -> None:
        self._known(section, field_kinds.INPUT, where)
        self._kind(section, where)
        self._texts(section, ("title", "help", "label"), where)
        for name in ("default", "original", "extras"):
            self._template(section.get(name), f"{where}.{name}")
        for name in field_kinds.CONDITIONS:
            self._condition(section, name, where)
        for name in ("required", "readonly"):
            if not isinstance(section.get(name, False), bool):
                self._wrong(f"{where}.{name}", f"{_short(section[name])} is neither true nor false")
        self._limits(section, where)
        self._content(section, where)
        self._field(section, where)

    def _decision(self, section: Section, where: str) -> None:
        self._known(section, field_kinds.DECISION, where)
        self._texts(section, ("title", "help", "label"), where)
        self._decisions += 1
        if self._decisions == 1 and "visible_if" in section:
            self._wrong(f"{where}.visible_if", "the first decision is always asked")
        self._condition(section, "visible_if", where)
        section.setdefault("field", "decision")
        first = self._decisions == 1
        section["options"] = self._options(section.get("options"), f"{where}.options", flags=first)
        self._field(section, where)

    def _kind(self, section: Section, where: str) -> None:
        kind = section.setdefault("kind", "text")
        # A list or object is not hashable, so it must not be looked up.
        if not isinstance(kind, str) or kind not in field_kinds.KINDS:
            self.warnings.append(f"{where}.kind: {_short(kind)} is not a kind of field; it is asked as text")
            section["kind"] = "text"
            section["asked_as"] = str(kind)[:100]

    def _field(self, section: Section, where: str) -> None:
        field = section.get("field")
        if field is None:
            self._wrong(f"{where}.field", "it has no field; name what gets the answer")
        elif not isinstance(field, str) or _NAME.fullmatch(field) is None or field.startswith("__"):
            self._wrong(f"{where}.field", f"{_short(field)} is not a plain name")
        elif field in self.fields:
            self._wrong(f"{where}.field", f"{field!r} is already used by {self.fields[field]}")
        elif field == "context" or (field == "decision" and section["type"] == "input"):
            self._wrong(f"{where}.field", f"{field!r} is reserved: in conditions it refers to the hold")
        else:
            self.fields[field] = where
            self.readable.add(field)

    def _options(self, given: Any, where: str, *, flags: bool = False) -> list[dict[str, Any]]:
        """`flags`: they are the options of the hold itself, which may have the flags of `Option`."""
        if not isinstance(given, (list, tuple)) or not given:
            self._wrong(where, "it has no options; give at least one")
            return []
        items = cast("list[Any]", given)
        found = [self._option(each, f"{where}[{index}]", flags) for index, each in enumerate(items)]
        ids = [each["id"] for each in found]
        for index, each in enumerate(ids):
            if each in ids[:index]:
                self._wrong(f"{where}[{index}].id", f"{each!r} is used twice")
        return found

    def _option(self, given: Any, where: str, flags: bool) -> dict[str, Any]:
        parts: Any = {"id": given} if isinstance(given, str) else given
        if not isinstance(parts, Mapping):
            self._wrong(where, f"{_short(given)} is not an option")
            return {"id": where, "label": "", "variant": "secondary"}
        option = cast("Mapping[str, Any]", parts)
        id_, label = option.get("id"), option.get("label", option.get("id"))
        variant = option.get("variant", "secondary")
        if not all(isinstance(each, str) and each.strip() for each in (id_, label, variant)):
            self._wrong(where, "id, label and variant of an option must be non-empty text")
            return {"id": where, "label": "", "variant": "secondary"}
        if self._templates and "{{" in str(id_):
            self._wrong(f"{where}.id", "an id must not have placeholders: edges and answers refer to it")
        self._template(label, f"{where}.label")
        found = {"id": str(id_), "label": str(label), "variant": str(variant)}
        return {**found, **self._flags(option, where, flags)}

    def _flags(self, option: Mapping[str, Any], where: str, flags: bool) -> dict[str, bool]:
        known = (*_OPTION, *(_FLAGS if flags else ()))
        for name in option:
            if name not in known:
                only = "; only an option of the first decision has it" if name in _FLAGS else ""
                wrong = f"{clean_text(name, 60)!r} is unknown{only}; an option has {', '.join(known)}"
                self._wrong(where, wrong)
            elif name in _FLAGS and not isinstance(option[name], bool):
                self._wrong(f"{where}.{name}", f"{_short(option[name])} is neither true nor false")
        return {name: True for name in known if name in _FLAGS and option.get(name) is True}

    def _content(self, section: Section, where: str) -> None:
        kind = section["kind"]
        if kind in field_kinds.CHOICES:
            section["options"] = self._options(section.get("options"), f"{where}.options")
        elif "options" in section:
            self._wrong(f"{where}.options", f"a field of kind {kind} has no options")
        if "columns" in section or kind == "table":
            self._columns(section, where)
        for fault in schema_faults(section["schema"]) if "schema" in section else ():
            self._wrong(where, fault)
        code = section.get("currency")
        if code is not None and (not isinstance(code, str) or _CODE.fullmatch(code) is None):
            self._wrong(f"{where}.currency", f"{_short(code)} is not an ISO code such as EUR")
        for name in ("locale", "pattern"):
            if not isinstance(section.get(name, ""), str):
                self._wrong(f"{where}.{name}", f"{_short(section[name])} is not text")
        accept = section.get("accept", [])
        if not isinstance(accept, list) or not all(
            isinstance(each, str) for each in cast("list[Any]", accept)
        ):
            self._wrong(f"{where}.accept", "give a list of media types such as image/png or image/*")
        self._pattern(section.get("pattern"), f"{where}.pattern")

    def _columns(self, section: Section, where: str) -> None:
        columns = section.get("columns")
        if section["kind"] != "table" or not isinstance(columns, list) or not columns:
            self._wrong(f"{where}.columns", "a table, and only a table, has a list of columns")
            return
        inner = _Compiler(self._templates)
        found: list[Section] = []
        for index, each in enumerate(cast("list[Any]", columns)):
            parts: Any = cast("Mapping[str, Any]", each) if isinstance(each, Mapping) else {"field": each}
            here = f"{where}.columns[{index}]"
            column = inner.section({"type": "input", **parts}, here)
            if column.get("kind") == "table" or any(name in column for name in field_kinds.CONDITIONS):
                self._wrong(here, "a column must not be a table or conditional")
            found.append(column)
        section["columns"] = found
        self.problems += inner.problems
        self.warnings += inner.warnings

    def _limits(self, section: Section, where: str) -> None:
        for name in _NUMERIC:
            if name in section and (type(section[name]) is not int or section[name] < 0):
                self._wrong(f"{where}.{name}", f"{_short(section[name])} is not a count")
        for name in ("min", "max", "step"):
            limit = section.get(name)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, float, str))):
                self._wrong(f"{where}.{name}", f"{_short(limit)} is not a limit")
        step = section.get("step")
        if step is not None and (not isinstance(step, (int, float)) or not step > 0):
            self._wrong(f"{where}.step", f"{_short(step)} is not a number above 0")
        for low, high in (("min", "max"), ("min_length", "max_length")):
            least, most = section.get(low), section.get(high)
            if isinstance(least, (int, float)) and isinstance(most, (int, float)) and least > most:
                self._wrong(f"{where}.{high}", f"no value is at least {least} and at most {most}")

    def _pattern(self, pattern: Any, where: str) -> None:
        if not isinstance(pattern, str):
            return
        problem = pattern_problem(pattern)
        if problem is not None:
            self._wrong(where, problem)

    def _condition(self, section: Section, name: str, where: str) -> None:
        text = section.get(name)
        if text is None:
            return
        if not isinstance(text, str):
            self._wrong(f"{where}.{name}", f"{_short(text)} is not a condition")
            return
        try:
            roots = {path[0] for path in compile_expr(text).names}
        except ExprSyntaxError as error:
            self._wrong(f"{where}.{name}", str(error))
            return
        for root in sorted(roots - self.readable):
            self._wrong(f"{where}.{name}", f"reads {root!r}, which is not a field above it")

    def _texts(self, section: Section, names: Iterable[str], where: str) -> None:
        for name in names:
            text = section.get(name)
            if text is not None and not isinstance(text, str):
                self._wrong(f"{where}.{name}", f"{_short(text)} is not text")
            self._template(text, f"{where}.{name}")

    def _template(self, value: Any, where: str) -> None:
        if not self._templates:
            return
        if isinstance(value, str) and "{{" in value:
            try:
                compile_template(value)
            except TemplateSyntaxError as error:
                self._wrong(where, str(error))
        elif isinstance(value, Mapping):
            for name, inner in cast("Mapping[str, Any]", value).items():
                self._template(inner, f"{where}.{name}")
        elif isinstance(value, (list, tuple)):
            for index, inner in enumerate(cast("list[Any]", value)):
                self._template(inner, f"{where}[{index}]")

    def _known(self, section: Section, names: frozenset[str], where: str) -> None:
        for name in section.keys() - names - {"asked_as"}:
            self._wrong(f"{where}.{name}", f"{name!r} is not part of a section of type {section['type']}")

    def _wrong(self, where: str, problem: str) -> None:
        self.problems.append(f"{where}: {problem}")


def _chosen(sections: list[Any]) -> str:
    """The field of the first decision section."""
    for each in sections:
        if isinstance(each, Mapping) and each.get("type") == "decision":  # pyright: ignore[reportUnknownMemberType]
            return str(cast("Mapping[str, Any]", each).get("field", "decision"))
    return "decision"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
