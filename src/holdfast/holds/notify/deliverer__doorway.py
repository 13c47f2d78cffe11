"""Where a notice leads: to the hold in the inbox, or by a link that is the recipient's own."""

from __future__ import annotations

from holdfast.holds.links.keys import LinkKeys
from holdfast.holds.links.reply_addresses import mint_reply
from holdfast.holds.links.tokens import Grant, mint, strength_of
from holdfast.holds.notify.notice import Notice
from holdfast.store.protocols import Store
from holdfast.types.hold import HoldRow
from holdfast.types.outbox import ASKED_BACK


class Doorway:
    """`base_url`: where people reach the server; without one, notices have no link."""

    def __init__(self, store: Store, base_url: str = "", keys: LinkKeys | None = None) -> None:
        self.store = store
        self.base_url = base_url.rstrip("/")
        self.keys = keys or LinkKeys(store)

    async def link(self, row: HoldRow, notice: Notice, to: str, *, personal: bool) -> str:
        """What many can read leads to the inbox, where people sign in. A link of somebody's own works without
        script: the server swaps its token for a cookie at once, and opening it decides nothing, so that
        previews and scanners on the way may."""
        if not self.base_url:
            return ""
        if not personal or notice.is_about_the_end or notice.topic == ASKED_BACK:
            return f"{self.base_url}/inbox/{row.id}"
        purpose = "view" if strength_of(row) == "view_only" else "decide"
        key = await self.keys.signing(row.tenant)
        token = mint(row, Grant(to=f"user:{to}", purpose=purpose), key, self.store.now())
        return f"{self.base_url}/l/{token}"

    async def reply_token(self, row: HoldRow, notice: Notice, to: str, *, personal: bool) -> str:
        """By which this reader can decide in a reply; empty where a mailbox alone is not enough."""
        if not personal or notice.is_about_the_end or notice.topic == ASKED_BACK or not row.options:
            return ""
        if strength_of(row) != "decide_low_risk":
            return ""
        return mint_reply(row, to, await self.keys.signing(row.tenant), self.store.now())
