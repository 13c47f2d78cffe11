"""The part of the service by which people leave things at a hold: comments, files, what is theirs alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import InputError
from holdfast.holds.actions.answers import Submission, read_draft
from holdfast.holds.actions.context import HoldContext
from holdfast.types.clock import instant
from holdfast.types.hold import Note
from holdfast.types.terms import Actor

if TYPE_CHECKING:
    from holdfast.holds.forms.attached_files import AttachedFile
    from holdfast.holds.forms.file_references import Reference

When = datetime | timedelta | int
"""A time with its zone, so long from now, or microseconds since the epoch."""


class CommentMethods:
    office: HoldContext

    async def comment(self, actor: Actor, hold: str, text: str) -> Note:
        from holdfast.holds.actions import notes

        return await notes.comment(self.office, actor, hold, text)

    async def comments(self, actor: Actor, hold: str) -> Sequence[Note]:
        """Comments, questions back and their answers, oldest first."""
        from holdfast.holds.actions import notes

        return await notes.comments(self.office, actor, hold)

    # ------------------------------------------------------------------ files
    async def attach(
        self,
        actor: Actor,
        hold: str,
        field: str,
        name: str,
        data: bytes | Path,
        *,
        media_type: str | None = None,
    ) -> Reference:
        """Keep a file for a field of kind `file` (`items.invoice`: of a table). What it answers goes into the
        `response_data` of the decision. `data`: its content, or the path of a file here.

        Raises FormInvalidError for one that is too large, not of a type that the field takes, not what its
        name says, or refused by the scan."""
        from holdfast.holds.forms import attachments

        return await attachments.attach(self.office, actor, hold, field, name, data, media_type=media_type)

    async def files(self, actor: Actor, hold: str) -> Sequence[AttachedFile]:
        """What was attached, in the order in which it came."""
        from holdfast.holds.forms import attachments

        return await attachments.attached(self.office, actor, hold)

    async def read_file(self, actor: Actor, hold: str, sha256: str) -> tuple[Reference, bytes]:
        """A file of a hold, and its content. Raises NotFoundError, BlobMissingError."""
        from holdfast.holds.forms import attachments

        return await attachments.read(self.office, actor, hold, sha256)

    # ------------------------------------------------------------------ what is one's own
    async def save_draft(self, actor: Actor, hold: str, draft: Submission | Mapping[str, Any]) -> None:
        """As it is so far: `{decision, response_data, comment}`, of which any may be missing."""
        from holdfast.holds.actions import notes

        said = draft if isinstance(draft, Submission) else read_draft(draft)
        await notes.save_draft(self.office, actor, hold, said)

    async def draft(self, actor: Actor, hold: str) -> Submission | None:
        from holdfast.holds.actions import notes

        return await notes.draft(self.office, actor, hold)

    async def drop_draft(self, actor: Actor, hold: str) -> None:
        from holdfast.holds.actions import notes

        await notes.drop_draft(self.office, actor, hold)

    async def watch(self, actor: Actor, hold: str) -> None:
        from holdfast.holds.actions import notes

        await notes.watch(self.office, actor, hold)

    async def unwatch(self, actor: Actor, hold: str) -> None:
        from holdfast.holds.actions import notes

        await notes.unwatch(self.office, actor, hold)

    async def snooze(self, actor: Actor, hold: str, until: When) -> None:
        """Out of one's own sight until then."""
        from holdfast.holds.actions import notes

        await notes.snooze(self.office, actor, hold, self._instant(until))

    async def unsnooze(self, actor: Actor, hold: str) -> None:
        from holdfast.holds.actions import notes

        await notes.unsnooze(self.office, actor, hold)

    async def seen(self, actor: Actor, hold: str) -> None:
        """That this person has looked at it."""
        from holdfast.holds.actions import notes

        await notes.mark_seen(self.office, actor, hold)

    def _instant(self, when: When) -> int:
        try:
            return instant(when, self.office.now())
        except ValueError as error:
            raise InputError(f"{error}.") from None
