"""Runs that ask for a file."""

from __future__ import annotations

from typing import Any

from holdfast import Context, Flow
from holdfast.types.hold import HoldRow
from tests.holds.actions.scene import Scene

PDF = b"%PDF-1.7 a signed contract"
PNG = b"\x89PNG\r\n\x1a\n a picture"
DECIDE = {"type": "decision", "options": ["approve", "reject"]}


def contract(**parts: Any) -> list[dict[str, Any]]:
    return [{"type": "input", "field": "contract", "kind": "file", **parts}, DECIDE]


async def asks(scene: Scene, sections: list[dict[str, Any]] | None = None, **asked: Any) -> HoldRow:
    """A run that has stopped at a form with a file, and reads it afterwards."""
    scene.flow = flow = Flow("signing", effect="pure")
    given = {"assignee": "user:dana@acme", "into": "form", **asked}
    flow.hold("sign", prompt="Signed?", sections=sections or contract(), **given)

    @flow.node(effect="read")
    async def read(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        reference = s["form"]["contract"]
        return {"read": None if reference is None else await ctx.file(reference)}

    flow.edge("sign", read)
    result = await flow.run({}, on=scene.hf)
    return await scene.row(result.holds[0].id)
