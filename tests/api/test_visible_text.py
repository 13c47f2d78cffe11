"""Characters that hide or reverse text are spelled out wherever a person reads: on every page, in every
picture and report, and in what the command line prints. Values of controls stay exact, with a note."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

import holdfast
from holdfast import Flow, Holdfast
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.local_token import LocalToken
from holdfast.api.pages.all import PAGES
from holdfast.api.routes.all import THEMES
from holdfast.api.schemas.files import disposition
from holdfast.attractor.interviewers import ConsoleInterviewer, Question, QuestionType
from holdfast.reports.evidence import page_of
from holdfast.reports.formats import FORMS
from holdfast.reports.postmortem import build_postmortem
from holdfast.types.terms import operator
from tests.api.test_matrix import filled

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-07")]

UNSEEN: Final = "\u202e\u200b\u2066\u00ad\u200f\ufeff\u3164\U000e0041"
EVIL: Final = f"exe{UNSEEN}gpj"
SHOWN: Final = "exe\\u202e\\u200b\\u2066\\u00ad\\u200f\\ufeff\\u3164\\U000e0041gpj"
NOT_FOR_READERS: Final = re.compile(r' value="[^"]*"|<textarea.*?</textarea>', re.DOTALL)


def _flow() -> Flow:
    flow = Flow("hidden", effect="pure")
    sections = [
        {"type": "context", "title": f"ctx {EVIL}", "content": f"content {EVIL}"},
        {"type": "input", "field": "why", "label": f"why {EVIL}", "help": f"help {EVIL}", "kind": "text",
         "default": f"default {EVIL}"},
        {"type": "input", "field": "pick", "label": "pick", "kind": "select",
         "options": [{"id": "one", "label": f"one {EVIL}"}, {"id": "two", "label": "{{word}}"}]},
    ]  # fmt: skip
    asks = flow.hold(
        "approve",
        prompt=f"literal {EVIL} and {{{{word}}}}",
        options=[{"id": "yes", "label": f"yes {EVIL}"}, {"id": "no", "label": "no {{word}}"}],
        sections=sections,
        into="form",
        context={f"key {EVIL}": EVIL, "filled": "{{word}}"},
        assignee="user:local",
    )

    @flow.node(id="fails")
    async def fails(s: Any) -> None:
        raise ValueError(f"error {EVIL}")

    flow.edge(asks, fails, when="decision == 'yes'")
    return flow


class Hall:
    def __init__(self, hf: Holdfast, client: httpx2.AsyncClient, ids: dict[str, str]) -> None:
        self.hf, self.client, self.ids = hf, client, ids


@asynccontextmanager
async def hall(address: str = "memory:") -> AsyncIterator[Hall]:
    """A run that waits with hidden characters in every text, and one that failed with them."""
    async with Holdfast(address) as hf:
        own = LocalToken()
        app = build(hf, Authenticator(hf, local=own), ApiSettings(pace=0, anonymous_pace=0), THEMES)
        flow = _flow()
        word = {"word": EVIL}
        waits = await flow.run(word, on=hf, started_by="user:local", thread=f"t {EVIL}")
        failed = await flow.run(word, on=hf)
        people, me = await hf.holds(), operator("user:local")
        await people.comment(me, waits.holds[0].id, f"comment {EVIL}")
        given = {"decision": "yes", "response_data": {"why": EVIL, "pick": "one"}, "comment": EVIL}
        await people.resolve(me, failed.holds[0].id, given)
        await flow.resume(failed.run_id, on=hf)
        ids = {"run": waits.run_id, "hold": waits.holds[0].id, "flow": "hidden", "failed": failed.run_id}
        headers = {"Authorization": f"Bearer {own.token}"}
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers
        ) as client:
            yield Hall(hf, client, ids)


def hidden_in(text: str) -> set[str]:
    """Also as a reference of HTML or XML, which a browser shows as the character."""
    return set(UNSEEN) & set(html.unescape(text))


async def test_every_page_spells_out_hidden_characters() -> None:
    shown: set[str] = set()
    async with hall() as found:
        for route in PAGES:
            if route.method != "GET":
                continue
            for run in (found.ids["run"], found.ids["failed"]):
                path = filled(route.path, **{**found.ids, "run": run, "name": "pages.css", "token": "x"})
                answer = await found.client.get(path, headers={"Accept": "text/html"})
                assert answer.status_code < 500, (path, answer.text)
                read = NOT_FOR_READERS.sub("", answer.text)
                assert not hidden_in(read), (path, read)
                shown |= {route.path} if SHOWN in html.unescape(read) else set()
    # They are not left out either: who decides must see that they are there.
    assert {"/holds/{hold}", "/runs/{run}", "/holds", "/"} <= shown


async def test_values_of_controls_stay_exact_and_are_marked() -> None:
    async with hall() as found:
        page = (await found.client.get(f"/holds/{found.ids['hold']}", headers={"Accept": "text/html"})).text
    assert f'value="default {EVIL}"' in page
    assert f"characters that are not visible: <code>default {SHOWN}</code>" in page


async def test_every_picture_and_report_spells_out_hidden_characters() -> None:
    async with hall() as found:
        service = await found.hf.service()
        for path in ("runs/{failed}/drawing", "runs/{run}/drawing", "flows/{flow}/versions/latest/drawing"):
            answer = await found.client.get(filled(f"/v1/{path}", **found.ids))
            assert answer.status_code == 200, (path, answer.text)
            assert not hidden_in(answer.text), path
        found_report = await build_postmortem(service, found.ids["failed"])
        for form, write in FORMS.items():
            text = write(found_report)
            assert SHOWN in html.unescape(text).replace("\\\\", "\\"), form
            assert not hidden_in(text), form
        people = await found.hf.holds()
        pack = json.loads(await people.evidence(operator("user:local"), found.ids["hold"]))
        for form in ("html", "md"):
            text = page_of(pack, form)
            assert SHOWN in html.unescape(text), form
            assert not hidden_in(text), form


async def test_stored_question_is_what_people_read_on_every_channel() -> None:
    """Labels are templates wherever they are, and their hidden characters are spelled out."""
    async with hall() as found:
        row = await (await found.hf.open()).hold(found.ids["hold"])
        assert row is not None
        assert row.prompt == f"literal {SHOWN} and {SHOWN}"
        assert [option.label for option in row.options or ()] == [f"yes {SHOWN}", f"no {SHOWN}"]


CONSOLES: Final = {
    "cli/output/console.py", "cli/output/timeline.py", "cli/output/watch.py", "cli/top/screen.py",  # cleaned
    "cli/output/tables.py", "cli/output/json_output.py",  # cleaned, and JSON with escapes
    "attractor/interviewers.py", "cli/deployed_run.py",  # cleaned
    "cli/main.py", "cli/app.py", "cli/completion.py", "cli/commands/serve.py", "cli/commands/worker.py",
    "cli/commands/graph.py", "cli/commands/diff.py", "demo/printout.py", "demo/story.py",
    "agents/coding/grep_files.py",  # a process of its own: the worker that started it reads what it writes
}  # fmt: skip
"""Modules that write to a terminal: with cleaned texts, JSON with escapes, pictures or texts of our own."""


def test_no_other_module_writes_to_a_terminal() -> None:
    source = Path(holdfast.__file__).parent
    writes = re.compile(r"(?<![\w.\"`])print\(|\b[Cc]onsole\S*\.print\(|sys\.std(out|err)\.write")
    files = [each for each in source.rglob("*.py") if "testing" not in each.parts]
    found = {str(each.relative_to(source)) for each in files if writes.search(each.read_text())}
    assert found <= CONSOLES, found - CONSOLES


async def test_console_interviewer_spells_out_hidden_characters() -> None:
    out = StringIO()
    asks = ConsoleInterviewer(StringIO("y\n"), out)
    await asks.ask(Question(text=f"{EVIL} \x1b[2J", type=QuestionType.YES_NO, stage="gate"))
    assert SHOWN in out.getvalue()
    assert not hidden_in(out.getvalue())
    assert "\x1b" not in out.getvalue()


COMMANDS: Final[dict[str, Callable[[dict[str, str]], list[str]]]] = {
    "holds": lambda ids: ["holds", "show", ids["hold"]],
    "holds list": lambda ids: ["holds", "list"],
    "holds list json": lambda ids: ["holds", "list", "--json"],
    "show": lambda ids: ["show", ids["failed"]],
    "show json": lambda ids: ["show", ids["failed"], "--json"],
    "runs": lambda ids: ["runs"],
    "runs json": lambda ids: ["runs", "--json"],
    "checkpoints": lambda ids: ["checkpoints", ids["failed"]],
    "diff": lambda ids: ["diff", ids["run"], ids["failed"]],
    "graph": lambda ids: ["graph", ids["failed"]],
    "replay": lambda ids: ["replay", ids["failed"]],
    "postmortem": lambda ids: ["postmortem", ids["failed"]],
    "audit": lambda ids: ["audit", "list"],
    "dead": lambda ids: ["dead", "list"],
    "top": lambda ids: ["top", "--once"],
}


async def test_command_line_spells_out_hidden_characters(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from anyio import to_thread

    from holdfast.cli.main import run

    address = f"sqlite:{tmp_path / 'h.db'}"
    async with hall(address) as found:
        ids = found.ids
    shown = 0
    for name, arguments in COMMANDS.items():
        code = await to_thread.run_sync(run, [*arguments(ids), "--store", address])
        said = capfd.readouterr()
        assert code == 0, (name, said)
        assert not hidden_in(said.out + said.err), name
        assert "Traceback" not in said.err, name
        shown += "\\u202e" in said.out
    assert shown >= 6


@pytest.mark.covers("WB-54")
async def test_name_of_a_download_has_no_characters_that_turn_it() -> None:
    turned = disposition("invoice\u202etxt.exe")
    assert turned == "attachment; filename=\"invoice_u202etxt.exe\"; filename*=UTF-8''invoice%5Cu202etxt.exe"
    assert disposition("Müller 1.pdf").endswith("filename*=UTF-8''M%C3%BCller%201.pdf")
