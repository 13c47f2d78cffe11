"""Answers to forms and what the server says about them, for the validator of the web app.

`python -m tests.holds.forms.corpus` writes the file that `web/tests/formCheck.test.ts` reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from holdfast.holds.forms.file_references import MAX_FILE
from holdfast.holds.forms.validate_answer import validate_answer
from holdfast.model.forms.compile import compile_form
from holdfast.model.forms.render import render_form
from holdfast.model.forms.visible_text import show_invisible

FILE = Path(__file__).parents[3] / "web" / "tests" / "formCorpus.json"
CHOICE = {"type": "decision", "options": ["approve", "reject"]}
OPTIONS = ["a", {"id": "b", "label": "B"}, "it's"]
DIGEST = "0123456789abcdef" * 4
PICTURE = {"sha256": DIGEST, "size": 10, "name": "a.png", "media_type": "image/png"}
LARGE = 2**53 + 1

# Days on which clocks change in Berlin, New York, Lord Howe Island (by half an hour).
CLOCKS = (
    "2026-03-29T01:59:59+01:00", "2026-03-29T03:00:00+02:00", "2026-10-25T02:30:00+02:00",
    "2026-10-25T02:30:00+01:00", "2026-03-08T01:59:59-05:00", "2026-03-08T03:00:00-04:00",
    "2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-04-05T01:59:00+11:00",
    "2026-04-05T01:30:00+10:30",
)  # fmt: skip

# kind or declaration: values, each alone in a form.
VALUES: list[tuple[dict[str, Any], list[Any]]] = [
    ({"kind": "text"}, ["x", "", "  ", None, 5, True, [], ["x"], {}, "ä\U0001f600", "a" * 65_537]),
    ({"kind": "text", "required": True}, ["x", "", "\u2003\x1c", "\ufeff", None, [], 0, False]),
    ({"min_length": 2, "max_length": 4}, ["a", "ab", "abcd", "abcde", "\U0001f600", "\U0001f600\U0001f600"]),
    ({"pattern": "^[A-Z]{2}-\\d+$"}, ["AB-1", "AB-1\n", "ab-1", "AB-\u0663", "xAB-1", "A" * 1_001]),
    ({"pattern": "(?P<q>['\"])\\w+(?P=q)"}, ["'a'", "\"a'", "'\u00e9'", "'a b'"]),
    ({"pattern": "a.c|\\bend\\b"}, ["a\rc", "a\nc", "the end.", "bending", "\u00e9end"]),
    ({"pattern": "^[^\\s\\d]+\\Z"}, ["abc", "ab\u00a0c", "ab1", "abc\n"]),
    ({"kind": "textarea", "max_length": 3}, ["a\nb", "a\nbc"]),
    ({"kind": "markdown"}, ["# x", 1]),
    ({"kind": "code"}, ["print()", {"a": 1}]),
    ({"kind": "diff"}, ["-a\n+b", None]),
    ({"kind": "hologram"}, ["x", 3]),
    (
        {"kind": "phone"},
        ["+49 30 1234", " 030/1234 ", "12", "1" * 32, "call me", "+", 123, "+49\u00a030 12", "\u0661234"],
    ),
    ({"kind": "user"}, ["dana", "group:x", "a b", " a ", "x" * 201, "\u00e9", 7]),
    ({"kind": "secret-reference"}, ["vault/pay:key_1", "-x", "a b", "x" * 201, "\u00e9", None, 5]),
    (
        {"kind": "email"},
        [
            "a@b.de", " a@b ", "a@", "@b", "a@b@c", "a b@c", "a@-b", "a@b-", '"a"@b', "a@b.\u00e9",
            "\u00e9@b",
            "x" * 65 + "@b", 5,
        ],
    ),
    (
        {"kind": "url"},
        [
            "https://a.de/x?y#z", "HTTP://A", "ftp://a", "https://", "https:///x", "javascript:alert(1)",
            "https://u:p@h:99999/", "https://:80", "https://[::1]/", "https://[::1", "//a.de", "https://a b",
            " https://a ", "https://\u2100.de", "mailto:a@b", 5, "https:a", "https://a?b", "https://@",
        ],
    ),
    (
        {"kind": "number"},
        [0, -1, 1.5, 1e30, LARGE, -LARGE, "5", True, None, "", [1], {"a": 1}, 0.1, 1e-7, -0.0],
    ),
    ({"kind": "number", "min": 0.1, "max": 0.3, "step": 0.1}, [0.1, 0.2, 0.3, 0.30000000000000004, 0.25, 0,
     1]),
    ({"kind": "number", "min": 1.0, "max": 1e21}, [0, 0.5, 1, 2e21, 10**21, 10**21 + 1]),
    ({"kind": "number", "max": 1e-7}, [1e-7, 2e-7, 0]),
    ({"kind": "number", "min": "1/3"}, [0.3, 0.34]),
    ({"kind": "number", "max": "many"}, [1, "x"]),
    ({"kind": "number", "step": 1e-9}, [1e-9, 1.5e-9, 1]),
    ({"kind": "integer"}, [1, 1.0, 1.5, 1e300, LARGE, -(10**40), "1", False, None, "  ", {}]),
    ({"kind": "integer", "max": LARGE}, [LARGE - 1, LARGE, LARGE + 1, 2**53]),
    ({"kind": "integer", "min": -3, "step": 3}, [-3, -4, 0, 2, 3]),
    (
        {"kind": "percent", "min": 0, "max": 100},
        ["50%", "50 %", "12.5", "%", "101%", "-1", 12.25, 101, True, "1,000", "100.000", "x", " 5% ", [],
        "50%%"],
    ),
    ({"kind": "percent", "locale": "de-DE"}, ["12,5 %", "12.5", "1.000", "12345678901234567890%", "1,5,0"]),
    (
        {"kind": "currency", "currency": "EUR"},
        [
            "1840.00", 1840, 0.1, 5.0, "1,840.00", "1,84.00", "1.840,00", "+5", "-0.00", "007.50", "1e5", "",
            "EUR 5", "5.", ".5", "1 000 000", "1'000", "1_000", "1,000,000.5", ",5", "0.1234567890123",
            "9" * 31, "9" * 30, "1.2.3", {"amount": "5", "currency": "EUR"}, {"amount": 5, "currency": "USD"},
            {"amount": 5}, {"amount": 5, "currency": "eur"}, {"amount": 5, "currency": "EUR", "x": 1}, True,
            [], [5], LARGE, 1e29, 1e30, 1e22, "\u00a05\u202f000", "5 %", "x" * 61,
        ],
    ),
    ({"kind": "currency"}, ["5", {"amount": "5.5", "currency": "JPY"}, {"amount": None, "currency": "JPY"}]),
    (
        {"kind": "currency", "currency": "EUR", "locale": "de", "min": "10.50", "max": 1234.56, "step": 0.01},
        ["1.234,56", "1.234,57", "10,5", "10,49", "10.50", "1234,5", "12,345", 1234.56, 10.505],
    ),
    ({"kind": "boolean"}, [True, False, "true", 0, 1, None, "", []]),
    ({"kind": "boolean", "required": True}, [False, None]),
    ({"kind": "select", "options": OPTIONS}, ["a", "b", "A", "", None, 5, ["a"], "it's"]),
    ({"kind": "radio", "options": OPTIONS, "required": True}, ["b", "c", None]),
    ({"kind": "multiselect", "options": OPTIONS}, [["a"], ["b", "a"], ["a", "a"], ["c"], "a", [], [1], {}]),
    (
        {"kind": "date"},
        [
            "2026-05-01", "20260501", "2026-W18-5", "2026W185", "2026-W18", "2026-W54", "2020-W53",
            "2021-W53",
            "2026-02-29", "2024-02-29", "2026-13-01", "2026-5-1", "0000-01-01", "0001-01-01", "9999-12-31",
            "2026-0501", "01.05.2026", "2026-05-01T00:00:00Z", "", 20260501, "\u0662026-05-01", "2026-W18-8",
        ],
    ),
    ({"kind": "date", "min": "2026-03-29", "max": "2026-10-25"}, ["2026-03-28", "2026-03-29", "2026-10-26"]),
    ({"kind": "date", "min": "soon"}, ["2026-03-28"]),
    (
        {"kind": "time"},
        [
            "14:30", "14:30:05", "1430", "143005", "14", "T14:30", "14:30:05.5", "14:30:05,123456789",
            "25:00",
            "14:60", "14:3", "14:30Z", "14:30+02:00", "14:30-0230", "2 pm", "14:30:61", "", 14, "14:3005",
            "14:30:05.", "14:30+24:00", "14:30 ",
        ],
    ),
    ({"kind": "time", "min": "09:00", "max": "17:00"}, ["08:59:59", "09:00", "17:00:00.000001", "12:00Z"]),
    ({"kind": "time", "min": "09:00+02:00"}, ["07:30Z", "06:59Z", "10:00"]),
    (
        {"kind": "datetime"},
        [
            *CLOCKS, "2026-05-01T14:30:00Z", "2026-05-01T14:30", "2026-05-01", "2026-05-01 14:30:00.25+00:00",
            "20260501T143000Z", "2026-05-01T14:30:00+02", "2026-05-01T14:30:00-12:34:56", "2026-W18-5T10:00Z",
            "tomorrow", "2026-05-01T", "2026-05-01T25:00Z", "2026-05-01TT10:00Z", 5, "", None,
            "2026-02-30T10:00Z",
        ],
    ),
    *(
        ({"kind": "datetime", "min": low, "max": high}, list(CLOCKS[:4]))
        for low, high in ((CLOCKS[0], CLOCKS[1]), (CLOCKS[2], CLOCKS[3]), (CLOCKS[3], "2026-12-01T00:00Z"))
    ),
    ({"kind": "datetime", "min": CLOCKS[6], "max": CLOCKS[7]}, list(CLOCKS[6:8])),
    ({"kind": "datetime", "max": CLOCKS[9]}, list(CLOCKS[8:])),
    ({"kind": "datetime", "min": "2026-01-01"}, ["2026-05-01T14:30:00Z"]),
    (
        {"kind": "duration"},
        [
            90, 0, 1.5, 5.0, -1, -1.5, "90", "1h30m", "1h 30m", "30m1h", "1h1h", "1.5h", "1.5h30m", "250ms",
            "PT15M",
            "P1DT2H", "P1W", "P1Y", "P", "PT", "P1,5D", "-5m", "4bh", "soon", "", "1 h", "5 minutes", True,
            [],
            {}, 1e20, "99999999999w", "1" * 101, "0", "\u0661h", "10d x", 10**30, "PT1.5H30M",
        ],
    ),
    ({"kind": "duration", "min": "1m", "max": "PT1H"}, ["59s", "60", "1h", "1h1ms", 60, 59.999999, 3601]),
    ({"kind": "duration", "min": "x"}, ["59s"]),
    (
        {"kind": "file", "accept": ["image/*", "application/pdf"], "max_size": 2048},
        [
            PICTURE, {**PICTURE, "size": 2049}, {**PICTURE, "size": -1}, {**PICTURE, "size": 1.5},
            {**PICTURE, "media_type": "text/html"}, {**PICTURE, "media_type": None},
            {**PICTURE, "name": "../a"}, {**PICTURE, "name": ".."}, {**PICTURE, "name": "gnp\u202eexe"},
            {**PICTURE, "name": ""}, {**PICTURE, "sha256": "x"}, {**PICTURE, "more": 1}, {"name": "a"},
            "a.png", None, {**PICTURE, "name": "a\u200db"}, {**PICTURE, "name": "x" * 256}, [PICTURE],
        ],
    ),
    ({"kind": "file"}, [{**PICTURE, "size": MAX_FILE + 1}, {**PICTURE, "media_type": "x/y"}]),
    ({"kind": "json"}, [{"a": [1, None]}, [1], 5, "x", True, None, [], "", {}]),
    ({"kind": "table", "columns": [
        {"field": "what", "required": True}, {"field": "pieces", "kind": "integer", "min": 1},
        {"field": "price", "kind": "currency", "currency": "EUR"}, {"field": "on", "kind": "date"},
    ]}, [
        [{"what": "pen", "pieces": 2, "price": 1.5, "on": "2026-05-01"}], [], None, "x", {}, [5],
        [{"what": "pen"}, {"pieces": 1}], [{"what": "pen", "pieces": 0}], [{"what": "pen", "pieces": "1"}],
        [{"what": "pen", "size": 1}], [{"what": "  "}], [{"what": "pen", "price": "x"}],
        [{"what": "pen", "on": "x"}], [{"what": "pen", "pieces": LARGE}], [{"what": "a"}] * 1_001,
    ]),
]  # fmt: skip

_LINE = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SCHEMAS: list[tuple[Any, list[Any]]] = [
    ({"type": "integer"}, [1, 1.0, 1.5, "1", True, LARGE]),
    ({"type": ["number", "null"]}, [1.5, "x", False]),
    ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
      "additionalProperties": False}, [{"a": "x"}, {"a": 1}, {"b": 1}, {"a": "x", "b": 1}, [1], 5]),
    ({"properties": {"a": False}, "additionalProperties": {"type": "integer"}}, [{"a": 1}, {"b": "x"},
     {"b": 1}]),
    ({"type": "array", "items": _LINE, "minItems": 1, "maxItems": 2},
     [[{"n": 1}], [{"n": "x"}], [{}], [{"n": 1}] * 3, [5], [{"n": 1.5}, {}]]),
    ({"prefixItems": [{"type": "string"}, False], "items": {"type": "integer"}}, [["a"], [1], ["a", 2],
     ["a", 2, "b"]]),
    ({"uniqueItems": True}, [[1, 2], [1, 1.0], [1, True], [{"a": 1}, {"a": 1}], ["x", "y", "x"]]),
    ({"enum": ["a", 1, None, "it's"]}, ["a", 1, 1.0, True, "b", {"a": 1}, [1]]),
    ({"const": {"a": [1]}}, [{"a": [1.0]}, {"a": 1}, "x"]),
    ({"minimum": 0.1, "maximum": 5.0}, [0.1, 0, 6, "x", LARGE]),
    ({"exclusiveMinimum": 1, "exclusiveMaximum": 2}, [1, 1.5, 2]),
    ({"multipleOf": 0.1}, [0.3, 0.35, 1]),
    ({"minLength": 2, "maxLength": 3}, ["a", "ab", "abcd", "\U0001f600\U0001f600"]),
    ({"pattern": "^a+$"}, ["aa", "b", "x" * 70, "x" * 1_001, "\"b'\n\\\u200b"]),
    ({"minProperties": 1, "maxProperties": 2}, [{}, {"a": 1}, {"a": 1, "b": 2, "c": 3}]),
    ({"anyOf": [{"type": "string"}, _LINE]}, ["x", {"n": 1}, {"n": "x"}, 5]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, [1, 5.5, 6, 1.5, "x"]),
    ({"allOf": [{"minimum": 1}, {"multipleOf": 2}]}, [2, 1, -1]),
    ({"not": {"type": "string"}}, [1, "x"]),
    ({"items": {"items": {"type": "integer"}}}, [[[1], ["x"]], [["x"], ["y"], ["z"], [1.5], [None], [True]]]),
]  # fmt: skip

# A condition of `x`, read beside a flag, a number, a choice and the context of the hold.
CONDITIONS = (
    "flag", "!flag", "not flag", "count > 3", "count >= 3", "count < 3", "count <= 3", "count == 3",
    "count == 3.0", "count != 3", "word == 'a'", 'word != "a"', "word in ['a', 'b']", "word not in ['a']",
    "word > 'B'", "word < 5", "flag && count > 3", "flag || count > 3", "flag and not word == 'a'",
    "!flag == false", "(flag || word == 'a') && count", "flag ? count > 3 : word == 'b'",
    "decision == 'reject'", "decision in ['approve'] && word === 'a'", "word !== 'a'", "context.vip",
    "context.items.0.price > 9", "context.items.1.price == null", "context.none == null", "context.none > 1",
    "exists(context.vip)", "exists(context.none)", "exists(count)", "context.none | default(true)",
    "context.vip | default(false)", "'a' in word", "'vip' in context", "context.items == []",
    "count in [3, 4.0]",
    f"count == {LARGE}", "count > 1e2", "context.name == 'M\\u00fcller'", "true", "null", "[]", "[flag]",
    "word == null", "flag == 1", "count > -1 && count < 1.5e1", "exists(context.__proto__)",
)  # fmt: skip
ANSWERS: tuple[dict[str, Any], ...] = (
    {"flag": True, "count": 3, "word": "a"},
    {"flag": False, "count": 4, "word": "b"},
    {"count": LARGE},
)
CONTEXT = {"vip": True, "items": [{"price": 10}], "name": "Müller"}


def cases() -> Iterator[dict[str, Any]]:
    for field, values in VALUES:
        for value in values:
            yield _case([{"type": "input", "field": "x", **field}, CHOICE], {"x": value})
    for schema, values in SCHEMAS:
        for value in values:
            yield _case(
                [{"type": "input", "field": "x", "kind": "json", "schema": schema}, CHOICE], {"x": value}
            )
    yield from _conditions()
    yield from _proposals()
    yield from _whole_answers()


def _conditions() -> Iterator[dict[str, Any]]:
    asked = [
        {"type": "input", "field": "flag", "kind": "boolean"},
        {"type": "input", "field": "count", "kind": "integer"},
        {"type": "input", "field": "word"},
    ]
    for text, data in product(CONDITIONS, ANSWERS):
        seen = {"type": "input", "field": "x", "visible_if": text, "required": True}
        decision = "reject" if data.get("flag") else "approve"
        yield _case([*asked, seen, CHOICE], data, decision)
    for text, given in product(("flag", "count > 3", "decision == 'reject'"), ({}, {"x": "new"})):
        for name in ("required_if", "readonly_if"):
            field = {
                "type": "input",
                "field": "x",
                "default": None if name == "required_if" else "old",
                name: text,
            }
            for data in ANSWERS:
                yield _case([*asked, field, CHOICE], {**data, **given})
    # A field with an error, and a hidden one, are not read by later conditions.
    later = {"type": "input", "field": "y", "required_if": "exists(x)"}
    yield _case([{"type": "input", "field": "x", "kind": "integer"}, later], {"x": "many"})
    yield _case([{"type": "input", "field": "x", "visible_if": "decision == 'no'"}, later], {"x": "1"})


def _proposals() -> Iterator[dict[str, Any]]:
    money = {"type": "input", "field": "x", "kind": "currency", "currency": "EUR"}
    for field, given in (
        ({**money, "default": "100"}, [100, "100.00", "100", 99, None, ""]),
        ({**money, "default": 100, "original": "90.00"}, [90, "90", 100]),
        ({**money, "default": "100", "readonly": True}, [100, "100", "99", None]),
        ({**money, "default": 5.0, "readonly": True}, [5, "5", "5.0"]),
        ({"type": "input", "field": "x", "default": " "}, [" ", "", "a", None]),
        ({"type": "input", "field": "x", "default": "a", "readonly": True}, ["a", "b", 5, None]),
        ({"type": "input", "field": "x", "kind": "integer", "default": True}, [1, True]),
        ({"type": "input", "field": "x", "kind": "integer", "default": LARGE}, [LARGE, LARGE + 1, 1]),
        (
            {"type": "input", "field": "x", "kind": "date", "default": "20260501"},
            ["2026-05-01", "2026-05-02"],
        ),
        ({"type": "input", "field": "x", "kind": "json", "default": {"a": 1}}, [{"a": 1.0}, {"a": 2}, None]),
        ({"type": "input", "field": "x", "kind": "boolean", "default": False}, [False, True, None]),
    ):
        yield _case([field, CHOICE], {})
        for value in given:
            yield _case([field, CHOICE], {"x": value})


def _whole_answers() -> Iterator[dict[str, Any]]:
    text = {"type": "input", "field": "x"}
    second = {"type": "decision", "field": "channel", "options": ["mail", "phone"]}
    yield _case([text, CHOICE], None)
    yield _case([text, CHOICE], [1])
    yield _case([text, CHOICE], "x")
    yield _case([text, CHOICE], {"x": "a", "more": 1, "other": 2})
    yield _case([text, CHOICE], {"more": {"a": [1]}}, allow_extra=True)
    yield _case([text, CHOICE], {"decision": "reject"})
    yield _case([text, CHOICE], {"decision": "approve"})
    yield _case([text, CHOICE], {"decision": "approve"}, None)
    yield _case([text, {**CHOICE, "field": "verdict"}], {"verdict": "approve"})
    yield _case([text, second], {"channel": "fax"}, "mail")
    for channel in ("mail", "fax", None):
        yield _case([CHOICE, second], {"channel": channel})
    yield _case([{"type": "context", "content": "read"}, CHOICE], {"context": "x"})
    # Only small numbers of characters go into the file; the sizes are made by whoever reads it.
    yield _case([{"type": "input", "field": "x", "kind": "json"}], {"x": "a" * (256 * 1024)})
    deep: Any = 1
    for _ in range(21):
        deep = [deep]
    yield _case([{"type": "input", "field": "x", "kind": "json"}], {"x": deep})
    yield _case([{"type": "input", "field": "x", "kind": "json"}], {"x": deep[0][0]})


def _case(
    sections: list[dict[str, Any]], data: Any, decision: str | None = "approve", **more: Any
) -> dict[str, Any]:
    found = compile_form(sections, templates=False, **more)
    assert not found.problems, found.problems
    form = render_form(found.form)
    # As the server gets it: numbers that JSON does not tell apart are the same.
    asked = msgspec.json.decode(msgspec.json.encode({"form": form, "data": data}))
    filled = validate_answer(asked["form"], CONTEXT, decision, asked["data"])
    return {
        "sections": form["sections"],
        **({"allow_extra": True} if more else {}),
        "decision": decision,
        "data": _short(data),
        "errors": [[each.field, each.code, each.message] for each in filled.errors],
        "edited": [each.field for each in filled.edited],
        "values": None if filled.errors else _short(filled.values),
    }


def _short(value: Any) -> Any:
    """Long texts and lists as what makes them: `{"repeat": "a", "times": 65537}`."""
    if isinstance(value, str) and len(value) > 1_000 and len(set(value)) == 1:
        return {"repeat": value[0], "times": len(value)}
    if isinstance(value, list) and len(value) > 100:
        return {"repeat": value[:1], "times": len(value)}
    if isinstance(value, Mapping):
        return {name: _short(inner) for name, inner in value.items()}
    return value


VISIBLE = [
    "plain",
    "größe",
    "pay \u202e000.1\u202c EUR\u200b to x",
    "DE12\u202e3456\u202c\u200b99",
    "a\u00adb\u034fc",
    "a\u200db",
    "👩\u200d💻",
    "नि\u200dक",
    "x\u200c",
    "\u2800\u3164",
    "\ufeffa",
    "tag \U000e0041",
    "\U0001d173",
    "\u2066a\u2069",
    "\u2028line",
    "fi\ufff9",
]


def text() -> str:
    """One case on each line, so that a change is readable. `visible`: texts, and how they are shown."""
    lines = ",\n".join(msgspec.json.encode(each).decode() for each in cases())
    context = msgspec.json.encode(CONTEXT).decode()
    visible = json.dumps([[each, show_invisible(each)] for each in VISIBLE])
    return f'{{"context": {context}, "visible": {visible}, "cases": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    FILE.write_text(text())
