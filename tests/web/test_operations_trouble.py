"""An operator with trouble: dead letters, failed notifications, a changed audit, limits, charts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.services import prefork
from tests.web.conftest import PATIENCE, WebServer, inspect, show

pytestmark = pytest.mark.xdist_group("web-2")
DOOMED = Path(__file__).with_name("doomed_flows.py")
# An address that the rules of egress do not allow: such a message fails at its first attempt.
NOTIFY = '[[channel]]\nname = "desk"\nkind = "slack"\nurl = "http://127.0.0.1:9/"\n'


def holdfast(*arguments: str, store: str, expect_code: int | None = 0) -> str:
    env = os.environ | {"HOLDFAST_LEASE": "1s"}
    done = prefork.run("holdfast", [*arguments, "--store", store], cwd=Path.cwd(), env=env)
    assert expect_code in (None, done.returncode), done.stderr
    return done.stdout


def leave_dead_runs(store: str) -> None:
    """Two runs, each given up because its only worker died."""
    for _ in range(2):
        holdfast("run", str(DOOMED), store=store, expect_code=3)
    for _ in range(20):
        if len(json.loads(holdfast("dead", "list", "--json", store=store))["items"]) == 2:
            return
        holdfast(
            "worker", str(DOOMED), "--max-recoveries", "0", "--until-idle", store=store, expect_code=None
        )
    raise AssertionError("the runs were not given up")


@pytest.fixture(scope="module")
def troubled(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    folder = tmp_path_factory.mktemp("trouble")
    leave_dead_runs(f"sqlite:{folder / 'web.db'}")
    (folder / "notify.toml").write_text(NOTIFY)
    found = WebServer(folder, env={"HOLDFAST_NOTIFY": str(folder / "notify.toml")})
    found.api("PUT", "/v1/limits/flow:claims", {"concurrency": 3, "rate": "100/min"})
    found.claim("T-1")
    hold = found.claim("T-2", flow="short")
    found.api("POST", f"/v1/holds/{hold['id']}/resolve", {"decision": "agree"})
    yield found
    found.stop()


@pytest.fixture(scope="module")
def signed_in(browser: Browser, troubled: WebServer) -> Any:
    context = browser.new_context()
    context.request.get(troubled.sign_in)  # without a page, which would load the app
    kept = context.cookies()
    context.close()
    return kept


@pytest.fixture
def operations(browser: Browser, troubled: WebServer, signed_in: Any) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_cookies(signed_in)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    yield page
    context.close()


def confirm(page: Page, button: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=button).click()
    expect(page.get_by_role("dialog")).to_be_hidden()


@pytest.mark.covers("WB-44-dead", "WEB-OPS")
def test_an_operator_reads_the_evidence_retries_one_dead_letter_and_discards_the_other(
    troubled: WebServer, operations: Page
) -> None:
    first, second = (each["id"] for each in troubled.api("GET", "/v1/dead")["items"])
    operations.goto(f"{troubled.address}/operations/dead?row={first}")
    expect(operations.get_by_role("table", name="Worker crashes during this run")).to_contain_text("crash")
    # Times are in the reader's words and zone, also inside of the error.
    error = operations.locator("td .wrapped").first
    expect(error).to_contain_text(re.compile(r"1 time in a row .* at \d+ \w+ \d\d:\d\d:\d\d \(record"))
    inspect(operations, "operations-dead-evidence")
    # Both at once: the server says what would happen, and nothing happens before it is confirmed.
    operations.get_by_role("checkbox", name="Select all rows").check()
    operations.get_by_role("region", name="Chosen rows").get_by_role("button", name="Retry").click()
    dialog = operations.get_by_role("dialog", name="Retry 2 dead letters?")
    expect(dialog.get_by_role("listitem")).to_contain_text("What failed runs again")
    expect(dialog.get_by_role("listitem")).to_contain_text("Ran when its workers died: crash.")
    inspect(operations, "operations-dead-many")
    dialog.get_by_role("button", name="Back").click()
    operations.keyboard.press("Escape")
    expect(operations.get_by_role("region", name="Chosen rows")).to_be_hidden()
    operations.get_by_role("button", name=f"Retry: {first[:8]}").click()
    confirm(operations, "Retry")
    expect(operations.get_by_text(f"Run {first[:8]} is queued again.")).to_be_visible()
    expect(operations.get_by_role("button", name=f"Retry: {first[:8]}")).to_be_hidden()
    operations.get_by_role("button", name=f"Discard: {second[:8]}").click()
    dialog = operations.get_by_role("dialog")
    dialog.get_by_role("button", name="Discard").click()
    expect(dialog).to_be_visible()  # a reason is required
    dialog.get_by_label("Reason").fill("The flow is gone")
    confirm(operations, "Discard")
    expect(operations.get_by_text(f"Run {second[:8]} is discarded.")).to_be_visible()
    assert troubled.api("GET", "/v1/dead")["items"] == []
    assert "The flow is gone" in json.dumps(troubled.api("GET", f"/v1/runs/{second}/events"))


@pytest.mark.covers("WB-44-notices", "WEB-OPS")
def test_an_operator_sees_notifications_by_state_and_sends_a_failed_one_again(
    troubled: WebServer, operations: Page
) -> None:
    operations.goto(f"{troubled.address}/operations/notifications")
    replay = operations.get_by_role("button", name=re.compile("^Replay"))
    expect(replay.first).to_be_visible()
    failed = len(troubled.api("GET", "/v1/notices?state=failed")["items"])
    assert failed > 0
    # In words, and not by the names of topics.
    expect(operations.get_by_role("table", name="Notifications")).to_contain_text("Question asked")
    expect(operations.get_by_role("table", name="Notifications")).not_to_contain_text("hold.")
    inspect(operations, "operations-notices-failed")
    replay.first.click()
    confirm(operations, "Replay")
    expect(operations.get_by_text("The notification is queued again.")).to_be_visible()
    # It fails again at once; then all are sent again together.
    expect(replay).to_have_count(failed)
    operations.get_by_role("checkbox", name="Select all rows").check()
    operations.get_by_role("region", name="Chosen rows").get_by_role("button", name="Replay").click()
    expect(operations.get_by_role("dialog")).to_contain_text("Is sent with all its attempts.")
    inspect(operations, "operations-notices-many")
    confirm(operations, f"Replay {failed}")
    expect(operations.get_by_text(f"Replay: {failed} done.")).to_be_visible()
    operations.get_by_role("link", name="Sent").click()
    expect(operations).to_have_url(re.compile("state=sent"))
    expect(operations.get_by_text("No notification was sent.")).to_be_visible()
    operations.reload()
    expect(operations.get_by_text("No notification was sent.")).to_be_visible()
    operations.get_by_role("link", name="Waiting").click()
    expect(operations.get_by_role("main")).to_contain_text(re.compile("Next attempt|No notification waits"))


@pytest.mark.covers("WB-44-limits", "WEB-OPS")
def test_the_backlog_shows_lanes_limits_and_runs_that_no_worker_serves(
    troubled: WebServer, operations: Page
) -> None:
    operations.goto(f"{troubled.address}/operations/backlog")
    expect(operations.get_by_role("table", name="Limits")).to_contain_text("flow:claims")
    expect(operations.get_by_role("table", name="Limits")).to_contain_text("100/min")
    expect(operations.get_by_role("table", name="Open questions by age")).to_contain_text("Under 1 hour")
    inspect(operations, "operations-backlog-limits")


@pytest.mark.covers("WB-44-panels", "WEB-OPS")
def test_a_directory_that_is_not_used_says_so_and_offers_nobody(
    troubled: WebServer, operations: Page
) -> None:
    """What its panel would set has no effect, and its people get no questions."""
    troubled.api("PUT", "/v1/directory/people/ada", {"name": "Ada", "email": "ada@example.com"})
    (hold, *_) = troubled.api("GET", "/v1/holds")["items"]
    operations.goto(f"{troubled.address}/operations/members")
    note = operations.get_by_role("note")
    expect(note).to_contain_text("This server does not use this directory")
    expect(note).to_contain_text("Start the server with HOLDFAST_DIRECTORY=store")
    expect(operations.get_by_role("table", name="People")).to_contain_text("Ada")
    expect(operations.get_by_role("button", name="Set absence: Ada")).to_have_count(0)
    show(operations, "/settings")
    expect(operations.get_by_text("Absences cannot be set here.")).to_be_visible()
    asked: list[str] = []
    operations.on("request", lambda sent: asked.append(sent.url))
    show(operations, f"/inbox/all/{hold['id']}")
    operations.get_by_role("button", name="More", exact=True).click()
    operations.get_by_role("menuitem", name="Reassign").click()
    # A name can be typed; none is offered.
    operations.get_by_label("To", exact=True).fill("dana")
    expect(operations.locator("datalist option")).to_have_count(0)
    assert [url for url in asked if "/directory/people" in url] == []


@pytest.mark.covers("WB-45", "WEB-OPS")
def test_each_chart_has_its_table_and_its_span_in_the_address(troubled: WebServer, operations: Page) -> None:
    loaded: list[str] = []
    operations.on("request", lambda sent: loaded.append(sent.url))
    operations.goto(f"{troubled.address}/operations/workers")
    expect(operations.get_by_role("table", name="Workers")).to_be_visible()
    assert not any("/Chart-" in each for each in loaded)  # loaded only where it is shown
    operations.goto(f"{troubled.address}/operations/metrics")
    backlog = operations.get_by_role("region", name="Open questions by age")
    expect(backlog.locator("canvas")).to_be_visible()
    expect(operations.get_by_role("region", name="Time to decision").locator("canvas")).to_be_visible()
    expect(operations.get_by_role("region", name="Ended runs").locator("canvas")).to_be_visible()
    missed = operations.get_by_role("region", name="Missed deadlines")
    expect(missed).to_contain_text("No deadline was missed")
    assert any("/Chart-" in each for each in loaded)
    backlog.get_by_text("Numbers").click()
    newest = backlog.get_by_role("table").get_by_role("row").nth(1)
    assert newest.get_by_role("cell").all_inner_texts() == ["1", "0", "0", "0"]
    operations.get_by_role("region", name="Time to decision").get_by_text("Numbers").click()
    inspect(operations, "operations-metrics")
    operations.get_by_role("link", name="7 days").click()
    expect(operations).to_have_url(re.compile("span=week"))
    operations.reload()
    expect(operations.get_by_role("link", name="7 days")).to_have_attribute("aria-current", "page")
    expect(backlog.locator("canvas")).to_be_visible()


@pytest.mark.covers("WB-44-verify", "WEB-OPS")
def test_verify_names_the_first_record_that_was_changed(troubled: WebServer, operations: Page) -> None:
    operations.goto(f"{troubled.address}/operations/audit")
    operations.get_by_role("button", name="Verify").click()
    expect(operations.get_by_text(re.compile(r"\d+ records? unchanged"))).to_be_visible()
    changed = change_records(apsw.Connection(troubled.store.removeprefix("sqlite:")))
    operations.get_by_role("button", name="Verify").click()
    expect(operations.get_by_text(f"Record {changed} was changed")).to_be_visible()
    inspect(operations, "operations-audit-wrong")


def change_records(file: apsw.Connection) -> int:
    """As somebody with the file would, who leaves no other trace: the triggers are back afterwards, so that
    the server goes on writing its audit for the tests that follow. Returns the number of the first."""
    file.set_busy_timeout(60_000)
    triggers = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit'"
    file.execute("BEGIN IMMEDIATE")
    before = file.execute(triggers).fetchall()
    for name, _ in before:
        file.execute(f"DROP TRIGGER {name}")
    found = file.execute("SELECT seq FROM audit WHERE tenant = 'default' ORDER BY seq").fetchall()
    file.execute("UPDATE audit SET actor = 'user:mallory' WHERE seq >= ?", (found[1][0],))
    assert file.changes() > 1
    for _, text in before:
        file.execute(str(text))
    file.execute("COMMIT")
    file.close()
    return int(str(found[1][0]))


@pytest.mark.covers("WB-44-panels", "WEB-OPS")
def test_an_operator_replays_one_message_that_was_given_up_and_discards_the_other(
    troubled: WebServer, operations: Page
) -> None:
    path = "/v1/queues/default/letters/messages"
    for name in ("first", "second"):
        troubled.api("POST", path, {"id": name, "payload": {"to": f"<b>{name}</b>"}, "type": "letter"})
        troubled.api("POST", f"{path}/{name}/dead", {"error": f"no address in {name}"})
    operations.goto(f"{troubled.address}/operations/queues")
    operations.get_by_role("button", name="letters").click()
    messages = operations.get_by_role("table", name="Messages that were given up")
    expect(messages.get_by_role("row")).to_have_count(3)
    expect(messages).to_contain_text("no address in first")
    expect(messages).to_contain_text("<b>first</b>")
    inspect(operations, "operations-dead-messages")
    for action, name, said in (("Replay", "first", "is ready again"), ("Discard", "second", "is discarded")):
        operations.get_by_role("button", name=f"{action}: {name}").click()
        operations.get_by_role("dialog").get_by_role("button", name=action).click()
        expect(operations.get_by_text(f"{name} {said}")).to_be_visible()
    expect(operations.get_by_text("No message was given up.")).to_be_visible()
    assert troubled.api("GET", f"{path}/first")["state"] == "ready"
    found = troubled.api("GET", f"{path}?state=dead")
    assert found["items"] == []
