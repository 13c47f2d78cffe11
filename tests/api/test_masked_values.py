"""What a client read and sends back: the mask of a secret does not become the value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.types.redaction import redactor
from tests.api.conftest import Server

pytestmark = pytest.mark.anyio

SECRET = "hunter2hunter2hunter2"
RULES = {"rules": [{"name": "all", "when": f"input.code == '{SECRET}'", "assign": "user:dana"}]}


@pytest.fixture(autouse=True)
def known_secret() -> Iterator[None]:
    redactor.learn_for("default", SECRET)
    yield
    redactor.forget()


@pytest.mark.parametrize(
    ("path", "body", "read"),
    [
        ("/v1/policies/guard", RULES, lambda shown: shown["rules"]),
        (
            "/v1/schedules/daily",
            {"flow": "refund", "every": "1h", "input": {"order": SECRET, "amount": 1}},
            lambda shown: {"flow": "refund", "every": "1h", "input": shown["input"]},
        ),
    ],
    ids=["policy", "schedule"],
)
async def test_mask_that_is_sent_back_is_refused_and_the_value_is_kept(
    shop: Server, path: str, body: dict[str, Any], read: Any
) -> None:
    made = await shop.client.put(path, json=body)
    assert made.status_code in (200, 201), made.text
    shown = made.json()
    assert SECRET not in made.text
    assert "***" in made.text
    headers = {"If-Match": made.headers["etag"]} if "etag" in made.headers else {}
    no = await shop.client.put(path, json=read(shown), headers=headers)
    assert (no.status_code, "in place of a secret" in no.text) == (422, True), no.text
    again = await shop.client.put(path, json=body, headers=headers)
    assert again.status_code == 200, again.text


async def test_view_with_a_mask_that_is_sent_back_is_refused(shop: Server) -> None:
    body = {"title": "mine", "filters": {"q": SECRET}}
    made = await shop.client.post("/v1/views", json=body)
    assert "***" in made.text
    path = f"/v1/views/{made.json()['id']}"
    no = await shop.client.put(path, json={"title": "other", "filters": {"q": "***"}})
    assert (no.status_code, "in place of a secret" in no.text) == (422, True)
    # A mask that stands for nothing is text.
    plain = await shop.client.put(path, json={"title": "*** stars", "filters": {"q": SECRET}})
    assert (plain.status_code, plain.json()["title"]) == (200, "*** stars")


async def test_key_with_another_secret_is_another_request(shop: Server) -> None:
    other = "swordfishswordfish99"
    redactor.learn_for("default", other)
    headers = {"Idempotency-Key": "k1"}
    bodies = [{"flow": "refund", "input": {"order": each, "amount": 1}} for each in (SECRET, other)]
    first = await shop.json("POST", "/v1/runs", 201, json=bodies[0], headers=headers)
    assert (await shop.json("POST", "/v1/runs", 200, json=bodies[0], headers=headers))["id"] == first["id"]
    no = await shop.json("POST", "/v1/runs", 422, json=bodies[1], headers=headers)
    assert no["code"] == "idempotency_key_reused"
