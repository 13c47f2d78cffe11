"""Around holds: files, links, evidence, the directory, calendars, policies, deployments, given-up notices."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from anyio import run_process

from holdfast import Flow, Holdfast
from holdfast.errors import LinkInvalidError
from holdfast.holds.links.open import Links
from holdfast.holds.notify.settings import parse_settings
from tests.api.people import Hall, hall_of

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
PNG = b"\x89PNG\r\n\x1a\n" + b"\r\n--x\r\n\x00" * 200
NOWHERE = {"name": "desk", "kind": "slack", "url": "http://127.0.0.1:9/"}


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Hall]:
    notify = parse_settings({"channel": [NOWHERE]})
    address = f"sqlite:{tmp_path / 'h.db'}"
    async with Holdfast(address, directory="store", notify=notify) as hf, hall_of(hf) as found:
        for name in ("dana", "sam", "ada"):
            person = {"email": f"{name}@acme", "name": name.title()}
            await found.ask("ada", "PUT", f"/v1/directory/people/{name}", json=person)
        yield found


@pytest.mark.covers("SERVER-API-08", "SERVER-API-17")
async def test_files_are_attached_kept_and_downloaded_never_opened(hall: Hall) -> None:
    flow = Flow("claims", effect="pure")
    form = [
        {"type": "input", "field": "photo", "kind": "file", "required": True},
        {"type": "decision", "field": "decision", "options": ["accept", "refuse"]},
    ]
    flow.hold("look", prompt="Is it broken?", sections=form, assignee="user:dana@acme")
    (hold,) = (await flow.run({}, on=hall.hf)).holds
    at = f"/v1/holds/{hold.id}"
    sent = {"photo": ('so "broken".png', PNG, "image/png")}
    (kept,) = (await hall.ask("dana", "POST", f"{at}/files", status=201, files=sent))["items"]
    assert (kept["field"], kept["file"]["size"], kept["file"]["media_type"]) == (
        "photo",
        len(PNG),
        "image/png",
    )
    assert (await hall.ask("dana", "GET", f"{at}/files"))["items"] == [kept]
    answer = await hall.send("dana", "GET", f"{at}/files/{kept['file']['sha256']}")
    assert answer.content == PNG
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert (answer.headers["content-type"], answer.headers["x-content-type-options"]) == (
        "application/octet-stream", "nosniff",
    )  # fmt: skip
    for odd in ({"photo": ("a.png", b"<html>", "image/png")}, {"other": ("a.png", PNG, "image/png")}):
        wrong = await hall.send("dana", "POST", f"{at}/files", files=odd)
        assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, next(iter(odd)))
    assert (await hall.send("dana", "POST", f"{at}/files", json={})).status_code == 415
    broken = {"Content-Type": "multipart/form-data; boundary=x"}
    for body in (b"", b"--x\r\n", b"--x\r\nno head--x--", b"nothing"):
        sent = await hall.send("dana", "POST", f"{at}/files", content=body, headers=broken)
        assert sent.status_code == 422, body
    assert (await hall.send("sam", "GET", f"{at}/files")).status_code == 403
    schema = await hall.ask("dana", "GET", f"{at}/schema")
    assert (schema["decisions"], schema["json_schema"]["required"]) == (["accept", "refuse"], ["photo"])
    bare = await hall.send("dana", "POST", f"{at}/resolve", json={"decision": "accept", "response_data": {}})
    assert (bare.status_code, bare.json()["errors"][0]["field"]) == (422, "photo")
    said = {"decision": "accept", "response_data": {"photo": kept["file"]}}
    assert (await hall.ask("dana", "POST", f"{at}/resolve", json=said))["status"] == "resolved"


@pytest.mark.covers("SERVER-API-08", "HI-5")
async def test_evidence_is_handed_out_and_checked_offline(hall: Hall, tmp_path: Path) -> None:
    hold = await hall.asks()
    await hall.ask("dana", "POST", f"/v1/holds/{hold}/resolve", json={"decision": "approve"})
    answer = await hall.send("dana", "GET", f"/v1/holds/{hold}/evidence")
    assert answer.headers["content-disposition"] == f'attachment; filename="{hold}.evidence.json"'
    file = tmp_path / "pack.json"
    file.write_bytes(answer.content)
    tool = [sys.executable, str(ROOT / "tools" / "verify_evidence.py"), str(file)]
    assert (await run_process(tool, check=False)).returncode == 0
    file.write_bytes(answer.content.replace(b"approve", b"reject!", 1))
    assert (await run_process(tool, check=False)).returncode != 0
    assert (await hall.send("sam", "GET", f"/v1/holds/{hold}/evidence")).status_code == 403


@pytest.mark.covers("SERVER-API-08")
async def test_link_is_made_for_one_person_and_void_when_revoked(hall: Hall) -> None:
    hold = await hall.asks()
    ctx = (await hall.hf.holds()).ctx
    asked = await hall.send("dana", "POST", f"/v1/holds/{hold}/links", json={"to": "user:dana"})
    assert asked.status_code == 403
    # Nothing can send a link to another person here, and it is never returned.
    other = await hall.send("ada", "POST", f"/v1/holds/{hold}/links", json={"to": "user:dana"})
    assert (other.status_code, "token" in other.text) == (409, False)
    made = await hall.ask("ada", "POST", f"/v1/holds/{hold}/links", status=201, json={"to": "user:ada@acme"})
    assert (made["way"], (await Links(ctx).look(made["token"])).row.id) == ("decide", hold)
    several = await hall.send("ada", "POST", f"/v1/holds/{hold}/links", json={"to": "group:all"})
    assert several.status_code == 422
    await hall.ask("dana", "DELETE", f"/v1/holds/{hold}/links")
    with pytest.raises(LinkInvalidError):
        await Links(ctx).look(made["token"])


@pytest.mark.covers("SERVER-API-08", "AS-11")
async def test_directory_says_who_decides_from_now_on(hall: Hall) -> None:
    await hall.ask("ada", "PUT", "/v1/directory/groups/leads", json={"members": ["sam"]})
    hold = await hall.asks("group:leads")
    path, yes = f"/v1/holds/{hold}/resolve", {"decision": "approve"}
    assert (await hall.send("dana", "POST", path, json=yes)).status_code == 403
    emptied = await hall.send("dana", "PUT", "/v1/directory/groups/leads", json={"members": []})
    assert emptied.status_code == 403
    away = {"substitute": "dana"}
    await hall.ask("ada", "PUT", "/v1/directory/people/sam/away", status=204, json=away)
    person = await hall.ask("vera", "GET", "/v1/directory/people/sam@acme")
    assert (person["id"], person["away"]["substitute"]) == ("sam", "dana")
    done = await hall.ask("dana", "POST", path, json=yes)
    assert done["resolution"]["on_behalf_of"] == "user:sam"
    await hall.ask("ada", "DELETE", "/v1/directory/people/sam/away", status=204)
    await hall.ask("ada", "PUT", "/v1/directory/roles/cfo", json={"members": ["ada"]})
    listed = {kind: (await hall.ask("ada", "GET", f"/v1/directory/{kind}"))["items"]
              for kind in ("people", "groups", "roles")}  # fmt: skip
    assert ([each["id"] for each in listed["people"]], listed["roles"][0]["members"]) == (
        ["ada", "dana", "sam"], ["ada"],
    )  # fmt: skip
    for wrong, status in (({"members": ["nobody"]}, 404), ({"members": "sam"}, 422)):
        assert (await hall.send("ada", "PUT", "/v1/directory/groups/x", json=wrong)).status_code == status
    await hall.ask("ada", "DELETE", "/v1/directory/groups/leads", status=204)
    await hall.ask("ada", "DELETE", "/v1/directory/people/sam", status=204)
    assert (await hall.send("ada", "GET", "/v1/directory/people/sam")).status_code == 404
    assert (await hall.ask("eve", "GET", "/v1/directory/people"))["items"] == []


@pytest.mark.covers("SERVER-API-08")
async def test_rules_calendars_deployments_and_skills_are_kept(hall: Hall) -> None:
    week = {"zone": "Europe/Berlin", "hours": {"mon-fri": ["09:00-17:00"]}}
    kept: Any = await hall.ask("ada", "PUT", "/v1/calendars/default", json=week)
    assert (kept["name"], kept["rules"]) == ("default", week)
    odd = await hall.send("ada", "PUT", "/v1/calendars/default", json={"hours": 7})
    assert (odd.status_code, odd.json()["code"]) == (422, "settings_invalid")
    policy = {"rules": [{"name": "small", "when": "flow == 'refund'", "assign": "group:desk"}]}
    written = await hall.ask("ada", "PUT", "/v1/policies/desk", json=policy)
    assert (written["name"], written["version"]) == ("desk", 1)
    hold = await hall.asks()
    await hall.ask("dana", "POST", f"/v1/holds/{hold}/resolve", json={"decision": "approve"})
    past = await hall.ask("ada", "POST", "/v1/policies/simulate", json={})
    assert (past["looked_at"], past["rules"]) == (1, {"desk/small": 1})
    await hall.ask("ada", "DELETE", "/v1/policies/desk", status=204)
    assert (await hall.ask("ada", "GET", "/v1/policies"))["items"] == []
    skill = {"instructions": "Be kind.", "tools": [{"name": "look_up"}]}
    published = await hall.ask("ada", "PUT", "/v1/skills/refunds/1.0.0", json=skill)
    other = await hall.send("ada", "PUT", "/v1/skills/refunds/1.0.0", json={"instructions": "Be quick."})
    assert (published["version"], other.status_code) == ("1.0.0", 409)
    desk = {"flow": "refund", "skills": ["refunds@^1"]}
    made = await hall.ask("ada", "PUT", "/v1/deployments/desk", json=desk)
    assert (made["name"], made["skills"], made["delegation"]) == ("desk", ["refunds@^1"], None)
    held = await hall.ask("ada", "PUT", "/v1/deployments/desk/delegation", json={"to": "user:dana"})
    assert held["delegation"]["to"] == "user:dana"
    gone = await hall.ask("ada", "DELETE", "/v1/deployments/desk/delegation")
    assert gone["delegation"]["revoked"] is True
    assert (await hall.ask("ada", "POST", "/v1/skills/refunds/1.0.0/yank", json={"reason": "old"}))[
        "yanked_at"
    ]
    assert (await hall.send("vera", "PUT", "/v1/deployments/desk", json={"flow": "x"})).status_code == 403
    assert (await hall.send("ada", "GET", "/v1/deployments/nosuch")).status_code == 404


@pytest.mark.covers("SERVER-API-08", "WB-67", "WB-67-notices")
async def test_notice_that_was_given_up_is_replayed(hall: Hall) -> None:
    hold = await hall.asks()
    deliverer = (await hall.hf.service()).runtime.deliverer
    assert deliverer is not None
    await deliverer.deliver()  # an address that the rules of egress do not allow: refused for good
    (dead,) = (await hall.ask("ada", "GET", "/v1/notices/dead"))["items"]
    assert (dead["hold_id"], dead["topic"]) == (hold, "hold.created")
    assert (await hall.ask("eve", "GET", "/v1/notices/dead"))["items"] == []
    (failed,) = (await hall.ask("ada", "GET", "/v1/notices?state=failed"))["items"]
    assert failed == {**dead, "state": "failed", "due_at": None}
    assert (await hall.ask("eve", "GET", "/v1/notices?state=failed"))["items"] == []
    assert (await hall.ask("ada", "GET", "/v1/notices?state=sent"))["items"] == []
    await hall.ask("ada", "GET", "/v1/notices?state=lost", status=422)
    await hall.ask("dana", "GET", "/v1/notices", status=403)
    replay = f"/v1/notices/dead/{dead['id']}/replay"
    assert (await hall.send("eve", "POST", replay)).status_code == 404
    assert (await hall.send("dana", "POST", replay)).status_code == 403
    await hall.ask("ada", "POST", replay, status=202)
    assert (await hall.ask("ada", "GET", "/v1/notices/dead"))["items"] == []
    (waiting,) = (await hall.ask("ada", "GET", "/v1/notices?state=waiting"))["items"]
    assert (waiting["id"], waiting["attempts"]) == (dead["id"], 0)
    assert waiting["due_at"] is not None
    assert (await hall.send("ada", "POST", replay)).status_code == 404


@pytest.mark.covers("WB-44-notices", "WB-67-notices")
async def test_many_failed_notices_are_replayed_and_a_preview_says_which_are_sent(hall: Hall) -> None:
    holds = [await hall.asks() for _ in range(2)]
    deliverer = (await hall.hf.service()).runtime.deliverer
    assert deliverer is not None
    await deliverer.deliver()
    numbers = {each["hold_id"]: each["id"] for each in (await hall.ask("ada", "GET", "/v1/notices"))["items"]}
    await hall.ask("dana", "POST", f"/v1/holds/{holds[0]}/resolve", json={"decision": "approve"})
    body = {"notices": [numbers[holds[0]], numbers[holds[1]], 999_999]}

    preview = await hall.ask("ada", "POST", "/v1/notices/replay", json=body)
    assert (preview["preview"], preview["done"]) == (True, 2)
    assert [(each["done"], each["sends"]) for each in preview["items"]] == [
        (True, False),
        (True, True),
        (False, False),
    ]
    assert preview["items"][0]["text"].startswith("Will not be sent: the hold is already")
    foreign = await hall.ask("eve", "POST", "/v1/notices/replay", json={**body, "preview": False})
    assert foreign["done"] == 0
    await hall.ask("dana", "POST", "/v1/notices/replay", json=body, status=403)
    done = await hall.ask("ada", "POST", "/v1/notices/replay", json={**body, "preview": False})
    assert [each["done"] for each in done["items"]] == [True, True, False]
    again = await hall.ask("ada", "POST", "/v1/notices/replay", json={**body, "preview": False})
    assert again["done"] == 0
