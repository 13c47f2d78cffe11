from __future__ import annotations

import pytest

from tests.api.conftest import Server

pytestmark = pytest.mark.anyio

INPUT = {"order": "A", "amount": 1}
DAILY = {"flow": "refund", "cron": "0 9 * * mon-fri", "zone": "Europe/Berlin", "input": INPUT}


@pytest.mark.covers("SERVER-API-09", "SERVER-API-15")
async def test_schedule_is_put_paused_triggered_and_dropped(shop: Server) -> None:
    any_version = {"If-Match": "*"}
    await shop.json("PUT", "/v1/schedules/daily/refunds", 412, json=DAILY, headers=any_version)
    made = await shop.client.put("/v1/schedules/daily/refunds", json=DAILY)
    assert made.status_code == 201, made.text
    shown = await shop.json("GET", made.headers["location"])
    assert (shown["cron"], shown["zone"], shown["paused"]) == ("0 9 * * mon-fri", "Europe/Berlin", False)
    ahead = (await shop.json("GET", "/v1/schedules/daily/refunds/next", params={"count": 3}))["items"]
    assert ahead == sorted(ahead)
    assert shown["next_at"] == ahead[0]
    stale = {"If-Match": '"999"'}
    await shop.json("PUT", "/v1/schedules/daily/refunds", 412, json=DAILY, headers=stale)
    seen = {"If-Match": made.headers["etag"]}
    changed = {**DAILY, "cron": None, "every": "15m"}
    assert (await shop.json("PUT", "/v1/schedules/daily/refunds", json=changed, headers=seen))[
        "every"
    ] == "900s"
    paused = await shop.json("POST", "/v1/schedules/daily/refunds/pause", json={"reason": "audit"})
    assert (paused["paused"], paused["reason"], paused["next_at"]) == (True, "audit", None)
    key = {"Idempotency-Key": "once"}
    first = await shop.json("POST", "/v1/schedules/daily/refunds/trigger", 201, headers=key)
    again = await shop.json("POST", "/v1/schedules/daily/refunds/trigger", 201, headers=key)
    assert first == again
    # A request is always due; what is shown is the next start by the schedule itself.
    assert (await shop.json("GET", "/v1/schedules/daily/refunds"))["next_at"] is None
    resumed = await shop.json("POST", "/v1/schedules/daily/refunds/resume")
    ahead = (await shop.json("GET", "/v1/schedules/daily/refunds/next", params={"count": 1}))["items"]
    assert (resumed["paused"], resumed["next_at"]) == (False, ahead[0])
    page = await shop.json("GET", "/v1/schedules")
    assert [each["name"] for each in page["items"]] == ["daily/refunds"]
    await shop.json("DELETE", "/v1/schedules/daily/refunds", 412, headers=stale)
    await shop.json("DELETE", "/v1/schedules/daily/refunds", 204)
    await shop.json("DELETE", "/v1/schedules/daily/refunds", 404)


REFUSED: list[tuple[str, dict[str, object], int]] = [
    ("a", {"flow": "refund"}, 422),
    ("a", {"flow": "refund", "cron": "61 * * * *"}, 422),
    ("a", {"flow": "refund", "every": "15m", "at": "2030-01-01T00:00:00Z"}, 422),
    ("a", {"flow": "nothing", "every": "15m"}, 404),
    ("a", {"flow": "refund", "every": "15m", "input": {"amount": "many"}}, 422),
    ("-a", {"flow": "refund", "every": "15m"}, 422),
]


@pytest.mark.covers("SERVER-BAD-01")
async def test_schedule_that_makes_no_sense_is_refused(shop: Server) -> None:
    for name, body, status in REFUSED:
        await shop.json("PUT", f"/v1/schedules/{name}", status, json=body)
    assert (await shop.json("GET", "/v1/schedules"))["items"] == []
