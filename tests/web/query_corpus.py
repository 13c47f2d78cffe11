"""Searches and how the server reads them, for the app's own reading (web/tests/query.test.ts).

`python -m tests.web.query_corpus` writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.errors import InputError
from holdfast.holds.queries.search import SIGNS, read_query
from holdfast.runs.run_query import RunQueryReader, read_run_query
from holdfast.store.rows import RunFilter
from holdfast.types.hold import HoldFilter

FILE: Final = Path(__file__).resolve().parents[2] / "web" / "tests" / "queries.json"
ME: Final = "user:Dana@ACME"
NOW: Final = 1_700_000_000_000_000

LENGTHS: Final = (
    "2d", "0", "0s", "90", "1.5", "250ms", "1h30m", "1h 30m", "1.5h", "1.5h30m", "30m1h", "1d1d", "2w", "-2d",
    "2", "2x", "soon", "4bh", "PT15M", "P1DT2H", "P1Y", "PT", "P", "P1,5D", "0.0000005s", "0.0000015s",
    "0.0000025s", "999999999d", "99999999999999d", "365000d", "365001d", "1dd", "1 d", "٣d", "1" * 101, "2D",
)  # fmt: skip
VALUES: Final = (
    "me",
    "a",
    "a,b",
    "a,,a",
    "A B",
    "group:finance",
    "",
    ",",
    "breakpoint",
    "comment",
    "overdue",
)
STATUSES: Final = (
    "pending", "resolved", "any", "failed", "open", "pending,resolved", "Pending", "queued", "sleeping",
    "waiting_for_input", "interrupted", "pending_input,FAILED", "failed,", "pending,pending", "constructor",
)  # fmt: skip
ASSIGNEES: Final = (
    "kim", "Kim@Example.ORG", "Kim", "user:Kim@Example.org", "user:", "USER: kim ", "group:", "role:cfo",
    "team:x", "urn:x:1", "delegated_user", "delegated_user:x", "a@b@c", "  ", "kim\x07", "a\u200bb",
    "k" * 501, "@", "a@", "user:urn:x:1", "me,kim",
)  # fmt: skip
PLAIN_WORDS: Final = (
    "", " ", "two words", "'two words' flow:a", '"two words"', "it's", "https://example.com/x", "flow:",
    'flow:"a b"', '"flow:a b"', "a\\ b", "a\\", '"a\\"b"', '"a\\b"', "'a\\b'", '"a', "a'b'c", '""',
    '"" x', "x\ty\nz", "it's x\x1cy\x85z", "a\u00a0b", "flow:a b flow:c d", "FLOW:a", "Flow:A", "a:b:c",
    "a>=b", "a=>b", "<", ">=", ":x", "flow:a>=b", "priority>=high due<2d flow:refund invoice",
    "flow:a flow:a", "flow:a flow:b", "due<2d due<1d", "due<2d due>1h", "age>1h age<2h",
    "created<2d created<1d", "by:me by:kim", "at:breakpoint", "status:failed status:completed",
    "has:comment has:comment", "good flow>x due<never", "ﬂow:a", "é", "😀 flow:😀", "__proto__:x",
    "staus:open", "Prioirty>=high", "asignee:me flow:a", "tags:x", "page:3", "flw:a", "rule:x", "create<2d",
    "dure:1", "xstatus:", "versoin:2", "tood>1h", "statusss:x", "statussss:x", "ags:x", "_flow:x",
    "error:x", "é:x", "foo:bar", "flow:a bogus<2d", "re:invoice", "text:foo:bar", "text:", "text>x", "s3://a/b",
    "flow:a text:b c text:d:e", 'text:"a b"', "TEXT:A", "12:30", "sha256:ab",
    "constructor:x", "toString<1", "tag:__proto__", "key:a,b", "run:1 run:2", "took>1h took<2h",
)  # fmt: skip


DAYS: Final = (
    "2026-02-29", "2024-02-29", "0000-01-01", "2026-13-01", "2026-2-1", "\u0662026-01-01", "9999-12-31",
    "0001-01-01",
)  # fmt: skip
DECIDED: Final = (
    *(f'decided_by:"{value}"' for value in (*VALUES, *ASSIGNEES)),
    *(f"decided_by{sign}a" for sign in SIGNS),
    *(f"decided{sign}{value}" for sign in SIGNS for value in ("2026-02-28", "2d")),
    *(f'decided<"{value}"' for value in LENGTHS),
    *(f"decided:{value}" for value in DAYS),
    "decided>=2026-11-01 decided<2026-12-01 decided_by:kim",
    "decided_by:me status:any",
    "decided_by:policy:small",
    "decided_by:kim,sam",
    "decided_by:user:Kim@Example.ORG",
    "decidedby:kim",
)


def queries(of: str) -> Iterator[str]:
    yield from PLAIN_WORDS
    names = ("status", "assignee", "group", "role", "flow", "type", "tag", "run", "key", "priority", "has")
    if of == "runs":
        names = ("status", "flow", "version", "by", "key", "thread", "error", "at")
    for name in names:
        yield from (f"{name}{sign}a" for sign in SIGNS)
        yield from (f'{name}:"{value}"' for value in VALUES)
    yield from (f"status:{value}" for value in STATUSES)
    if of == "holds":
        yield from (f'assignee:"{value}"' for value in ASSIGNEES)
        yield from (
            f"priority{sign}{value}" for sign in SIGNS for value in ("low", "high", "critical", "top")
        )
    for name in ("due", "age") if of == "holds" else ("created", "took"):
        yield from (f"{name}{sign}1d" for sign in SIGNS)
        yield from (f'{name}<"{value}"' for value in LENGTHS)
    yield "due:overdue"
    if of == "holds":
        yield from DECIDED


def read(of: str, query: str) -> dict[str, Any]:
    try:
        return _hold(query) if of == "holds" else _run(query)
    except InputError as error:
        facts = error.facts
        return {"wrong": {name: facts.get(name, []) for name in ("word", "reason", "known")}}


def _hold(query: str) -> dict[str, Any]:
    found = read_query(query, me=ME, now=NOW)
    fields = _changed(found.where, HoldFilter())
    text = fields.pop("text", "")
    # A condition that is given twice counts once.
    has = {"has": list(dict.fromkeys(found.has))} if found.has else {}
    words = found.chips[:-1] if text else found.chips
    return {"fields": {**fields, **has}, "text": text, "words": words}


def _run(query: str) -> dict[str, Any]:
    fields = _changed(read_run_query(query, RunFilter(), me=ME, now=NOW), RunFilter(shown_at=NOW))
    return {"fields": fields, "text": fields.pop("text", ""), "words": _words(query)}


def _words(query: str) -> list[str]:
    from holdfast.holds.queries.search import split_words

    reading = RunQueryReader(ME, NOW)
    words: list[str] = []
    for word in split_words(query):
        before = len(reading.free)
        reading.take(word)
        words += [] if len(reading.free) > before else [word]
    return words


def _changed(found: Any, empty: Any) -> dict[str, Any]:
    names = [name for name in found.__struct_fields__ if getattr(found, name) != getattr(empty, name)]
    plain = msgspec.to_builtins({name: getattr(found, name) for name in names})
    # Numbers of JavaScript do not have all these digits.
    return {name: str(value) if type(value) is int else value for name, value in plain.items()}


def corpus() -> str:
    cases = [
        {"of": of, "query": query, "read": read(of, query)}
        for of in ("holds", "runs")
        for query in dict.fromkeys(queries(of))
    ]
    lines = ",\n".join(json.dumps(each) for each in cases)
    return f'{{"me": {json.dumps(ME)}, "now": "{NOW}", "cases": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    FILE.write_text(corpus())
