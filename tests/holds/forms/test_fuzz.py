"""Templates, forms and answers under whatever comes: our errors and no others, once, and within limits."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Flow, Holdfast
from holdfast.errors import InputError
from holdfast.holds.forms.file_types import agrees, media_type_for_name, sniff_media_type
from holdfast.holds.forms.validate_answer import validate_answer
from holdfast.model.expressions import mapping_resolver
from holdfast.model.forms.compile import compile_form
from holdfast.model.forms.field_kinds import KINDS
from holdfast.model.forms.json_schema import KEY, schema_of, sections_of
from holdfast.model.forms.render import render_form
from holdfast.model.hold_text import MAX_RENDERED, MAX_SHOWN, PlaceholderRenderer, UnshowableError
from holdfast.model.template import TemplateSyntaxError, as_text, compile_template, json_bytes
from tests.holds.actions.scene import DANA

NAMES = st.sampled_from(["a", "b", "c", "d_1", "é"])
BRACES = st.text(st.sampled_from("{}\\ab._0 é\n"), max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12)
    | st.sampled_from(["{{a}}", "{{b.c}}", "{{", "\\{{a}}", "\u202e{{a}}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
STATES = st.dictionaries(NAMES, JSON, max_size=5)


# ---------------------------------------------------------------------- templates


@pytest.mark.covers("HOLD-PROOF-07", "TP-5")
@given(BRACES | st.text(max_size=60), STATES)
def test_any_text_is_a_template_or_says_where_it_is_none(text: str, state: dict[str, Any]) -> None:
    try:
        template = compile_template(text)
    except TemplateSyntaxError as error:
        where = error.column
        assert 1 <= where <= len(text) + 1
        return
    found = template.render(mapping_resolver(state))
    assert set(found.missing) <= template.names
    assert not any(part.startswith("__") for path in template.names for part in path)
    json_bytes(found.value)


PARTS = st.lists(
    st.tuples(st.just("text"), st.text(st.characters(exclude_characters="{\\"), min_size=1, max_size=8))
    | st.tuples(st.just("name"), NAMES),
    max_size=8,
)


@pytest.mark.covers("HOLD-PROOF-07", "TP-1", "TP-2", "TP-4", "HOLD-SEC-07")
@given(PARTS, STATES)
def test_placeholders_are_replaced_once_and_never_read_again(
    parts: list[tuple[str, str]], state: dict[str, Any]
) -> None:
    source = "".join(text if kind == "text" else "{{ " + text + " }}" for kind, text in parts)
    found = compile_template(source).render(mapping_resolver(state)).value
    if len(parts) == 1 and parts[0][0] == "name":
        assert found == state.get(parts[0][1], "")
    else:
        assert found == "".join(
            text if kind == "text" else as_text(state.get(text, "")) for kind, text in parts
        )


@pytest.mark.covers("HOLD-PROOF-07", "HOLD-SEC-07")
@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["{{big}}", "{{small}}", "{{tree}}", "text", "{{big}}{{small}}"]), max_size=60),
    st.integers(1, 3 * MAX_SHOWN),
    st.booleans(),
)
def test_nothing_that_is_shown_exceeds_its_limits(texts: list[str], size: int, telling: bool) -> None:
    state = {"big": "x\u202e" * (size // 4), "small": "y" * 1000, "tree": [{"k": "z" * 500}] * 20}
    showing = PlaceholderRenderer(mapping_resolver(state), telling=telling)
    total = 0
    try:
        for index in range(0, len(texts), 3):
            found = showing.value(texts[index : index + 3], "field")
            content = sum(
                len(each.encode()) if isinstance(each, str) else len(json_bytes(each)) for each in found
            )
            assert content <= MAX_SHOWN
            assert "\u202e" not in json_bytes(found).decode()
            total += content
    except UnshowableError as error:
        where = str(error)
        assert where.startswith("field[")
    assert total <= MAX_RENDERED


# ---------------------------------------------------------------------- forms

TEXTS = st.text(max_size=8) | st.sampled_from(["{{a}}", "Pay {{a}}", "{{b.c}}", "\u200b"])
OPTIONS = st.lists(NAMES, min_size=1, max_size=3, unique=True) | st.lists(
    st.fixed_dictionaries({"id": NAMES, "label": st.text(min_size=1, max_size=8).filter(str.strip)}),
    min_size=1,
    max_size=3,
    unique_by=lambda each: each["id"],
)
PLAIN_KINDS = sorted(KINDS - {"select", "radio", "multiselect", "table"})
INPUTS = st.fixed_dictionaries(
    {"type": st.just("input"), "field": st.sampled_from(["f1", "f2", "f3", "f4"]),
     "kind": st.sampled_from(PLAIN_KINDS)},
    optional={
        "label": TEXTS, "help": TEXTS, "default": JSON | TEXTS, "required": st.booleans(),
        "extras": st.dictionaries(NAMES, JSON, max_size=2), "max_length": st.integers(0, 9),
    },
)  # fmt: skip
CHOICES = st.fixed_dictionaries(
    {"type": st.just("input"), "field": st.just("choice"), "options": OPTIONS,
     "kind": st.sampled_from(["select", "radio", "multiselect"])}
)  # fmt: skip
CONTEXTS = st.fixed_dictionaries(
    {"type": st.just("context")}, optional={"title": TEXTS, "content": JSON | TEXTS}
)
DECISIONS = st.fixed_dictionaries({"type": st.just("decision"), "options": OPTIONS})
FORMS = st.tuples(
    st.lists(INPUTS | CONTEXTS, max_size=5), st.lists(CHOICES, max_size=1), st.lists(DECISIONS, max_size=1)
).map(lambda parts: [section for part in parts for section in part])


@pytest.mark.covers("HOLD-PROOF-07", "HOLD-FORM-04", "FM-2", "FM-4", "TP-7")
@settings(max_examples=150)
@given(FORMS, STATES)
def test_form_survives_compiling_rendering_and_its_schema(sections: list[Any], state: dict[str, Any]) -> None:
    compiled = compile_form(sections)
    if compiled.problems:
        assert all(each.startswith("sections[") for each in compiled.problems)
        return
    again = compile_form(compiled.form["sections"])
    assert (again.form, again.problems) == (compiled.form, ())
    form = render_form(compiled.form, mapping_resolver(state))
    schema = msgspec.json.decode(msgspec.json.encode(schema_of(form)))
    assert schema[KEY] == form
    assert [each["type"] for each in form["sections"]] == [each["type"] for each in sections]
    ids = [[option["id"] for option in each["options"]] for each in form["sections"] if "options" in each]
    assert ids == [
        [each if isinstance(each, str) else each["id"] for each in section["options"]]
        for section in sections
        if "options" in section
    ]
    fields = list(schema["properties"])
    plain = {key: value for key, value in schema.items() if key != KEY}
    back = compile_form(sections_of(plain), templates=False)
    assert [each["field"] for each in back.form["sections"]] == fields
    literal = (
        render_form(compile_form(form["sections"], templates=False).form)
        if not form.get("warnings")
        else None
    )
    assert literal is None or [each.get("content") for each in literal["sections"]] == [
        each.get("content") for each in form["sections"]
    ]


@pytest.mark.covers("HOLD-PROOF-07", "HOLD-FORM-01")
@settings(max_examples=150)
@given(FORMS, st.dictionaries(st.sampled_from(["f1", "f2", "f3", "choice", "other"]), JSON, max_size=4))
def test_what_was_filled_in_fits_when_it_is_filled_in_again(
    sections: list[Any], given_: dict[str, Any]
) -> None:
    compiled = compile_form(sections)
    if compiled.problems:
        return
    form = render_form(compiled.form, mapping_resolver({}))
    decision = compiled.options[0].id if compiled.options else "submit"
    first = validate_answer(form, {}, decision, given_)
    if first.errors:
        return
    second = validate_answer(form, {}, decision, first.values)
    assert (second.errors, second.values) == ((), first.values)


# ---------------------------------------------------------------------- answers

FORM = [
    {"type": "input", "field": "amount", "kind": "integer", "min": 1, "max": 100, "required": True},
    {"type": "input", "field": "size", "kind": "select", "options": ["s", "l"], "required": True},
    {"type": "input", "field": "note", "max_length": 5},
    {"type": "decision", "options": ["approve", "reject"]},
]
NEAR = st.fixed_dictionaries(
    {},
    optional={
        "amount": st.integers(-2, 105) | st.sampled_from([5.0, 5.5, "5", True, None]),
        "size": st.sampled_from(["s", "l", "S", "", None, ["s"]]),
        "note": st.text(max_size=7) | st.none(),
        "decision": st.sampled_from(["approve", "reject"]),
        "more": st.none(),
    },
)
SURE = st.fixed_dictionaries({"amount": st.integers(1, 100), "size": st.sampled_from(["s", "l"])})
BODIES = st.fixed_dictionaries(
    {"decision": st.sampled_from(["approve", "reject", "Approve", "approve ", "", None, 1, ["approve"]])},
    optional={"response_data": NEAR | SURE | JSON, "comment": st.text(max_size=5) | JSON, "by": JSON},
) | st.dictionaries(NAMES, JSON, max_size=2)  # fmt: skip


def fits(body: dict[str, Any]) -> bool:
    """Said once more, in another way than the code says it."""
    data, decision, comment = body.get("response_data"), body.get("decision"), body.get("comment")
    if body.keys() - {"decision", "response_data", "comment"} or decision not in ("approve", "reject"):
        return False
    if not (comment is None or isinstance(comment, str)) or not isinstance(data, dict):
        return False
    amount, size, note = data.get("amount"), data.get("size"), data.get("note")
    whole = type(amount) in (int, float) and math.floor(amount) == amount
    noted = note is None or (isinstance(note, str) and (len(note) <= 5 or not note.strip()))
    known = not data.keys() - {"amount", "size", "note", "decision"}
    return known and whole and 1 <= amount <= 100 and size in ("s", "l") and noted and (
        data.get("decision", decision) == decision
    )  # fmt: skip


@pytest.mark.covers("HOLD-PROOF-07", "HOLD-BAD-03", "HOLD-BAD-01", "RS-4")
def test_answer_decides_a_hold_exactly_when_it_fits() -> None:
    flow = Flow("asking", effect="pure")
    flow.hold("gate", prompt="Pay?", sections=FORM, assignee="user:dana@acme")

    async def tries(hf: Holdfast, body: dict[str, Any]) -> None:
        holds = await hf.holds()
        hold = (await flow.run({}, on=hf)).holds[0].id
        try:
            await holds.resolve(DANA, hold, body)
        except InputError:
            assert not fits(body)
            assert (await holds.get(DANA, hold)).status == "pending"
        else:
            assert fits(body)
            assert (await holds.get(DANA, hold)).status == "resolved"

    with asyncio.Runner() as runner:
        hf = Holdfast("memory:")

        @settings(max_examples=150)
        @given(BODIES)
        def check(body: dict[str, Any]) -> None:
            runner.run(tries(hf, body))

        check()
        runner.run(hf.close())


# ---------------------------------------------------------------------- files


@pytest.mark.covers("HOLD-SEC-14", "HOLD-PROOF-07")
@given(st.binary(max_size=60) | st.text(max_size=20).map(str.encode), st.text(max_size=12))
def test_content_has_one_type_that_agrees_with_itself(content: bytes, name: str) -> None:
    found = sniff_media_type(content)
    assert agrees(found, found)
    said = media_type_for_name(name)
    assert said is None or "/" in said
    assert not agrees("image/png", found) or content.startswith(b"\x89PNG")
    assert not agrees("application/pdf", found) or content.startswith(b"%PDF-")
