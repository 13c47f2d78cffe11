"""Files of an answer: attached first, named by the decision, read by the run."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.errors import (
    ForbiddenError,
    FormInvalidError,
    HoldDecidedError,
    HoldNotFoundError,
    InputError,
    NotFoundError,
)
from holdfast.holds.forms.attachments import attach
from holdfast.holds.service import HoldService
from tests.holds.actions.scene import DANA, FINN, FOREIGN, Scene, data, said
from tests.holds.forms.signed import PDF, PNG, asks, contract

pytestmark = pytest.mark.anyio


@pytest.mark.covers("HOLD-FORM-03", "HOLD-SEC-14")
async def test_run_reads_the_file_that_its_decision_names(scene: Scene, tmp_path: Path) -> None:
    row = await asks(scene)
    path = tmp_path / "contract.pdf"
    path.write_bytes(PDF)
    reference = await scene.holds.attach(DANA, row.id, "contract", "contract.pdf", path)
    digest = sha256(PDF).hexdigest()
    assert reference == {
        "sha256": digest, "size": len(PDF), "name": "contract.pdf", "media_type": "application/pdf",
    }  # fmt: skip
    body = {"decision": "approve", "response_data": {"contract": reference}}
    decided = await scene.holds.resolve(DANA, row.id, body)
    assert said(decided.row)["response_data"]["contract"]["sha256"] == digest
    result = await scene.goes_on(row)
    assert result.status == "completed"
    assert result.state["read"] == PDF


@pytest.mark.covers("HOLD-FORM-03", "HOLD-SEC-14")
@pytest.mark.parametrize("size", [2 * 2**20])
async def test_large_file_lies_outside_the_database_as_it_came(scene: Scene, size: int) -> None:
    row = await asks(scene)
    content = PDF + b"\x00" * size
    reference = await scene.holds.attach(DANA, row.id, "contract", "large.pdf", content)
    assert await scene.holds.read_file(DANA, row.id, reference["sha256"]) == (reference, content)
    assert [each.file for each in await scene.holds.files(DANA, row.id)] == [reference]
    (entry,) = await scene.audit(row, "attached")
    assert data(entry)["field"] == "contract"
    assert reference["sha256"] not in entry.data.decode()
    assert [each.actor for each in await scene.audit(row, "file_read")] == [DANA.id]


@pytest.mark.covers("HOLD-SEC-14", "HOLD-FORM-01", "HOLD-BAD-03")
async def test_decision_is_refused_when_it_names_a_file_that_was_not_attached_to_its_hold(
    scene: Scene,
) -> None:
    first, second = await asks(scene), await asks(scene)
    reference = await scene.holds.attach(DANA, first.id, "contract", "contract.pdf", PDF)
    for named in (reference, {**reference, "sha256": "0" * 64}):
        with pytest.raises(FormInvalidError, match="contract: names a file that was not attached") as caught:
            await scene.holds.resolve(
                DANA, second.id, {"decision": "approve", "response_data": {"contract": named}}
            )
        assert caught.value.facts["errors"][0]["field"] == "contract"
    for changed in ({"name": "other.pdf"}, {"size": 1}, {"media_type": "image/png"}):
        filled = {"contract": {**reference, **changed}}
        with pytest.raises(FormInvalidError):
            await scene.holds.resolve(DANA, first.id, decision="approve", response_data=filled)
    assert (await scene.row(first.id)).status == (await scene.row(second.id)).status == "pending"


FULL = "x" * 300
REFUSED: list[tuple[dict[str, Any], str, bytes, str | None, str]] = [
    ({}, "contract.pdf", PNG, None, "says application/pdf, and its content is image/png"),
    ({}, "contract", PNG, "application/pdf", "said to be application/pdf, and its content is image/png"),
    ({}, "a.png", b"just text", None, "its content is text/plain"),
    ({}, "a.txt", b"<html><script>alert(1)</script>", None, "its content is text/html"),
    ({}, "page.html", b"<html><body>", None, "may run code when it is opened"),
    ({}, "pic.svg", b"<svg onload='x'/>", None, "may run code when it is opened"),
    ({}, "tool.exe", b"MZ\x90\x00", None, "may run code when it is opened"),
    ({}, "tool", b"\x7fELF\x02", None, "may run code when it is opened"),
    ({}, "run", b"#!/bin/sh\nrm", None, "may run code when it is opened"),
    ({"accept": ["image/*"]}, "contract.pdf", PDF, None, "is not accepted"),
    ({"max_size": 4}, "contract.pdf", PDF, None, "is larger than 4 bytes"),
    ({}, "empty.pdf", b"", None, "is empty"),
    ({}, "../contract.pdf", PDF, None, "not a plain file name"),
    ({}, f"{FULL}.pdf", PDF, None, "not a plain file name"),
    ({}, "contract\u202efdp.exe", PDF, None, "invisible characters"),
    ({}, "contract.pdf", PDF, "pdf; rm", "is not a media type"),
]


@pytest.mark.covers("HOLD-SEC-14", "HOLD-FORM-03", "HOLD-SEC-08")
@pytest.mark.parametrize(("parts", "name", "content", "media", "why"), REFUSED)
async def test_file_is_refused_when_it_is_not_what_the_field_takes(
    parts: dict[str, Any], name: str, content: bytes, media: str | None, why: str, tmp_path: Path
) -> None:
    async with Holdfast("memory:") as hf:
        scene = Scene(hf, None, await hf.holds())  # type: ignore[arg-type]
        row = await asks(scene, contract(**parts))
        with pytest.raises(FormInvalidError, match=why) as caught:
            await scene.holds.attach(DANA, row.id, "contract", name, content, media_type=media)
        assert caught.value.status == 422
        assert not await scene.holds.files(DANA, row.id)
        assert [data(each)["action"] for each in await scene.audit(row, "refused")] == ["attach"]


@pytest.mark.covers("HOLD-FORM-03")
@pytest.mark.parametrize(
    ("parts", "name", "content", "media", "found"),
    [
        ({}, "scan.JPG", b"\xff\xd8\xff\xe0", None, "image/jpeg"),
        ({}, "table.csv", b"a,b\n1,2\n", "text/plain", "text/csv"),
        ({}, "report.docx", b"PK\x03\x04zipped", None,
         "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ({}, "data", b"\x00\x01\x02", "application/x-own", "application/x-own"),
        ({}, "data", b"\x00\x01\x02", None, "application/octet-stream"),
        ({"accept": ["text/html"]}, "page.html", b"<!DOCTYPE html>", None, "text/html"),
        ({"accept": ["image/*"]}, "a.png", PNG, None, "image/png"),
    ],
)  # fmt: skip
async def test_file_is_known_by_its_content_and_what_its_name_adds(
    parts: dict[str, Any], name: str, content: bytes, media: str | None, found: str
) -> None:
    async with Holdfast("memory:") as hf:
        scene = Scene(hf, None, await hf.holds())  # type: ignore[arg-type]
        row = await asks(scene, contract(**parts))
        reference = await scene.holds.attach(DANA, row.id, "contract", name, content, media_type=media)
        assert reference["media_type"] == found
        again = await scene.holds.attach(DANA, row.id, "contract", name, content, media_type=media)
        assert again == reference
        assert len(await scene.holds.files(DANA, row.id)) == 1


@pytest.mark.covers("HOLD-SEC-14", "HOLD-SEC-11")
async def test_only_who_may_decide_an_open_hold_attaches_and_only_who_may_see_it_reads(scene: Scene) -> None:
    row = await asks(scene)
    with pytest.raises(ForbiddenError):
        await scene.holds.attach(FINN, row.id, "contract", "contract.pdf", PDF)
    with pytest.raises(HoldNotFoundError):
        await scene.holds.attach(FOREIGN, row.id, "contract", "contract.pdf", PDF)
    reference = await scene.holds.attach(DANA, row.id, "contract", "contract.pdf", PDF)
    with pytest.raises(ForbiddenError):
        await scene.holds.read_file(FINN, row.id, reference["sha256"])
    with pytest.raises(HoldNotFoundError):
        await scene.holds.read_file(FOREIGN, row.id, reference["sha256"])
    with pytest.raises(NotFoundError):
        await scene.holds.read_file(DANA, row.id, "0" * 64)
    for field in ("decision", "other", "contract.page"):
        with pytest.raises(FormInvalidError, match="is not a file field of this hold"):
            await scene.holds.attach(DANA, row.id, field, "contract.pdf", PDF)
    await scene.holds.resolve(DANA, row.id, {"decision": "reject"})
    with pytest.raises(HoldDecidedError):
        await scene.holds.attach(DANA, row.id, "contract", "late.pdf", PDF)


@pytest.mark.covers("HOLD-SEC-14")
async def test_scan_that_refuses_or_breaks_lets_nothing_through(scene: Scene) -> None:
    row = await asks(scene)
    harness = scene.holds.ctx

    async def finds(file: dict[str, Any], content: bytes) -> str | None:
        return "EICAR" if b"virus" in content else None

    def breaks(file: dict[str, Any], content: bytes) -> str | None:
        raise OSError("no scanner")

    harness.scan = finds
    with pytest.raises(FormInvalidError, match="refused by the scan: EICAR"):
        await scene.holds.attach(DANA, row.id, "contract", "contract.pdf", PDF + b"virus")
    assert await scene.holds.attach(DANA, row.id, "contract", "contract.pdf", PDF)
    harness.scan = breaks
    with pytest.raises(FormInvalidError, match="could not be scanned"):
        await scene.holds.attach(DANA, row.id, "contract", "other.pdf", PDF)


@pytest.mark.covers("HOLD-FORM-03")
async def test_file_of_a_tables_row_is_named_by_its_column(scene: Scene) -> None:
    table = {"type": "input", "field": "items", "kind": "table", "columns": [
        {"field": "what"}, {"field": "invoice", "kind": "file"}]}  # fmt: skip
    row = await asks(scene, [*contract(), table])
    reference = await scene.holds.attach(DANA, row.id, "items.invoice", "invoice.png", PNG)
    rows = [{"what": "a chair", "invoice": reference}, {"what": "nothing"}]
    with pytest.raises(FormInvalidError, match="contract: names a file"):
        await scene.holds.resolve(
            DANA, row.id, decision="approve", response_data={"contract": reference, "items": rows}
        )
    await scene.holds.resolve(DANA, row.id, decision="approve", response_data={"items": rows})
    assert said(await scene.row(row.id))["response_data"]["items"][0]["invoice"] == reference


@pytest.mark.covers("HOLD-SEC-14", "HOLD-SEC-11")
async def test_run_reads_no_file_that_it_was_not_given(scene: Scene) -> None:
    row = await asks(scene)
    reference = await scene.holds.attach(DANA, row.id, "contract", "contract.pdf", PDF)
    flow = Flow("thief", effect="read")

    @flow.node
    async def take(ctx: Context) -> dict[str, Any]:
        with pytest.raises(NotFoundError):
            await ctx.file(reference)
        with pytest.raises(InputError, match="is not a reference to a file"):
            await ctx.file("contract.pdf")  # type: ignore[arg-type]
        return {"done": True}

    assert (await flow.run({}, on=scene.hf)).status == "completed"


async def test_files_are_refused_where_there_is_no_place_for_them(scene: Scene) -> None:
    bare = HoldService(scene.holds.store)
    row = await asks(scene)
    with pytest.raises(InputError, match="cannot store files"):
        await bare.attach(DANA, row.id, "contract", "contract.pdf", PDF)
    with pytest.raises(InputError, match="cannot be read"):
        await attach(scene.holds.ctx, DANA, row.id, "contract", "a.pdf", Path("/nowhere/a.pdf"))


@pytest.mark.covers("HOLD-SEC-14")
async def test_instance_hands_its_scan_to_the_people() -> None:
    async with Holdfast("memory:", scan=lambda file, content: "never") as hf:
        scene = Scene(hf, None, await hf.holds())  # type: ignore[arg-type]
        row = await asks(scene)
        with pytest.raises(FormInvalidError, match="refused by the scan: never"):
            await scene.holds.attach(DANA, row.id, "contract", "contract.pdf", PDF)
