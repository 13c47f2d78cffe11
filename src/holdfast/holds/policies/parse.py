"""Policies in files: TOML, JSON, or YAML if PyYAML is installed. All problems are reported at once.

name = "refunds"

[[rules]]
name = "small"
when = "amount < 50"
decide = "approve"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from holdfast.errors import PolicyInvalidError, SettingsError
from holdfast.holds.policies.judge import Judges
from holdfast.holds.policies.policy import Policy
from holdfast.holds.policies.rules import Rule
from holdfast.holds.policies.validate import PolicyFault, faults_in, invalid
from holdfast.model.hold_terms import lacks_need
from holdfast.types.terms import ApprovalTerms, Rung

FORMS: Final = {".toml": "toml", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}
MAX_SIZE: Final = 1024 * 1024
_OF_POLICY: Final = frozenset({"name", "rules"})
_OF_RULE: Final = frozenset(Rule.__struct_fields__)


def read_policy(path: str | Path, judges: Judges | None = None) -> Policy:
    """Raises PolicyInvalidError for an invalid policy, SettingsError if the file cannot be read.

    `judges`: those that its rules name; without them, people decide the holds of rules with a judge."""
    raw, form = _content(Path(path))
    return read_text(raw, form, default_name=Path(path).stem, judges=judges)


def read_plain(path: str | Path) -> dict[str, Any]:
    """A policy file as an object, after validation. Raises as `read_policy` does."""
    policy = read_policy(path)
    raw, form = _content(Path(path))
    plain = _PARSERS[form](_decoded(raw, policy.name), policy.name)
    return {"name": policy.name, **({"rules": plain} if isinstance(plain, list) else plain)}


def _content(place: Path) -> tuple[bytes, str]:
    form = FORMS.get(place.suffix.lower())
    if form is None:
        raise SettingsError(
            f"{place} is not a policy file.", hint=f"Use one of the extensions {', '.join(FORMS)}."
        )
    try:
        return place.read_bytes(), form
    except OSError as error:
        raise SettingsError(
            f"the policy file {place} cannot be read: {error.strerror}.",
            hint="Name a file in TOML, JSON or YAML (in HOLDFAST_POLICIES, separated by `:`).",
        ) from error


def read_text(raw: bytes, form: str, *, default_name: str = "policy", judges: Judges | None = None) -> Policy:
    if len(raw) > MAX_SIZE:
        raise PolicyInvalidError(
            f"policy {default_name!r} has {len(raw):,} bytes; the maximum is {MAX_SIZE:,}."
        )
    text = _decoded(raw, default_name)
    plain = _PARSERS[form](text, default_name)
    return policy_of(plain, default_name, judges=judges, lines=lines_of(text, form))


def policy_of(
    plain: Any,
    default_name: str = "policy",
    *,
    judges: Judges | None = None,
    lines: RuleLines | None = None,
    written: bool = True,
) -> Policy:
    """From an object, or from a list of rules. `written`: by the caller, and not by an older release."""
    reader = _Reader(lines or RuleLines(), written=written)
    whole: Mapping[str, Any] = {}
    if isinstance(plain, list):
        whole = {"rules": cast("Any", plain)}
    elif isinstance(plain, Mapping):
        whole = cast("Mapping[str, Any]", plain)
    else:
        reader.wrong("", "", "it is neither an object nor a list of rules")
    reader.require_known("", whole, _OF_POLICY)
    name = whole.get("name", default_name)
    found = reader.rules(whole.get("rules"))
    named = name if isinstance(name, str) else ""
    known = faults_in(named, found, judges, written=written)
    faults = reader.faults + [reader.placed(fault) for fault in known]
    if faults:
        raise invalid(named or default_name, sorted(faults, key=lambda fault: fault.line or 0))
    return Policy(named, *found, judges=judges, written=written)


class _Reader:
    def __init__(self, lines: RuleLines, *, written: bool) -> None:
        self.lines = lines
        self.written = written
        self.faults: list[PolicyFault] = []
        self.kept: list[int] = []  # the places in the file of the rules that could be read

    def wrong(self, rule: str, field: str, problem: str, line: int | None = None) -> None:
        self.faults.append(PolicyFault(rule, field, problem, line))

    def placed(self, fault: PolicyFault) -> PolicyFault:
        place = self.kept[fault.place] if fault.place >= 0 else -1
        return msgspec.structs.replace(fault, line=self.lines.of(place, fault.field))

    def require_known(self, rule: str, given: Mapping[str, Any], known: frozenset[str], at: int = -1) -> None:
        for field in given:
            if field not in known:
                names = ", ".join(sorted(known))
                self.wrong(rule, str(field), f"unknown field; known: {names}", self.lines.of(at, field))

    def rules(self, given: Any) -> list[Rule]:
        if not isinstance(given, list) or not given:
            self.wrong("", "rules", "it has no list of rules")
            return []
        found = [self.rule(index, each) for index, each in enumerate(cast("list[Any]", given))]
        self.kept = [index for index, rule in enumerate(found) if rule is not None]
        return [rule for rule in found if rule is not None]

    def rule(self, index: int, given: Any) -> Rule | None:
        label, line = str(index + 1), self.lines.of(index, "")
        if not isinstance(given, Mapping):
            self.wrong(label, "", "it is not an object", line)
            return None
        plain = dict(cast("Mapping[str, Any]", given))
        named = plain.get("name")
        label = named if isinstance(named, str) and named else label
        self.require_known(label, plain, _OF_RULE, index)
        self._require_known_inside(label, plain, index)
        plain.setdefault("name", "")
        kept = {field: value for field, value in plain.items() if field in _OF_RULE}
        return self._converted(label, index, kept)

    def _require_known_inside(self, label: str, plain: Mapping[str, Any], index: int) -> None:
        """A misspelled field of a quorum must not fall back to one approver."""
        rungs = plain.get("ladder")
        listed = cast("list[Any]", rungs) if isinstance(rungs, list) else []
        inner = [
            ("approval", plain.get("approval"), ApprovalTerms),
            *(("ladder", each, Rung) for each in listed),
        ]
        for field, given, kind in inner:
            known = kind.__struct_fields__
            names = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else dict[str, Any]()
            for name in sorted(str(each) for each in names if each not in known):
                problem = f"unknown field {name!r}; known: {', '.join(known)}"
                self.wrong(label, field, problem, self.lines.of(index, field))
            if self.written and kind is ApprovalTerms and isinstance(given, Mapping) and lacks_need(names):
                problem = "a quorum says how many people it takes: add need = 2"
                self.wrong(label, field, problem, self.lines.of(index, field))

    def _converted(self, label: str, index: int, plain: dict[str, Any]) -> Rule | None:
        """Field by field, so that one bad field does not hide the next."""
        values: dict[str, Any] = {}
        for field, value in plain.items():
            try:
                values[field] = msgspec.convert(value, _TYPES[field])
            except msgspec.ValidationError as error:
                self.wrong(label, field, str(error), self.lines.of(index, field))
        if "name" not in values:
            return None
        return Rule(**values)


def _types() -> dict[str, Any]:
    """The types of fields in a file: a field that may be a function in code is text there."""
    found = {field.name: field.type for field in msgspec.structs.fields(Rule)}
    plain = str | int | float
    return {**found, "when": str | None, "timeout": plain, "reminder": plain, "judge_timeout": plain}


_TYPES: Final = _types()


def _decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise _unreadable(name, f"it is not UTF-8: {error}") from None


def _toml(text: str, name: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(name, f"it is not TOML: {error}") from None


def _json(text: str, name: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise _unreadable(name, f"it is not JSON: {error}") from None


def _yaml(text: str, name: str) -> Any:
    try:
        yaml: Any = import_module("yaml")
    except ImportError:
        raise SettingsError(
            f"policy {name!r} is YAML, but PyYAML is not installed.",
            hint="Install PyYAML, or write it as TOML or JSON.",
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _unreadable(name, f"it is not YAML: {error}") from None


def _unreadable(name: str, why: str) -> PolicyInvalidError:
    return PolicyInvalidError(f"policy {name!r} cannot be read: {why}.", problems=[PolicyFault("", "", why)])


_PARSERS: Final = {"toml": _toml, "json": _json, "yaml": _yaml}


_TOML_RULE = re.compile(r"\s*\[\[\s*rules\s*\]\]")
_TOML_TABLE = re.compile(r"\s*\[")
_TOML_FIELD = re.compile(r"\s*([A-Za-z0-9_-]+)\s*[.=]")
_TOML_SUBTABLE = re.compile(r"\s*\[+\s*rules\s*\.\s*([A-Za-z0-9_-]+)")


class RuleLines:
    """(number of the rule, field) -> line; the rule's own first line under the field ''."""

    def __init__(self, found: dict[tuple[int, str], int] | None = None) -> None:
        self._found = found or {}

    def of(self, rule: int, field: str) -> int | None:
        """The line of the field; if it is not written, that of the rule."""
        head = re.split(r"[.\[]", field, maxsplit=1)[0]
        return self._found.get((rule, head), self._found.get((rule, "")))


def lines_of(text: str, form: str) -> RuleLines:
    """Empty for JSON."""
    if form == "toml":
        return RuleLines(_toml_lines(text))
    return RuleLines(_yaml_lines(text)) if form == "yaml" else RuleLines()


def _toml_lines(text: str) -> dict[tuple[int, str], int]:
    found: dict[tuple[int, str], int] = {}
    rule = -1
    inside = True
    for number, line in enumerate(text.splitlines(), 1):
        if _TOML_RULE.match(line):
            rule += 1
            inside = True
            found[rule, ""] = number
        elif part := _TOML_SUBTABLE.match(line):
            inside = False
            found.setdefault((rule, part[1]), number)
        elif _TOML_TABLE.match(line):
            inside = False
        elif inside and (field := _TOML_FIELD.match(line)):
            found.setdefault((rule, field[1]), number)
    return found


def _yaml_lines(text: str) -> dict[tuple[int, str], int]:
    yaml: Any = import_module("yaml")
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    found: dict[tuple[int, str], int] = {}
    rules: Any = root
    for key, value in _entries(root):
        found[-1, str(key.value)] = key.start_mark.line + 1
        rules = value if key.value == "rules" else rules
    for index, rule in enumerate(rules.value if getattr(rules, "id", "") == "sequence" else ()):
        found[index, ""] = rule.start_mark.line + 1
        for key, _ in _entries(rule):
            found[index, str(key.value)] = key.start_mark.line + 1
    return found


def _entries(node: Any) -> list[tuple[Any, Any]]:
    return node.value if getattr(node, "id", "") == "mapping" else []
