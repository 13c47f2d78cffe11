"""The evidence of a decision as a readable page. The proof is the evidence file, which the page names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.errors import InputError
from holdfast.model.forms.visible_text import show_invisible
from holdfast.reports.style import STYLE
from holdfast.reports.text import for_html as escape
from holdfast.types.clock import iso
from holdfast.types.redaction import redactor

Section = tuple[str, list[tuple[str, str]]]
FORMS = ("html", "md")


def page_of(pack: Mapping[str, Any], form: str) -> str:
    """Raises InputError for an unknown format."""
    if form not in FORMS:
        raise InputError(f"unknown format {form!r}.", hint="Use a file name that ends with .html or .md.")
    title = f"Evidence of hold {pack['content']['hold']['id']}"
    sections = [(name, [pair for pair in facts if pair[1]]) for name, facts in _sections(pack)]
    return show_invisible((_html if form == "html" else _markdown)(title, sections))


def _sections(pack: Mapping[str, Any]) -> Iterator[Section]:
    content = pack["content"]
    hold, audit = content["hold"], content["audit"]
    # From the exact bytes that were hashed, and not from the row: the page shows what the hash proves.
    prompt, options, context, schema = json.loads(content["request"]["shown"])
    choices = ", ".join(f"{option['label']} ({option['id']})" for option in options or ())
    yield (
        "What was asked",
        [
            ("prompt", _text(prompt)),
            ("options", choices),
            ("form", _text(schema)),
            ("context", _text(context)),
            ("hash of what was shown", content["request"]["hash"]),
        ],
    )
    yield "What was decided", list(_decision(content))
    names = ("id", "tenant", "flow", "run", "node", "core_id", "instance_key", "started_by", "type")
    more = ("priority", "assignee", "status", "created_at", "expires_at")
    yield "The hold", [(name, _text(hold[name])) for name in (*names, *more)]
    skills = [(f"{each['id']}@{each['version']}", each["digest"]) for each in content["skills"]]
    if skills:
        yield "Skills", skills
    yield "The audit", [*_history_rows(audit["rows"]), ("head", _text(audit["head"]))]
    yield (
        "The file",
        [
            ("digest", pack["digest"]),
            ("signature", pack.get("signature", "none")),
            ("made", content["made_at"]),
        ],
    )


def _decision(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if content["decision"] is None:
        yield "outcome", f"none: it is {content['hold']['status']}"
        return
    for name, value in json.loads(content["decision"]).items():
        yield name.replace("_", " "), _text(value)


def _history_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    others = 0
    for row in rows:
        content = json.loads(row["said"])
        if "data" not in row:
            others += 1
            continue
        yield (
            f"{content['seq']}",
            f"{iso(content['at'])} {content['action']} by {content['actor']} {_text(row['data'])}",
        )
    yield "records of others between them", str(others) if others else ""


def _text(value: Any) -> str:
    if value is None or value == {}:
        return ""
    # Invisible characters could make a reader see another text than the one that was decided.
    seen = show_invisible(value)
    return seen if isinstance(seen, str) else json.dumps(seen, ensure_ascii=False, sort_keys=True)


def _markdown(title: str, sections: list[Section]) -> str:
    lines = [f"# {title}"]
    for name, facts in sections:
        lines += ["", f"## {name}", ""]
        lines += [f"- **{what}**: {_code(value)}" for what, value in facts]
    return "\n".join(lines) + "\n"


def _code(value: str) -> str:
    """As code, so that text from people cannot become markup."""
    value = redactor.redact(value)
    # One more than the longest run in the text: only then can the text not close the fence.
    fence = "`" * (1 + max((len(run) for run in _ticks(value)), default=0))
    return f"{fence} {' '.join(value.split())} {fence}"


def _ticks(value: str) -> list[str]:
    return ["".join(run) for run in "".join(c if c == "`" else " " for c in value).split()]


def _html(title: str, sections: list[Section]) -> str:
    body = "\n".join(
        f"<h2>{escape(name)}</h2>\n<dl>"
        + "".join(f"<dt>{escape(what)}</dt><dd>{escape(value)}</dd>" for what, value in facts)
        + "</dl>"
        for name, facts in sections
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )
